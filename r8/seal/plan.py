"""Which cells a campaign set out to run, by the runs themselves: what is missing is named.

Every run carries the plan of its campaign in its `run_begin` event. Runs that lack it are held
against the site file kept in their raw/, and without that against each other.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from r8.errors import BundleError, EvidenceError
from r8.evidence import door
from r8.evidence.manifest import sha256_json
from r8.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.evidence.reader import Evidence

# Where a plan is written: in the event run_begin of every run, in the site file, or nowhere; the
# ids are entries of the catalogues.
BY_EVENT, BY_SITE, BY_RUNS = "plan-by-event", "plan-by-site", "plan-by-runs"
# Ten blocks of twelve arms at eight levels are a thousand cells.
CELLS_MAX = 100_000
# A cell's name as the matrix writes it, at the end of its run id.
_PLACE = re.compile(r"b(?P<block>\d+)-(?P<arm>.+)-c(?P<level>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPlan:
    """The cells of a campaign, and where that is written.

    `places` names every cell; a plan without them is arms x levels in every block.
    """

    campaign_id: str
    scenario: str
    arms: tuple[str, ...]
    levels: tuple[int, ...]
    blocks: int
    source: str
    places: tuple[str, ...] = ()

    @property
    def cells(self) -> list[tuple[int, str, int]]:
        """(block, arm, level) of every run the plan asks for."""
        named = [_PLACE.fullmatch(one) for one in self.places]
        if named:
            return sorted((int(m["block"]), m["arm"], int(m["level"])) for m in named if m)
        return [
            (block, arm, level)
            for block in range(self.blocks)
            for arm in self.arms
            for level in self.levels
        ]


def plans_of(evidences: Sequence[Evidence]) -> list[CampaignPlan]:
    """One plan a campaign, in the order of campaign ids.

    Raises BundleError when two runs of a campaign carry different plans.
    """
    campaigns = sorted({one.run.campaign_id for one in evidences})
    return [_plan([one for one in evidences if one.run.campaign_id == name]) for name in campaigns]


def require_declared(evidences: Sequence[Evidence]) -> None:
    """Refuse runs whose plan is not the one their campaign declared before its first block.

    A redacted run whose plan had names in it carries no digest, and is not asked.
    """
    for one in evidences:
        declared = one.run.plan_sha256
        if declared is not None and sha256_json(recorded_plan(one)) != declared:
            raise BundleError(
                Message(id="seal-plan-changed", facts={"run": one.run.run_id}),
                where=one.run.campaign_id,
                next_step="seal the runs as they were recorded",
            )


def missing_cells(plan: CampaignPlan, evidences: Sequence[Evidence]) -> list[str]:
    """Names of cells the plan has and the runs do not."""
    there = {_cell(one) for one in evidences if one.run.campaign_id == plan.campaign_id}
    return [_name(cell) for cell in plan.cells if cell not in there]


def unplanned_cells(plan: CampaignPlan, evidences: Sequence[Evidence]) -> list[str]:
    """Names of cells the runs have and the plan does not."""
    there = {_cell(one) for one in evidences if one.run.campaign_id == plan.campaign_id}
    return [_name(cell) for cell in sorted(there - set(plan.cells))]


def _cell(evidence: Evidence) -> tuple[int, str, int]:
    return (evidence.run.block, evidence.run.arm, evidence.run.concurrency)


def _name(cell: tuple[int, str, int]) -> str:
    block, arm, level = cell
    return f"b{block}-{arm}-c{level}"


def _plan(runs: Sequence[Evidence]) -> CampaignPlan:
    first = runs[0].run
    found = {json.dumps(recorded_plan(one), sort_keys=True) for one in runs}
    if len(found) > 1:
        raise BundleError(
            Message(id="seal-plans-differ", facts={"plans": len(found)}),
            where=first.campaign_id,
            next_step="seal the runs of one campaign as it was run",
        )
    by_event = json.loads(found.pop())
    plan = {"source": BY_EVENT} | by_event if by_event else _by_site(runs) or _by_runs(runs)
    try:
        told = msgspec.convert(plan, _Told)
    except ValueError as error:
        raise _no_plan(str(error), first.campaign_id) from error
    cells = len(told.arms) * len(told.levels) * told.blocks
    if not 0 <= cells <= CELLS_MAX:
        raise _no_plan(f"it has {cells} cells, and {CELLS_MAX} are the most", first.campaign_id)
    return CampaignPlan(
        campaign_id=first.campaign_id,
        scenario=first.scenario,
        arms=told.arms,
        levels=told.levels,
        blocks=told.blocks,
        source=told.source,
        places=_named(told.places, first.campaign_id),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is read of a plan that somebody wrote down."""

    arms: tuple[str, ...]
    levels: tuple[int, ...]
    blocks: int
    source: Literal["plan-by-event", "plan-by-site", "plan-by-runs"]
    places: tuple[str, ...] = ()


def _no_plan(why: str, campaign_id: str) -> EvidenceError:
    return EvidenceError(
        f"the plan of the campaign cannot be read: {why}",
        where=campaign_id,
        next_step="seal the runs as they were recorded",
    )


def recorded_plan(evidence: Evidence) -> dict[str, Any] | None:
    """The plan in the run's first event, when it is there."""
    events = evidence.table("events")
    for name, detail in zip(
        events.column("name").to_pylist(), events.column("detail").to_pylist(), strict=True
    ):
        if name == "run_begin":
            plan: dict[str, Any] = json.loads(detail) if detail else {}
            return plan if all(key in plan for key in ("arms", "levels", "blocks")) else None
    return None


def _named(places: Sequence[str], campaign_id: str) -> tuple[str, ...]:
    """The planned cells' names; one that says no cell would hide it from the question."""
    for name in places:
        if not _PLACE.fullmatch(name):
            raise BundleError(
                Message(id="seal-plan-of-no-cell", facts={"cell": name}),
                where=campaign_id,
                next_step="seal the runs as they were recorded",
            )
    return tuple(places)


def _by_site(runs: Sequence[Evidence]) -> dict[str, Any] | None:
    try:
        text = door.read(runs[0].path, "raw/site.toml", limit="json_bytes").decode()
        wanted = tomllib.loads(text)["scenarios"][runs[0].run.scenario]
        return {
            "arms": sorted({*wanted["arms"], *(one.run.arm for one in runs)}),
            "levels": sorted(wanted["concurrency"]),
            "blocks": max(wanted["blocks"], 1 + max(one.run.block for one in runs)),
            "source": BY_SITE,
        }
    except (EvidenceError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _by_runs(runs: Sequence[Evidence]) -> dict[str, Any]:
    return {
        "arms": sorted({one.run.arm for one in runs}),
        "levels": sorted({one.run.concurrency for one in runs}),
        "blocks": 1 + max(one.run.block for one in runs),
        "source": BY_RUNS,
    }
