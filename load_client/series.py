"""How many requests were in flight, and what is wrong with that: `raw/load-*.jsonl` of a run.

Rows, by `kind`
    in_flight   `mono_ns`, `in_flight`: the level at a tick of 100 ms
    slice       a time slice of a soak: begin, end, requests sent and ended by outcome, memory
    finding     a line for a person: the load was not the load that was asked for

A level is a number of requests sent and not ended. Every change of it is counted, not only ticks.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# A request that waits this long for its slot's send has met a client, not a server: a hundredth
# of the shortest TTFT anybody published for these loads (1 s).
LATE_SEND_NS = 10_000_000
_STATM_RESIDENT = 1  # second field of /proc/self/statm, in pages


@dataclass(slots=True)
class Series:
    """Levels of one phase. `wanted` is the plateau asked for; None for open loops."""

    wanted: int | None
    rows: list[dict[str, Any]] = field(default_factory=list)
    _held_ns: Counter[int] = field(default_factory=Counter)
    _since_ns: int | None = None  # None outside the window in which the plateau must hold
    _level: int = 0
    _watched: bool = False
    _until_fall: bool = False

    @property
    def watched(self) -> bool:
        """A window was opened, whether or not it still is."""
        return self._watched

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
        self._since_ns, self._watched, self._until_fall = now_ns, True, until_fall

    def release(self, now_ns: int) -> None:
        """From now on it may fall: no work is left, or a burst's first request ended."""
        self.moved(now_ns, self._level)
        self._since_ns = None

    def tick(self, now_ns: int) -> None:
        """Note the level for the series."""
        self.rows.append({"kind": "in_flight", "mono_ns": now_ns, "in_flight": self._level})

    def plateau(self) -> tuple[int, float] | None:
        """The level held longest and its share of the window; None when there was no window."""
        total_ns = self._held_ns.total()
        if not total_ns:
            return None
        level, held_ns = self._held_ns.most_common(1)[0]
        return level, held_ns / total_ns

    def finding(self) -> str | None:
        """What a reader must know about the plateau; None when it was as asked for."""
        if self.wanted is None or not self._watched:
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
class Slices:
    """Counts of equal stretches of a soak, so that a slow change shows."""

    length_ns: int
    begin_ns: int
    sent: int = 0
    ended: Counter[str] = field(default_factory=Counter)

    def cut(self, now_ns: int, *, last: bool = False) -> dict[str, Any] | None:
        """The row of the slice that is over; None while it runs."""
        if not last and now_ns - self.begin_ns < self.length_ns:
            return None
        row = {
            "kind": "slice",
            "begin_ns": self.begin_ns,
            "end_ns": now_ns,
            "sent": self.sent,
            "ended": dict(self.ended),
            "resident_bytes": resident_bytes(),
        }
        self.begin_ns, self.sent, self.ended = now_ns, 0, Counter()
        return row


def resident_bytes() -> int | None:
    """Memory of this process; None where the kernel does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - each slice
            pages = int(statm.read().split()[_STATM_RESIDENT])
    except (OSError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
