"""A scenario of a site before it runs: what it requires, and the commands it would run.

Each kind of scenario has one of these, as it has a kind of cells in `r8.lab.campaign.campaign`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from r8.lab.preflight.requirement import Requirement
    from r8.lab.site.arms import Plan, TransferPlan
    from r8.lab.site.file import LoadedSite, Site
    from r8.lab.site.machines import Rehearsal
    from r8.lab.site.plan import Place
    from r8.lab.testbed import Testbed


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(ABC):
    """One scenario on one site."""

    loaded: LoadedSite
    name: str

    @property
    def site(self) -> Site:
        """The site as it was read."""
        return self.loaded.site

    @property
    @abstractmethod
    def plan(self) -> Plan | TransferPlan:
        """What this site gives the scenario to do."""

    @property
    @abstractmethod
    def calibrated(self) -> bool:
        """Whether devices are read by themselves before every block."""

    @abstractmethod
    def starts(self) -> int:
        """How often engines or workers are started in a block."""

    @abstractmethod
    def pools(self) -> dict[str, int]:
        """Bytes that lie on each device at once."""

    @abstractmethod
    def memory_bytes(self, rehearsal: Rehearsal) -> int:
        """Bytes of this machine's memory that a rehearsal takes."""

    @abstractmethod
    def of_plan(self) -> Iterator[Requirement]:
        """What the scenario's own numbers must satisfy."""

    def of_rehearsal(self, rehearsal: Rehearsal) -> Iterator[Requirement]:  # noqa: ARG002
        """What the software of a rehearsal must be, before it is built."""
        yield from ()

    @abstractmethod
    def of_software(self) -> Iterator[Requirement]:
        """What must be installed where the engine runs."""

    @abstractmethod
    def commands(
        self, testbed: Testbed, ids: Mapping[Place, str], block: Sequence[Place], folder: Path
    ) -> Iterator[str]:
        """The commands of cells that share a start, given with their run ids, and comments.

        `block` holds every cell of their block, `folder` the runs of the scenario.
        """

    def ending(self) -> Iterator[str]:
        """What is done once, after the last cell."""
        yield from ()
