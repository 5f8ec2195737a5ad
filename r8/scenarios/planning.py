"""What one invocation sets out to run: the campaigns of each scenario, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.lab.campaign.campaign import new_campaign_id, plan_campaign
from r8.lab.site.matrix import LAST, find_matrix, has_matrix
from r8.lab.site.plan import places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from r8.lab.site.file import LoadedSite
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place
    from r8.scenarios.scenario import Scenario

# Blocks use the seeds after their campaign's own; rounds must never meet.
ROUND_STRIDE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One campaign of this invocation, planned and not yet opened."""

    loaded: LoadedSite
    matrix: Matrix
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """Why a collected scenario cannot be run here; the others are."""

    reason: str


def planned(config: pytest.Config, loaded: LoadedSite, declared: Scenario) -> list[Round] | Unfit:
    """The campaigns of a scenario: one, or as many as rounds were asked for.

    Raises:
        SiteError: an arm or a level the scenario cannot run, or a resumed campaign of another site
            file.

    """
    scenario = declared.name
    arms = _arms(config, loaded, scenario)
    if isinstance(arms, Unfit):
        return arms
    declared.require(loaded, arms)
    if config.getoption("--resume"):
        found = list(_resumed(config, loaded, scenario))
        _require_alike(found)
        return found or Unfit(reason=_nothing_to_resume(config, scenario))
    return list(_begun(config, loaded, scenario, arms))


def _arms(config: pytest.Config, loaded: LoadedSite, scenario: str) -> tuple[str, ...] | Unfit:
    plan = loaded.site.plan_of(scenario)
    if plan is None:
        return Unfit(reason=f"the site file has no plan for {scenario}")
    wanted = config.getoption("--arms")
    if wanted == "all":
        return plan.every_arm
    if not wanted:
        return plan.arms
    arms, known = tuple(dict.fromkeys(wanted.split(","))), loaded.site.arms_of(scenario)
    unknown = [arm for arm in arms if arm not in known]
    if unknown:
        names = ", ".join(sorted(known))
        return Unfit(reason=f"no such arm of {scenario}: {', '.join(unknown)}; known: {names}")
    return arms


def _begun(
    config: pytest.Config, loaded: LoadedSite, scenario: str, arms: tuple[str, ...]
) -> Iterator[Round]:
    plan, count = loaded.site.plan_of(scenario), config.getoption("--rounds")
    blocks = _blocks(config) or (0 if plan is None else plan.blocks)
    base = new_campaign_id(scenario)
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


def _blocks(config: pytest.Config) -> int | None:
    """Blocks that were asked for; None: none in particular."""
    asked: int | None = 1 if config.getoption("--smoke") else config.getoption("--blocks")
    return asked


def _resumed(config: pytest.Config, loaded: LoadedSite, scenario: str) -> Iterator[Round]:
    """Campaigns that were interrupted, each once, with the plan they were started with."""
    folder, seen = config.getoption("--runs-root") / scenario, set[str]()
    for wanted in filter(None, (config.getoption("--resume") or "").split(",")):
        if not has_matrix(folder, wanted):
            _require_elsewhere(folder.parent, wanted)
            continue
        matrix = find_matrix(folder, wanted)
        if matrix.campaign_id in seen:
            continue
        seen.add(matrix.campaign_id)
        if matrix.site_sha256 != loaded.sha256:
            raise SiteError(
                f"campaign {matrix.campaign_id} was started with another site file",
                where=f"{loaded.path}, started with {matrix.site}",
                next_step="resume it with that file, or start a new campaign",
            )
        _require_same_plan(config, loaded, scenario, matrix)
        cells = places(loaded.site, scenario, matrix.arms, matrix.blocks, matrix.seed)
        yield Round(loaded=loaded, matrix=matrix, places=cells)


def _require_elsewhere(runs_root: Path, wanted: str) -> None:
    """Refuse an id that no scenario has: each would take it for a campaign of another one.

    Raises:
        SiteError: no scenario has a campaign of that id.

    """
    if wanted != LAST and not any(has_matrix(folder, wanted) for folder in runs_root.glob("*")):
        raise SiteError(
            f"no campaign of any scenario to resume by the name {wanted}",
            where=str(runs_root),
            next_step="r8 status lists them; give an id, or `last`",
        )


def _require_same_plan(
    config: pytest.Config, loaded: LoadedSite, scenario: str, matrix: Matrix
) -> None:
    """Refuse to resume a campaign with another plan than it was started with.

    Raises:
        SiteError: `--arms`, `--blocks` or `--smoke` ask for another.

    """
    arms = _arms(config, loaded, scenario) if config.getoption("--arms") else matrix.arms
    asked = _blocks(config) or matrix.blocks
    if arms != matrix.arms or asked != matrix.blocks:
        raise SiteError(
            f"campaign {matrix.campaign_id} was started with arms {','.join(matrix.arms)} "
            f"and {matrix.blocks} blocks",
            where="--resume with another --arms, --blocks or --smoke",
            next_step="leave them out to continue it, or start a new one without --resume",
        )


def _require_alike(found: list[Round]) -> None:
    """Refuse campaigns with different cells: several are resumed as rounds, with one test a cell.

    Raises:
        SiteError: naming two that differ.

    """
    for one in found[1:]:
        names = [[place.name for place in each.places] for each in (found[0], one)]
        if sorted(names[0]) != sorted(names[1]):
            raise SiteError(
                f"campaigns {found[0].matrix.campaign_id} and {one.matrix.campaign_id} have "
                "different cells, so they cannot be rounds of one session",
                where="--resume with several campaigns",
                next_step="resume one after the other",
            )


def _nothing_to_resume(config: pytest.Config, scenario: str) -> str:
    folder, wanted = config.getoption("--runs-root") / scenario, config.getoption("--resume")
    return (
        f"no campaign of {scenario} to resume by the name {wanted} [{folder}] -> r8 status lists "
        "them; give an id, or `last`"
    )
