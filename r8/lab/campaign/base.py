"""What every campaign has, with a KV engine or without: its ground, its cells, its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.lab.site import matrix

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from r8.lab.campaign.testbed import Testbed
    from r8.lab.machine.progress import Progress
    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.file import LoadedSite
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place


@dataclass(slots=True, kw_only=True)
class CampaignBase:
    """A scenario being run on a prepared ground."""

    loaded: LoadedSite
    scenario: str
    matrix: Matrix
    places: tuple[Place, ...]
    runs_root: Path
    supervisor: Supervisor
    testbed: Testbed
    progress: Progress

    @property
    def folder(self) -> Path:
        """Where this scenario's runs lie."""
        return self.runs_root / self.scenario

    def finished(self, place: Place) -> Path | None:
        """The finished run of a cell, if an earlier session of this campaign left one."""
        return matrix.finished_run(self.folder, self.matrix.campaign_id, place.name)

    def begin(self, place: Place) -> str:
        """Say that a cell begins; returns the id of its run."""
        self.progress.start(f"block {place.block} {place.arm} c{place.concurrency}")
        return matrix.next_run_id(self.folder, self.matrix.campaign_id, place.name)

    def outline(self, levels: Sequence[int]) -> dict[str, Any]:
        """The whole campaign as each of its runs states it: a cell left out can be named."""
        return {
            "arms": sorted(self.matrix.arms),
            "levels": list(levels),
            "blocks": self.matrix.blocks,
            "places": list(self.matrix.places),
        }
