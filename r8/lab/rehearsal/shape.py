"""The shape of a modelled storage device, and the arithmetic of its pacing.

A read waits for its turn on a line of the given bandwidth, then for the latency. Reads in flight
share the line but wait out their latencies together, which is why a reader with one request at a
time sees a fraction of what thirty-two see.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a device gives. `None` for a write bandwidth means writes are not slowed.

    `read_ahead_kib` and `max_sectors_kib` are the block queue's: the kernel reads ahead of a
    serial reader by about two windows, and cuts what it asks into requests of at most the latter.
    """

    read_bandwidth_bytes_per_s: int
    read_latency_ns: int
    write_bandwidth_bytes_per_s: int | None = None
    read_ahead_kib: int = 128
    max_sectors_kib: int = 256

    def __post_init__(self) -> None:
        """Refuse a device that would never answer."""
        if self.read_bandwidth_bytes_per_s <= 0 or self.write_bandwidth_bytes_per_s == 0:
            raise ValueError("a bandwidth must be positive")
        if self.read_latency_ns < 0:
            raise ValueError("a latency cannot be negative")
        if self.read_ahead_kib < 0 or self.max_sectors_kib <= 0:
            raise ValueError("block queue settings must be positive")


class Line:
    """A line of one bandwidth: transfers queue on it one after another."""

    def __init__(self, bandwidth_bytes_per_s: int | None, latency_ns: int) -> None:
        """`None` is a line without end."""
        self._guard = threading.Lock()
        self._bandwidth = bandwidth_bytes_per_s
        self._latency_ns = latency_ns
        self._free_ns = 0

    def set(self, bandwidth_bytes_per_s: int | None, latency_ns: int) -> None:
        """Change the line; transfers already admitted keep their instant."""
        with self._guard:
            self._bandwidth = bandwidth_bytes_per_s
            self._latency_ns = latency_ns

    def admit(self, size_bytes: int, now_ns: int) -> int:
        """The instant at which a transfer asked for now is complete, on the same clock.

        The line's own time advances by size / bandwidth whatever the sleeper's precision, so a
        late wake-up delays one reader and never lowers the sustained rate.
        """
        with self._guard:
            start_ns = max(self._free_ns, now_ns)
            if self._bandwidth is not None:
                start_ns += size_bytes * _NS_PER_S // self._bandwidth
            self._free_ns = start_ns
            return start_ns + self._latency_ns
