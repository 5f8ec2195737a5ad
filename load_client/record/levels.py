"""How many requests were in flight, and whether that is what was asked for: `raw/load-*.jsonl`.

Rows, by `kind`
    in_flight   `mono_ns`, `in_flight`: the level at a tick of 100 ms
    slice       a time slice of a soak: begin, end, requests sent and ended by outcome, memory
    finding     a line for a person: the load differed from the plan

The level is the number of requests sent and not ended. Every change of it is counted, not only
ticks.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# A request sent so long after its slot waited for the client, not for the server: a hundredth of
# the shortest TTFT that was published for these loads (1 s).
LATE_SEND_NS = 10_000_000
_STATM_RESIDENT = 1  # second field of /proc/self/statm, in pages


@dataclass(slots=True)
class InFlightLevels:
    """Levels of one phase. `wanted` is the plateau asked for; None for open loops."""

    wanted: int | None
    rows: list[dict[str, Any]] = field(default_factory=list)
    watched: bool = False  # a window in which the plateau must hold was opened, perhaps closed
    _held_ns: Counter[int] = field(default_factory=Counter)
    _since_ns: int | None = None  # None outside that window
    _level: int = 0
    _until_fall: bool = False

    @property
    def full(self) -> bool:
        """The level is what was asked for."""
        return self._level == self.wanted

    def moved(self, now_ns: int, level: int) -> None:
        """The level changed."""
        if self._since_ns is not None:
            self._held_ns[self._level] += max(0, now_ns - self._since_ns)
            falls = self._until_fall and level < self._level
            self._since_ns = None if falls else now_ns
        self._level = level

    def expect(self, now_ns: int, *, until_fall: bool = False) -> None:
        """From now on the level must be `wanted`; in a burst until the first request ends."""
        self._since_ns, self.watched, self._until_fall = now_ns, True, until_fall

    def release(self, now_ns: int) -> None:
        """From now on the level may fall: nothing is left to send."""
        self.moved(now_ns, self._level)
        self._since_ns = None

    def tick(self, now_ns: int) -> None:
        """Keep the present level as a row."""
        self.rows.append({"kind": "in_flight", "mono_ns": now_ns, "in_flight": self._level})

    def plateau(self) -> tuple[int, float] | None:
        """The level held longest and its share of the window; None when there was no window."""
        total_ns = self._held_ns.total()
        if not total_ns:
            return None
        level, held_ns = self._held_ns.most_common(1)[0]
        return level, held_ns / total_ns

    def finding(self) -> str | None:
        """How the plateau differed from what was asked for; None when it did not."""
        if self.wanted is None or not self.watched:
            return None
        found = self.plateau()
        if found is None:
            return f"{self.wanted} requests in flight were asked for, none were held at all"
        level, share = found
        if level == self.wanted:
            return None
        return (
            f"{self.wanted} requests in flight were asked for, the plateau was {level}"
            f" ({share:.0%} of the time)"
        )


@dataclass(slots=True)
class TimeSlices:
    """Counts of equal stretches of a soak, so that a slow change shows."""

    length_ns: int
    begin_ns: int
    sent: int = 0
    ended: Counter[str] = field(default_factory=Counter)

    def cut(self, now_ns: int, *, last: bool = False) -> list[dict[str, Any]]:
        """The row of the slice that is over; none while it runs."""
        if not last and now_ns - self.begin_ns < self.length_ns:
            return []
        row = {
            "kind": "slice",
            "begin_ns": self.begin_ns,
            "end_ns": now_ns,
            "sent": self.sent,
            "ended": dict(self.ended),
            "resident_bytes": _resident_bytes(),
        }
        self.begin_ns, self.sent, self.ended = now_ns, 0, Counter()
        return [row]


def _resident_bytes() -> int | None:
    """Memory of this process; None where the kernel does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[_STATM_RESIDENT])
    except (OSError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
