"""What a value of a site file may be, and what a table can find wrong with itself.

The types are the only schema: `description` is how a fault says what to write, and `extra` says
what a name must be a name of, or that a list holds nothing twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from collections.abc import Iterator

Count = Annotated[int, Meta(ge=1, description="a whole number of at least 1")]
Natural = Annotated[int, Meta(ge=0, description="a whole number of at least 0")]
Port = Annotated[int, Meta(ge=1, le=65_535, description="a port from 1 to 65535")]
Seconds = Annotated[float, Meta(gt=0, description="a number of seconds above 0")]
Estimate = Annotated[float, Meta(ge=0, description="a number of seconds of at least 0")]
Positive = Annotated[float, Meta(gt=0, description="a number above 0")]
# A half-precision number takes two bytes: less is no weight.
Bytes = Annotated[int, Meta(ge=2, description="a whole number of at least 2 bytes")]
Setting = int | float | str | bool
# A shaped device has its directory filled in later.
Folder = Annotated[
    str, Meta(pattern="^[/{]", description="an absolute path", examples=["/mnt/array/r8"])
]

HostName = Annotated[str, Meta(extra={"names": "hosts"})]
DeviceName = Annotated[str, Meta(extra={"names": "devices"})]
InstanceName = Annotated[str, Meta(extra={"names": "instances"})]
ArmName = Annotated[str, Meta(extra={"names": "arms"})]
ScenarioName = Annotated[str, Meta(extra={"names": "scenarios"})]

ONCE = Meta(extra={"once": True})
SOME = Meta(extra={"once": True}, min_length=1)
Levels = Annotated[tuple[Count, ...], SOME]
Names = Annotated[tuple[str, ...], SOME]


class Fault(NamedTuple):
    """One thing wrong with a site file."""

    where: str  # the key, from the table that found the fault
    what: str
    next_step: str


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the site file."""

    def faults(self) -> Iterator[Fault]:
        """Contradictions between keys of this table, each of which is valid by itself."""
        yield from ()
