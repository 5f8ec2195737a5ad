"""What a probe is: the settings it takes, how it starts, how often it samples, how it is tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .plan import Plan, Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .samples import Batch

T = TypeVar("T")


class Sampler(Protocol):
    """A running probe."""

    def sample(self) -> Sequence[Batch]:
        """Read now. Raises nothing a reader must handle: a failed read is a sample's reason."""


class Thread(Enum):
    """Which thread samples a probe."""

    URGENT = "no file here ever waits for a driver, so that no sample comes late"
    PATIENT = "a driver's lock or an array's controller may hold this thread up"
    OWN = "a peer or driver may answer after seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a probe starts from: the plan, and where the kernel's files are found."""

    plan: Plan = field(default_factory=Plan)
    proc_root: Path = Path("/proc")
    sys_root: Path = Path("/sys")
    _shared: dict[object, Any] = field(default_factory=dict)

    def once(self, make: Callable[[Context], T]) -> T:
        """What `make` gives for this context; made with the first call, shared by later ones."""
        if make not in self._shared:
            self._shared[make] = make(self)
        made: T = self._shared[make]
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Whether a probe works on this host. `works` is "yes", "no", "partly" or "-" (not tried)."""

    works: str
    detail: str  # what was found, or why it does not work


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The declaration of a probe; `catalogue.PROBES` lists them all."""

    name: str  # the column `probe` of its rows
    start: Callable[[Context], Mapping[str, Sampler]]  # by task name; empty: not asked for
    check: Callable[[Context], Status]
    rate_hz: float
    thread: Thread
    settings: tuple[Setting[Any], ...] = ()
