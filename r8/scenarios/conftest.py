"""What every scenario shares: its options, the campaign it runs in, and how it ends.

Scenarios are tests, but they are never collected by a bare `pytest`: nox names their files.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from r8.errors import EXIT_INCONCLUSIVE, EXIT_INVALID, EXIT_REPRODUCED, EXIT_USAGE, R8Error, told
from r8.lab.campaign.campaign import open_campaign
from r8.lab.machine.supervisor import Supervisor
from r8.lab.preflight.dry_run import dry_run
from r8.lab.preflight.preflight import require_ready
from r8.lab.site.load import load_site
from r8.lab.site.matrix import mark_broken
from r8.scenarios.options import add_options, in_vain
from r8.scenarios.planning import Round, Unfit, planned
from r8.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from r8.lab.campaign.campaign import Campaign
    from r8.lab.site.plan import Place


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a reproduction; `nox -s reproduce-r1 -- --help` shows them."""
    add_options(parser)


@dataclass
class Session:
    """What the scenario's tests tell each other: where the evidence lies, how it was judged."""

    accepted: set[int] = field(default_factory=lambda: {EXIT_REPRODUCED})
    run_paths: list[Path] = field(default_factory=list)
    negative_paths: list[Path] = field(default_factory=list)  # run, and part of no claim
    record_reference: bool = False
    outcome: str = "no claim was judged"
    exit_code: int = 5


SESSIONS = pytest.StashKey[dict[str, Session]]()  # by scenario
REFUSED = pytest.StashKey[R8Error]()  # what was wrong while tests were collected
ROUNDS = pytest.StashKey[dict[str, "list[Round] | Unfit"]]()  # by scenario


def pytest_configure(config: pytest.Config) -> None:
    """Make the place where tests leave what the last lines print."""
    config.stash[SESSIONS] = {}
    config.stash[ROUNDS] = {}


def _session(config: pytest.Config, scenario: str) -> Session:
    """What the tests of one scenario share."""
    if scenario not in config.stash[SESSIONS]:
        made = Session(record_reference=config.getoption("--record-reference"))
        if config.getoption("--smoke"):
            # A smoke run shows that everything works; one block can refute but never confirm.
            made.accepted.add(EXIT_INCONCLUSIVE)
        config.stash[SESSIONS][scenario] = made
    return config.stash[SESSIONS][scenario]


def _stop(error: R8Error) -> None:
    """End with the error's own lines and code: no traceback for what a person can mend."""
    pytest.exit("\nthen ".join(told(error)), returncode=error.exit_code)


def _planned(config: pytest.Config, scenario: Scenario) -> list[Round] | Unfit:
    """The campaigns of this invocation: one, or as many as rounds were asked for."""
    if scenario.name not in config.stash[ROUNDS]:
        loaded = load_site(config.getoption("--site"))
        config.stash[ROUNDS][scenario.name] = planned(config, loaded, scenario)
    return config.stash[ROUNDS][scenario.name]


def _rounds(config: pytest.Config, scenario: Scenario) -> list[Round] | Unfit:
    """The same after collection, where an error ends the session."""
    try:
        return _planned(config, scenario)
    except R8Error as error:
        _stop(error)
        raise


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a cell, in the order of the design; a round after the other."""
    if "place" not in metafunc.fixturenames:
        return
    config, scenario = metafunc.config, metafunc.module.SCENARIO
    try:
        rounds = _planned(config, scenario)
    except R8Error as error:
        # pytest makes an error of an exit inside collection: it is told right after.
        config.stash[REFUSED] = error
        metafunc.parametrize("place", [0], indirect=True, ids=["refused"])
        return
    if isinstance(rounds, Unfit):
        mark = pytest.mark.skip(reason=rounds.reason)
        metafunc.parametrize("place", [pytest.param(0, marks=mark)], indirect=True, ids=["unfit"])
        return
    if len(rounds) > 1:
        names = [f"round{number + 1}" for number in range(len(rounds))]
        metafunc.parametrize("campaign", range(len(rounds)), indirect=True, ids=names)
    ids = [f"block{one.block}-{one.arm}-c{one.concurrency}" for one in rounds[0].places]
    if any(one.places != rounds[0].places for one in rounds):
        # Each round has an order of its own: the name of one round's cell would lie in another.
        ids = [f"cell{number + 1}" for number in range(len(ids))]
    metafunc.parametrize("place", range(len(ids)), indirect=True, ids=ids)


def _selected(items: list[pytest.Item]) -> list[Scenario]:
    """Scenarios of the tests that were not deselected; benches and other tests have none."""
    modules = [getattr(item, "module", None) for item in items]
    declared = [getattr(one, "SCENARIO", None) for one in modules]
    return list(dict.fromkeys(one for one in declared if isinstance(one, Scenario)))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop where nothing that was asked for can be run: a skipped session is no success."""
    config, selected = session.config, _selected(session.items)
    if vain := in_vain(config, session.items):
        _stop(vain)
    if REFUSED in config.stash:
        _stop(config.stash[REFUSED])
    plans = [_rounds(config, scenario) for scenario in selected]
    reasons = [plan.reason for plan in plans if isinstance(plan, Unfit)]
    if plans and len(reasons) == len(plans):
        pytest.exit("; ".join(reasons), returncode=EXIT_USAGE)


def pytest_runtestloop(session: pytest.Session) -> object:
    """A dry run prints what the tests would do, and ends."""
    config = session.config
    if not config.getoption("--dry-run"):
        return None
    selected = _selected(session.items)
    if not selected:
        print("# no scenario is selected: benches and the cross-check have no dry run")
    for scenario in selected:
        plans = _rounds(config, scenario)
        try:
            for one in [] if isinstance(plans, Unfit) else plans:
                print("\n".join(dry_run(one.loaded, one.matrix, one.places, _runs_root(config))))
        except R8Error as error:
            _stop(error)
    return True


def _runs_root(config: pytest.Config) -> Path:
    root: Path = config.getoption("--runs-root")
    return root


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest) -> Session:
    """What the tests of this scenario share."""
    if isinstance(_rounds(request.config, request.module.SCENARIO), Unfit):
        pytest.skip("nothing of this scenario was run")
    return _session(request.config, request.module.SCENARIO.name)


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest) -> Iterator[Campaign]:
    """A prepared testbed; everything started on it is stopped and unmounted afterwards."""
    config, scenario = request.config, request.module.SCENARIO
    plans, root = _rounds(config, scenario), _runs_root(config)
    if isinstance(plans, Unfit):
        pytest.skip(plans.reason)
    one = plans[getattr(request, "param", 0)]
    with contextlib.ExitStack() as stack:
        try:
            require_ready(one.loaded, scenario.name, root)
            mark_broken(root / scenario.name, one.matrix.campaign_id)
            supervisor = stack.enter_context(Supervisor(root / ".supervisor"))
            opened = stack.enter_context(
                open_campaign(one.loaded, one.matrix, one.places, supervisor, runs_root=root)
            )
        except R8Error as error:
            stack.close()
            _stop(error)
            raise
        yield opened


@pytest.fixture
def place(request: pytest.FixtureRequest, campaign: Campaign) -> Place:
    """The cell of this test, in the campaign of its round."""
    found: Place = campaign.places[request.param]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show an error of R8's own as its line: what, where, what to do next; the first one first."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, R8Error):
        report.longrepr = "\nthen ".join(told(call.excinfo.value))
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Not 1 where no cell ended: `nox -s gate-g2` would then judge the runs of another day."""
    ended = session.config.stash.get(SESSIONS, {}).values()
    nothing = bool(ended) and not any(one.run_paths or one.negative_paths for one in ended)
    if nothing and exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = EXIT_INVALID


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last lines of a reproduction: what each scenario came to, and the code of `r8 judge`."""
    ended = config.stash.get(SESSIONS, {})
    ran = {scenario: one for scenario, one in ended.items() if one.run_paths}
    for scenario, one in ran.items():
        name = f" {scenario}:" if len(ran) > 1 else ""
        print(f"\nR8:{name} {one.outcome} (r8 judge: exit code {one.exit_code})")
    sys.stdout.flush()
