"""What a probe hands over: samples of single counters, in batches of one read each."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Larger numbers are error marks of drivers: the kernel's own counters are read as signed 64 bits.
INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One counter or state of one device.

    Exactly one of three says something: `value` (a number), `text` (a word or state), or `reason`
    (why there is neither). A counter that could not be read has a reason, never a 0. `epoch` grows
    when the device's earlier and later values must not be subtracted from each other.
    """

    device: str
    counter: str
    value: float | None = None
    text: str | None = None
    reason: str | None = None
    epoch: int = 0

    def __post_init__(self) -> None:
        """Refuse a sample that says nothing or two things at once, and what is no number."""
        if (self.value is None) + (self.text is None) + (self.reason is None) != 2:  # noqa: PLR2004
            raise ValueError(f"{self.device} {self.counter}: give a value, a text or a reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.device} {self.counter}: {self.value} is not finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The samples of one read, all of the same instant: `mono_ns` and `wall_ns`, just after it."""

    probe: str
    mono_ns: int
    wall_ns: int
    read_cost_ns: int
    samples: Sequence[Sample]


class Stopwatch:
    """Started before a read; `batch` stamps the instant after it and how long it took."""

    __slots__ = ("_before_ns", "_mono_ns", "_wall_ns")

    def __init__(self) -> None:
        self._before_ns = time.monotonic_ns()
        self._mono_ns: int | None = None
        self._wall_ns = 0

    def stop(self) -> None:
        """Mark the end of the read, so that parsing is not counted as read time."""
        self._mono_ns = time.monotonic_ns()
        self._wall_ns = time.time_ns()

    def batch(self, probe: str, samples: Sequence[Sample]) -> Batch:
        """The samples with the instant of `stop`, or of now."""
        if self._mono_ns is None:
            self.stop()
        mono_ns = self._mono_ns or 0
        return Batch(
            probe=probe,
            mono_ns=mono_ns,
            wall_ns=self._wall_ns,
            read_cost_ns=mono_ns - self._before_ns,
            samples=samples,
        )


def samples_of(
    device: str,
    values: Mapping[str, float] | None = None,
    texts: Mapping[str, str] | None = None,
    reasons: Mapping[str, str] | None = None,
    *,
    epoch: int = 0,
    causes: Iterable[str | None] = (),
) -> list[Sample]:
    """One sample per value, text and reason of a device.

    Each of `causes` that is there says why an epoch began: the samples `epoch_cause`.
    """
    found = [
        Sample(device=device, counter=counter, value=value, epoch=epoch)
        for counter, value in (values or {}).items()
    ]
    found += [
        Sample(device=device, counter=counter, text=text, epoch=epoch)
        for counter, text in (texts or {}).items()
    ]
    found += [
        Sample(device=device, counter=counter, reason=reason, epoch=epoch)
        for counter, reason in (reasons or {}).items()
    ]
    return found + [
        Sample(device=device, counter="epoch_cause", text=cause, epoch=epoch)
        for cause in causes
        if cause
    ]
