"""What tells the two kinds of cells apart: with a KV engine, and without one.

A campaign finds the cell, begins its run directory and seals it. What happens in between, and what
the cells of a campaign share, is its kind's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.lab.site.matrix import finished_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from r8.lab.instruments.recording import Recording
    from r8.lab.site.file import LoadedSite, Site
    from r8.lab.site.machines import Host
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place
    from r8.lab.testbed import Testbed
    from r8.model import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(ABC):
    """One cell that is about to be measured."""

    run: Run  # its provenance
    device: str  # of the site, whose bytes it moves
    host: Host  # that holds the device
    calibration: tuple[dict[str, Any], ...]  # rows about the device and the load client
    prelude: Path | None = None  # rows of phases that an earlier cell recorded for this one as well

    @abstractmethod
    def begin(self, recording: Recording) -> dict[str, Any]:
        """Let the run hold what is there already; the detail of its event `cell_begin`."""

    @abstractmethod
    def measure(self, recording: Recording) -> None:
        """Every phase, in order.

        Raises:
            R8Error: one failed.

        """


@dataclass(slots=True, kw_only=True)
class CellKind(ABC):
    """The cells of one campaign."""

    loaded: LoadedSite
    matrix: Matrix
    places: tuple[Place, ...]
    folder: Path  # where the runs of this scenario lie
    testbed: Testbed

    @staticmethod
    @abstractmethod
    def plans(site: Site) -> Mapping[str, object]:
        """The scenarios of this kind that a site has."""

    @abstractmethod
    def cell(self, place: Place, run_id: str) -> Cell:
        """The cell at a place, with everything measured that must be known before it begins."""

    def finished(self, place: Place) -> Path | None:
        """The finished run of a cell, if this campaign has one."""
        return finished_run(self.folder, self.matrix.campaign_id, place.name)

    # Optional: a kind may have nothing to refuse, and nothing to share.
    @staticmethod  # noqa: B027
    def require(loaded: LoadedSite, matrix: Matrix) -> None:
        """Refuse a plan that these cells cannot run, before anything is built.

        Raises:
            SiteError: what in the site file stands against it.

        """

    def ended(self, place: Place) -> None:  # noqa: B027
        """Release what only this cell needed; its run is sealed."""

    def close(self) -> None:  # noqa: B027
        """End what still runs."""

    def restore(self) -> None:  # noqa: B027
        """Leave the machines as the campaign found them."""
