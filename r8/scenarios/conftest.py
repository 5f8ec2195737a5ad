"""What every scenario shares: its options, the campaign it runs in, and how it ends.

Scenarios are tests, but they are never collected by a bare `pytest`: nox names their files.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.errors import EXIT_INCONCLUSIVE, EXIT_REPRODUCED, EXIT_USAGE, R8Error, SiteError
from r8.lab.campaign import new_campaign_id, open_campaign, plan_campaign
from r8.lab.dry_run import dry_run
from r8.lab.keeper import Keeper
from r8.lab.matrix import find_matrix, mark_broken
from r8.lab.plan import places
from r8.lab.preflight import require_ready
from r8.lab.site import load_site

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from r8.lab.campaign import Campaign
    from r8.lab.matrix import Matrix
    from r8.lab.plan import Place
    from r8.lab.site import LoadedSite

CHECKOUT = Path(__file__).resolve().parents[2]
RUNS_ROOT = CHECKOUT / "data" / "runs"
REHEARSAL = CHECKOUT / "data" / "sites" / "rehearsal.toml"
DEFAULT_SEED = 8
# Blocks use the seeds after their campaign's own; rounds must never meet.
ROUND_STRIDE = 1000


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a reproduction; `nox -s reproduce-r1 -- --help` shows them."""
    group = parser.getgroup("R8")
    group.addoption("--site", type=Path, default=REHEARSAL, help="site file (default: rehearsal)")
    group.addoption("--blocks", type=int, default=None, help="blocks (default: the site's plan)")
    group.addoption(
        "--smoke", action="store_true", help="one block; too few to judge, and that is accepted"
    )
    group.addoption("--arms", default=None, help="comma list of arms, or 'all'")
    group.addoption(
        "--rounds", type=int, default=1, help="independent campaigns, compared with each other"
    )
    group.addoption("--level", type=int, default=16, help="of the cross-check: requests at once")
    group.addoption(
        "--resume", metavar="CAMPAIGN", help="go on with an interrupted campaign, or `last`"
    )
    group.addoption("--dry-run", action="store_true", help="print every command, run none")
    group.addoption(
        "--record-reference", action="store_true", help="keep the runs as reference runs"
    )
    group.addoption(
        "--order-seed", type=int, default=DEFAULT_SEED, help="seed of order and prompts"
    )
    group.addoption("--runs-root", type=Path, default=RUNS_ROOT, help="where run directories go")


@dataclass
class Session:
    """What the scenario's tests tell each other: where the evidence lies, how it was judged."""

    accepted: set[int] = field(default_factory=lambda: {EXIT_REPRODUCED})
    run_paths: list[Path] = field(default_factory=list)
    record_reference: bool = False
    outcome: str = "no claim was judged"
    exit_code: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One campaign of this invocation, planned and not yet opened."""

    loaded: LoadedSite
    matrix: Matrix
    places: tuple[Place, ...]


SESSION = pytest.StashKey[Session]()
ROUNDS = pytest.StashKey[list[Round]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the place where tests leave what the last line prints."""
    recording = config.getoption("--record-reference")
    config.stash[SESSION] = Session(record_reference=recording)
    config.stash[ROUNDS] = []
    if config.getoption("--smoke"):
        # A smoke run shows that everything works; one block can refute but never confirm.
        config.stash[SESSION].accepted.add(EXIT_INCONCLUSIVE)


def _stop(error: R8Error) -> None:
    """End with the error's own line and code: no traceback for what a person can mend."""
    pytest.exit(f"{type(error).__name__}: {error}", returncode=error.exit_code)


def _loaded(config: pytest.Config) -> LoadedSite:
    try:
        return load_site(config.getoption("--site"))
    except R8Error as error:
        _stop(error)
        raise


def _arms(config: pytest.Config, loaded: LoadedSite, scenario: str) -> tuple[str, ...]:
    plan = loaded.site.scenarios[scenario]
    wanted = config.getoption("--arms")
    if wanted == "all":
        return (*plan.arms, *plan.other_arms)
    if not wanted:
        return plan.arms
    arms = tuple(wanted.split(","))
    unknown = [arm for arm in arms if arm not in loaded.site.arms]
    if unknown:
        known = ", ".join(loaded.site.arms)
        pytest.exit(f"no such arm: {', '.join(unknown)}; known: {known}", EXIT_USAGE)
    return arms


def _rounds(config: pytest.Config, scenario: str) -> list[Round]:
    """The campaigns of this invocation: one, or as many as rounds were asked for."""
    if config.stash[ROUNDS]:
        return config.stash[ROUNDS]
    loaded = _loaded(config)
    if scenario not in loaded.site.scenarios:
        pytest.exit(f"the site file has no [scenarios.{scenario}]", returncode=EXIT_USAGE)
    try:
        config.stash[ROUNDS] = list(_resumed(config, loaded, scenario)) or list(
            _begun(config, loaded, scenario)
        )
    except R8Error as error:
        _stop(error)
    return config.stash[ROUNDS]


def _begun(config: pytest.Config, loaded: LoadedSite, scenario: str) -> Iterator[Round]:
    plan, count = loaded.site.scenarios[scenario], config.getoption("--rounds")
    blocks = 1 if config.getoption("--smoke") else config.getoption("--blocks") or plan.blocks
    arms, base = _arms(config, loaded, scenario), new_campaign_id(scenario)
    for number in range(count):
        # Rounds are independent: other prompts, another order of arms, engines of their own.
        seed = config.getoption("--order-seed") + ROUND_STRIDE * number
        matrix, cells = plan_campaign(
            loaded,
            scenario,
            arms,
            blocks=blocks,
            seed=seed,
            campaign_id=base if count == 1 else f"{base}-r{number + 1}",
        )
        yield Round(loaded=loaded, matrix=matrix, places=cells)


def _resumed(config: pytest.Config, loaded: LoadedSite, scenario: str) -> Iterator[Round]:
    """Campaigns that were interrupted, with the plan they began with and no other."""
    folder = config.getoption("--runs-root") / scenario
    for wanted in filter(None, (config.getoption("--resume") or "").split(",")):
        matrix = find_matrix(folder, wanted)
        if matrix.site_sha256 != loaded.sha256:
            raise SiteError(
                f"campaign {matrix.campaign_id} began with another site file",
                where=f"{loaded.path}, begun with {matrix.site}",
                next_step="give the file it began with: a matrix on two sites is none",
            )
        plan = loaded.site.scenarios[scenario]
        cells = places(plan, loaded.site.arms, matrix.arms, matrix.blocks, matrix.seed)
        yield Round(loaded=loaded, matrix=matrix, places=tuple(cells))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a cell, in the order of the design; a round after the other."""
    if "place" not in metafunc.fixturenames:
        return
    config, scenario = metafunc.config, metafunc.module.SCENARIO
    rounds = _rounds(config, scenario)
    if len(rounds) > 1:
        names = [f"round{number + 1}" for number in range(len(rounds))]
        metafunc.parametrize("campaign", range(len(rounds)), indirect=True, ids=names)
    ids = [f"block{one.block}-{one.arm}-c{one.concurrency}" for one in rounds[0].places]
    metafunc.parametrize("place", range(len(ids)), indirect=True, ids=ids)


def pytest_runtestloop(session: pytest.Session) -> object:
    """A dry run prints what the tests would do, and ends."""
    if not session.config.getoption("--dry-run"):
        return None
    for one in session.config.stash[ROUNDS]:
        print("\n".join(dry_run(one.loaded, one.matrix, one.places, _runs_root(session.config))))
    return True


def _runs_root(config: pytest.Config) -> Path:
    root: Path = config.getoption("--runs-root")
    return root


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest) -> Session:
    """What the tests of this scenario share."""
    return request.config.stash[SESSION]


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest) -> Iterator[Campaign]:
    """A prepared ground; everything started on it is stopped and unmounted afterwards."""
    config, scenario = request.config, request.module.SCENARIO
    one, root = _rounds(config, scenario)[getattr(request, "param", 0)], _runs_root(config)
    with contextlib.ExitStack() as stack:
        try:
            require_ready(one.loaded, scenario, root)
            mark_broken(root / scenario, one.matrix.campaign_id)
            keeper = stack.enter_context(Keeper(root / ".keeper"))
            opened = stack.enter_context(
                open_campaign(one.loaded, one.matrix, one.places, keeper, runs_root=root)
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
    """Show an error of R8's own as its one line: what, where, what to do next."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, R8Error):
        report.longrepr = f"{type(call.excinfo.value).__name__}: {call.excinfo.value}"
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of a reproduction: what it came to, and the code `r8 judge` gives it."""
    ended = config.stash.get(SESSION, None)
    if ended is not None and ended.run_paths:
        print(f"\nR8: {ended.outcome} (r8 judge: exit code {ended.exit_code})")
        sys.stdout.flush()
