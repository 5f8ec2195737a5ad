"""What a probe hands over: single readings, grouped by the one read that took them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# The largest integer a row may carry: the tables store signed 64-bit integers.
INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One counter or state of one device at the instant of its sample.

    Exactly one of these says something: `value` (integer), `value_real` (not an integer at its
    source; may stand beside its integer `value`), `text` (a word), or `reason` (why there is
    none). A reading that could not be taken is a reason, never a 0.
    """

    device: str
    counter: str
    value: int | None = None
    value_real: float | None = None
    text: str | None = None
    reason: str | None = None
    epoch: int = 0

    def __post_init__(self) -> None:
        """Refuse a reading that says nothing, or one that says it has nothing and something."""
        silent = self.value is None and self.value_real is None and self.text is None
        if silent == (self.reason is None):
            raise ValueError(f"{self.device} {self.counter}: a value or a reason, not both")
        if self.value is not None and abs(self.value) > INT64_MAX:
            raise ValueError(f"{self.device} {self.counter}: {self.value} exceeds 64 bits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The readings of one read. `mono_ns` and `wall_ns` are taken right after it."""

    probe: str
    mono_ns: int
    wall_ns: int
    read_cost_ns: int
    readings: Sequence[Reading]


class Stopwatch:
    """Started before a read; `sample` stamps the instant after it and what it cost."""

    __slots__ = ("_before_ns", "_mono_ns", "_wall_ns")

    def __init__(self) -> None:
        self._before_ns = time.monotonic_ns()
        self._mono_ns: int | None = None
        self._wall_ns = 0

    def stop(self) -> None:
        """Mark the end of the read; what is done with the bytes afterwards costs no read time."""
        self._mono_ns = time.monotonic_ns()
        self._wall_ns = time.time_ns()

    def sample(self, probe: str, readings: Sequence[Reading]) -> Sample:
        """The readings with the instant of `stop`, or of now."""
        if self._mono_ns is None:
            self.stop()
        mono_ns = self._mono_ns or 0
        return Sample(
            probe=probe,
            mono_ns=mono_ns,
            wall_ns=self._wall_ns,
            read_cost_ns=mono_ns - self._before_ns,
            readings=readings,
        )
