"""One invocation of a scenario: every cell of every block on one prepared testbed."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.errors import R8Error
from r8.evidence.finalise import finalise, recover
from r8.lab.campaign.kv_cell import KvCells
from r8.lab.campaign.transfer_cell import TransferCells
from r8.lab.instruments.probes import environment
from r8.lab.instruments.recording import Recording
from r8.lab.machine.progress import Progress
from r8.lab.site import matrix
from r8.lab.site.plan import places
from r8.lab.testbed import prepare

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from r8.lab.campaign.kind import Cell, CellKind
    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.arms import Arm, TransferArm
    from r8.lab.site.file import LoadedSite, Site
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place

KINDS: tuple[type[CellKind], ...] = (KvCells, TransferCells)


def kind_of(site: Site, scenario: str) -> type[CellKind]:
    """The kind of cells a scenario of the site has."""
    return next(kind for kind in KINDS if scenario in kind.plans(site))


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A scenario being run on a prepared testbed."""

    kind: CellKind
    progress: Progress

    @property
    def places(self) -> tuple[Place, ...]:
        """Every cell, in the order it is run."""
        return self.kind.places

    def arm(self, place: Place) -> Arm | TransferArm:
        """The arm of a cell, as the site file has it."""
        return self.kind.loaded.site.arms_of(self.kind.matrix.scenario)[place.arm]

    def run(self, place: Place) -> Path:
        """Run one cell; returns its finished directory. A finished cell is never run again.

        Raises:
            R8Error: the cell failed; what was recorded until then is kept as an incomplete run.

        """
        kind, progress = self.kind, self.progress
        done = kind.finished(place)
        if done is not None:
            return done
        progress.start(f"block {place.block} {place.arm} c{place.concurrency}")
        run_id = matrix.next_run_id(kind.folder, kind.matrix.campaign_id, place.name)
        try:
            path = self._record(kind.cell(place, run_id))
        except BaseException:
            # Also on Ctrl-C: an engine that lost its cell is of no use to the next one.
            kind.close()
            raise
        kind.ended(place)
        progress.finish()
        return path

    def _record(self, cell: Cell) -> Path:
        recording = Recording.begin(
            self.kind.folder.parent,
            cell.run,
            self.kind.loaded.text,
            prelude=cell.prelude,
            **self.kind.matrix.plan,
        )
        recording.event("cell_begin", **cell.begin(recording))
        recording.event("testbed", **self.kind.testbed.facts(cell.device))
        try:
            environment(recording, "begin", cell.host)
            for row in cell.calibration:
                recording.append("calibration", row)
            cell.measure(recording)
            environment(recording, "end", cell.host)
        except (R8Error, OSError):
            recording.close()
            recover(recording.directory)
            raise
        recording.event("run_end")
        recording.close()
        return finalise(recording.directory, complete=True)


def plan_campaign(
    loaded: LoadedSite,
    scenario: str,
    arms: Sequence[str],
    *,
    blocks: int,
    seed: int,
    campaign_id: str | None = None,
) -> tuple[Matrix, tuple[Place, ...]]:
    """What a new campaign will run; nothing is written yet."""
    cells = places(loaded.site, scenario, arms, blocks, seed)
    name = campaign_id or new_campaign_id(scenario)
    planned = matrix.new_matrix(name, loaded, scenario, arms, cells, seed)
    return planned, cells


@contextlib.contextmanager
def open_campaign(
    loaded: LoadedSite,
    planned: Matrix,
    cells: tuple[Place, ...],
    supervisor: Supervisor,
    *,
    runs_root: Path,
) -> Iterator[Campaign]:
    """Prepare the testbed, hand out the campaign, and put everything back afterwards."""
    scenario, folder = planned.scenario, runs_root / planned.scenario
    made = kind_of(loaded.site, scenario)
    made.require(loaded, planned)
    progress = _progress(planned, folder)
    progress.start("testbed")
    with prepare(loaded, scenario, supervisor, progress.say, planned.arms) as testbed:
        matrix.write_matrix(folder, planned)
        kind = made(loaded=loaded, matrix=planned, places=cells, folder=folder, testbed=testbed)
        try:
            yield Campaign(kind=kind, progress=progress)
        finally:
            progress.end()
            kind.close()
            kind.restore()


def _progress(planned: Matrix, folder: Path) -> Progress:
    """Progress of a campaign; its ETA counts what an earlier session of it has finished."""
    states = matrix.cell_states(folder, planned)
    done = sum(one.state == "done" for one in states)
    left = max(1, len(states) - done)
    return Progress(
        total=len(states), estimate_s=matrix.eta_s(planned, states) / left, already=done
    )


def new_campaign_id(scenario: str) -> str:
    """A campaign's id: its scenario and the instant it began; several begin at one instant."""
    return f"{scenario}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
