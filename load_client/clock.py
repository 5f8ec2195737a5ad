"""The two clocks of a host, and the conversion from one to the other.

Every instant this client reports is on CLOCK_MONOTONIC. The kernel stamps arriving packets on
CLOCK_REALTIME, so its stamps are shifted by an offset measured before, during and after the burst.
The kernel slews both clocks together; their offset moves only when the wall clock is *set*. An
offset that moved therefore means a step, and the kernel stamps of that burst are not used.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

NS_PER_S = 1_000_000_000
# Reading the wall clock between two monotonic reads takes 0.1-0.3 us when nothing interferes. A
# wider pair was interrupted in between, so its offset is less exact.
GOOD_WIDTH_NS = 2_000
MIN_TRIES, MAX_TRIES = 7, 200
# Two good samples differ by less than their widths; 50 us is far above that and still below
# anything that a TTFT in milliseconds could show.
STEP_TOLERANCE_NS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSample:
    """Wall clock less monotonic clock at one instant; true within `width_ns`."""

    mono_ns: int
    offset_ns: int
    width_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The host's clocks, in integers of nanoseconds; tests give other ones."""

    mono_ns: Callable[[], int] = time.monotonic_ns
    wall_ns: Callable[[], int] = time.time_ns

    def sample(self) -> OffsetSample:
        """The offset by the narrowest of at least seven pairs of reads, more while all are wide."""
        best = self._pair()
        for attempt in range(1, MAX_TRIES):
            if attempt >= MIN_TRIES and best.width_ns <= GOOD_WIDTH_NS:
                break
            best = min(best, self._pair(), key=lambda one: one.width_ns)
        return best

    def _pair(self) -> OffsetSample:
        before_ns = self.mono_ns()
        wall_ns = self.wall_ns()
        width_ns = self.mono_ns() - before_ns
        middle_ns = before_ns + width_ns // 2
        return OffsetSample(mono_ns=middle_ns, offset_ns=wall_ns - middle_ns, width_ns=width_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockMap:
    """From wall to monotonic instants over one burst: a straight line between two offsets."""

    first: OffsetSample
    last: OffsetSample
    spread_ns: int  # largest less smallest offset seen in the burst

    @property
    def stepped(self) -> bool:
        """The wall clock was set while the burst ran."""
        return self.spread_ns > STEP_TOLERANCE_NS + self.first.width_ns + self.last.width_ns

    def mono_ns(self, wall_ns: int) -> int:
        """The monotonic instant of a wall instant; meaningless when `stepped`."""
        return self.monos_ns([wall_ns])[0]

    def monos_ns(self, walls_ns: Iterable[int]) -> list[int]:
        """The monotonic instants of wall instants."""
        offset_ns, begin_ns = self.first.offset_ns, self.first.mono_ns
        elapsed_ns = self.last.mono_ns - begin_ns
        moved_ns = self.last.offset_ns - offset_ns
        if elapsed_ns <= 0 or not moved_ns:
            return [wall_ns - offset_ns for wall_ns in walls_ns]
        return [
            (instant_ns := wall_ns - offset_ns) - moved_ns * (instant_ns - begin_ns) // elapsed_ns
            for wall_ns in walls_ns
        ]


def clock_map(samples: Sequence[OffsetSample]) -> ClockMap:
    """The map of a burst from the offsets sampled around and during it, in order; at least one."""
    offsets = [sample.offset_ns for sample in samples]
    return ClockMap(first=samples[0], last=samples[-1], spread_ns=max(offsets) - min(offsets))


def window(samples: Sequence[OffsetSample], begin_ns: int | None) -> Sequence[OffsetSample]:
    """The samples from the last one at or before `begin_ns` on; all of them for None."""
    if begin_ns is None:
        return samples
    before = sum(1 for sample in samples if sample.mono_ns <= begin_ns)
    return samples[max(0, before - 1) :]
