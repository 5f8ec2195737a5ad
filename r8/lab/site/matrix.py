"""What a campaign set out to run, kept beside its runs, and how far it has come.

`<campaign_id>.campaign.json` is written when a campaign opens and never changed. How far it has
come is read from the run directories themselves: so nothing else can disagree with them.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from r8.errors import EvidenceError, SiteError
from r8.evidence.finalise import PARTIAL_SUFFIX, recover
from r8.evidence.journal import RUN_FILE, lock_directory, write_json_atomic
from r8.evidence.manifest import MANIFEST, sha256_json
from r8.lab.site.arms import TransferPlan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from r8.lab.site.file import LoadedSite
    from r8.lab.site.plan import Place

# 2: the declared plan and its digest
FORMAT = 2
SUFFIX = ".campaign.json"
LIFETIME_SUFFIX = ".lifetime"
LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """One campaign's plan; `places` are names of cells in the order they are run.

    `plan` is what the campaign declares before its first block. Its digest stands in this file and
    in every run; the plan itself is the detail of every run's event `run_begin`.
    """

    format: int
    campaign_id: str
    scenario: str
    site: str  # path of the site file as it was given
    site_sha256: str
    seed: int
    blocks: int
    arms: tuple[str, ...]
    tables: dict[str, Any]  # of the site file: `scenario`, and `arms` by name
    places: tuple[str, ...]
    starts: tuple[str, ...]  # the places that begin an engine lifetime
    start_estimate_s: float
    cell_estimate_s: float
    started_wall_ns: int

    @property
    def plan(self) -> dict[str, Any]:
        """Scenario, arms and their tables, blocks, levels, seed, and the cells in their order."""
        return {
            "scenario": self.scenario,
            "arms": sorted(self.arms),
            "levels": self.tables["scenario"]["concurrency"],
            "blocks": self.blocks,
            "seed": self.seed,
            "places": list(self.places),
            "tables": self.tables,
        }

    @property
    def plan_sha256(self) -> str:
        """SHA-256 of the declared plan."""
        return sha256_json(self.plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellState:
    """One cell of the matrix: `done`, `running`, `broken` (no finished attempt yet) or `left`."""

    place: str
    state: str
    run: Path | None  # the finished run
    broken: int  # attempts that did not end by themselves; they are kept
    seconds: float | None  # what the finished run took, from its begin to its seal


def matrix_path(folder: Path, campaign_id: str) -> Path:
    """Where the plan of a campaign lies."""
    return folder / f"{campaign_id}{SUFFIX}"


def write_matrix(folder: Path, matrix: Matrix) -> None:
    """Keep a campaign's plan; what is there already stays."""
    folder.mkdir(parents=True, exist_ok=True)
    path = matrix_path(folder, matrix.campaign_id)
    if not path.exists():
        write_json_atomic(path, asdict(matrix) | {"plan_sha256": matrix.plan_sha256})


def read_matrix(path: Path) -> Matrix:
    """A campaign's plan. SiteError when the file is no plan, or not the plan that was declared."""
    try:
        found = json.loads(path.read_text())
        written, declared = found["format"], found.pop("plan_sha256", None)
        values: Any = {key: tuple(v) if isinstance(v, list) else v for key, v in found.items()}
        matrix = Matrix(**values) if written == FORMAT else None
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise SiteError(
            f"the campaign's plan cannot be read: {error}",
            where=str(path),
            next_step="see `r8 status` for campaigns that can be resumed",
        ) from error
    if matrix is None:
        raise SiteError(
            f"campaign format {written}, this R8 reads {FORMAT}",
            where=str(path),
            next_step="resume it with the R8 that began it",
        )
    if matrix.plan_sha256 != declared:
        raise SiteError(
            "the campaign's plan was changed after it was declared",
            where=str(path),
            next_step="put the file back as it was, or start a new campaign",
        )
    return matrix


def has_matrix(folder: Path, wanted: str) -> bool:
    """Whether this scenario has a campaign of that id, or any when the `last` is wanted."""
    names = [path.name for path in folder.glob(f"*{SUFFIX}")]
    return bool(names) if wanted == LAST else f"{wanted}{SUFFIX}" in names


def find_matrix(folder: Path, wanted: str) -> Matrix:
    """The plan of a campaign by its id, or of the `last` one of this scenario."""
    found = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
    if wanted != LAST:
        found = [path for path in found if path.name == f"{wanted}{SUFFIX}"]
    if not found:
        raise SiteError(
            f"there is no campaign {wanted} to resume",
            where=str(folder),
            next_step="see `r8 status`, or begin a new one without --resume",
        )
    return read_matrix(found[-1])


def attempts(folder: Path, campaign_id: str, place: str) -> list[Path]:
    """Every directory of one cell, finished or not, in the order they were begun."""
    base = f"{campaign_id}-{place}"
    found = [
        path
        for path in folder.glob(f"{base}*")
        if path.is_dir() and _is_attempt(path.name.removeprefix(base))
    ]
    return sorted(found, key=lambda path: _number(path.name.removeprefix(base)))


def _is_attempt(rest: str) -> bool:
    head = rest.partition(".")[0]
    return rest.partition(".")[2] in {"", "partial", "finalising"} and (
        not head or (head.startswith("-try") and head[4:].isdigit())
    )


def _number(rest: str) -> int:
    head = rest.partition(".")[0]
    return int(head[4:]) if head else 1


def next_run_id(folder: Path, campaign_id: str, place: str) -> str:
    """The id of the next attempt at a cell: broken ones keep theirs."""
    seen = {path.name.partition(".")[0] for path in attempts(folder, campaign_id, place)}
    run_id, number = f"{campaign_id}-{place}", 1
    while run_id in seen:
        number += 1
        run_id = f"{campaign_id}-{place}-try{number}"
    return run_id


def finished_run(folder: Path, campaign_id: str, place: str) -> Path | None:
    """The complete run of a cell; a recovered one is none."""
    for path in attempts(folder, campaign_id, place):
        if (path / MANIFEST).is_file() and _is_complete(path):
            return path
    return None


def _is_complete(path: Path) -> bool:
    try:
        return json.loads((path / RUN_FILE).read_text())["complete"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def cell_states(folder: Path, matrix: Matrix) -> list[CellState]:
    """How far a campaign has come, cell by cell."""
    return [_state(folder, matrix.campaign_id, place) for place in matrix.places]


def _state(folder: Path, campaign_id: str, place: str) -> CellState:
    found = attempts(folder, campaign_id, place)
    done = finished_run(folder, campaign_id, place)
    running = [path for path in found if path.suffix and _in_use(path)]
    broken = len(found) - len(running) - (done is not None)
    state = "done" if done else "running" if running else "broken" if broken else "left"
    seconds = None if done is None else _seconds(done)
    return CellState(place=place, state=state, run=done, broken=broken, seconds=seconds)


def _in_use(path: Path) -> bool:
    """Whether a living process holds the directory: locks end with their process."""
    try:
        os.close(lock_directory(path, exclusive=True))
    except EvidenceError:
        return True
    except OSError:
        return False
    return False


def _seconds(run: Path) -> float | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        began_ns: int = json.loads((run / RUN_FILE).read_text())["started_wall_ns"]
        return ((run / MANIFEST).stat().st_mtime_ns - began_ns) / 1e9
    return None


def eta_s(matrix: Matrix, states: Sequence[CellState]) -> float:
    """Seconds of work left: the mean of finished cells of the same kind, else the estimates.

    A cell that begins an engine lifetime pays for engine start and populate, the others do not.
    """
    starts = set(matrix.starts)
    guess = {True: matrix.start_estimate_s + matrix.cell_estimate_s, False: matrix.cell_estimate_s}
    for kind in guess:
        taken = [
            one.seconds
            for one in states
            if one.seconds is not None and (one.place in starts) is kind
        ]
        if taken:
            guess[kind] = sum(taken) / len(taken)
    return sum(guess[one.place in starts] for one in states if one.state != "done")


def mark_broken(folder: Path, campaign_id: str) -> list[Path]:
    """Seal what an interrupted campaign left half done: kept, and marked as no measurement.

    Raises:
        EvidenceError: the campaign is still running.

    """
    sealed = []
    for path in sorted(folder.glob(f"{campaign_id}-*")):
        if path.suffix == PARTIAL_SUFFIX:
            sealed.append(recover(path))
        elif path.suffix == LIFETIME_SUFFIX:
            # Every run of that lifetime has its own copy of the logs.
            shutil.rmtree(path, ignore_errors=True)
    return sealed


def new_matrix(
    campaign_id: str,
    loaded: LoadedSite,
    scenario: str,
    arms: Sequence[str],
    places: Sequence[Place],
    seed: int,
) -> Matrix:
    """The plan of a campaign about to begin.

    `arms` keep the order they were given in: with the seed it makes the order of the places.

    Raises:
        KeyError: the site has no such scenario.

    """
    plan = loaded.site.plan_of(scenario)
    if plan is None:
        raise KeyError(scenario)
    begun: set[tuple[int, str]] = set()
    starts = []
    for place in places:
        if (place.block, place.lifetime) not in begun:
            begun.add((place.block, place.lifetime))
            starts.append(place.name)
    of_arms = plan.arm if isinstance(plan, TransferPlan) else loaded.site.arms
    tables = {"scenario": plan, "arms": {name: of_arms[name] for name in arms}}
    return Matrix(
        format=FORMAT,
        campaign_id=campaign_id,
        scenario=scenario,
        site=str(loaded.path),
        site_sha256=loaded.sha256,
        seed=seed,
        blocks=1 + max(place.block for place in places),
        arms=tuple(arms),
        # As JSON has them: what is read back must have the same digest.
        tables=json.loads(msgspec.json.encode(tables)),
        places=tuple(place.name for place in places),
        starts=tuple(starts),
        start_estimate_s=plan.start_estimate_s,
        cell_estimate_s=plan.cell_estimate_s,
        started_wall_ns=time.time_ns(),
    )
