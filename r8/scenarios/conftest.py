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

from r8.errors import EXIT_INCONCLUSIVE, EXIT_REPRODUCED, R8Error
from r8.lab.campaign import open_campaign
from r8.lab.keeper import Keeper
from r8.lab.plan import steps
from r8.lab.preflight import require_ready
from r8.lab.site import load_site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.campaign import Campaign
    from r8.lab.plan import Step
    from r8.lab.site import LoadedSite

CHECKOUT = Path(__file__).resolve().parents[2]
RUNS_ROOT = CHECKOUT / "data" / "runs"
REHEARSAL = CHECKOUT / "data" / "sites" / "rehearsal.toml"
DEFAULT_SEED = 8


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
        "--order-seed", type=int, default=DEFAULT_SEED, help="seed of order and prompts"
    )
    group.addoption("--runs-root", type=Path, default=RUNS_ROOT, help="where run directories go")


@dataclass
class Session:
    """What the scenario's tests tell each other: where the evidence lies, how it was judged."""

    accepted: set[int] = field(default_factory=lambda: {EXIT_REPRODUCED})
    run_paths: list[Path] = field(default_factory=list)
    outcome: str = "no claim was judged"
    exit_code: int = 5


SESSION = pytest.StashKey[Session]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the place where tests leave what the last line prints."""
    config.stash[SESSION] = Session()
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


def _steps(config: pytest.Config, scenario: str) -> list[Step]:
    site = _loaded(config).site
    plan = site.scenarios.get(scenario)
    if plan is None:
        pytest.exit(f"the site file has no [scenarios.{scenario}]", returncode=4)
    wanted = config.getoption("--arms")
    arms = plan.arms
    if wanted == "all":
        arms = (*plan.arms, *plan.other_arms)
    elif wanted:
        arms = tuple(wanted.split(","))
        unknown = [arm for arm in arms if arm not in site.arms]
        if unknown:
            pytest.exit(f"no such arm: {', '.join(unknown)}; known: {', '.join(site.arms)}", 4)
    blocks = 1 if config.getoption("--smoke") else config.getoption("--blocks") or plan.blocks
    return steps(arms, blocks, config.getoption("--order-seed"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a cell, in the order of the design."""
    if "step" in metafunc.fixturenames:
        scenario = metafunc.module.SCENARIO
        plan = _steps(metafunc.config, scenario)
        metafunc.parametrize("step", plan, ids=[f"block{one.block}-{one.arm}" for one in plan])


@pytest.fixture(scope="session")
def session(request: pytest.FixtureRequest) -> Session:
    """What the tests of this scenario share."""
    return request.config.stash[SESSION]


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest) -> Iterator[Campaign]:
    """A prepared ground; everything started on it is stopped and unmounted afterwards."""
    config = request.config
    scenario = request.module.SCENARIO
    loaded = _loaded(config)
    state_dir = config.getoption("--runs-root") / ".keeper"
    with contextlib.ExitStack() as stack:
        try:
            require_ready(loaded, scenario, config.getoption("--runs-root"))
            keeper = stack.enter_context(Keeper(state_dir))
            opened = stack.enter_context(
                open_campaign(
                    loaded,
                    scenario,
                    tuple(_steps(config, scenario)),
                    keeper,
                    seed=config.getoption("--order-seed"),
                    runs_root=config.getoption("--runs-root"),
                )
            )
        except R8Error as error:
            stack.close()
            _stop(error)
            raise
        yield opened


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of a reproduction: what it came to, and the code `r8 judge` gives it."""
    ended = config.stash.get(SESSION, None)
    if ended is not None and ended.run_paths:
        print(f"\nR8: {ended.outcome} (r8 judge: exit code {ended.exit_code})")
        sys.stdout.flush()
