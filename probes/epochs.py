"""Epochs: within one, the counters of a device may be subtracted; across two, never.

An epoch ends when a counter that only grows went back, when a device came back after it was gone,
or when its identity changed. The kernel's millisecond counters are 32 bits wide and wrap after
49.7 days of busy time. A wrap ends the epoch like a restart; the cause written beside it lets a
person tell the two apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class EpochTracker:
    """Remembers the last counters and identity of each device, and counts its epochs from 0."""

    def __init__(self) -> None:
        self._epoch: dict[str, int] = {}
        self._last: dict[str, dict[str, float]] = {}
        self._identity: dict[tuple[str, str], str] = {}
        self._gone: set[str] = set()

    def current(self, device: str) -> int:
        """The epoch the device is in."""
        return self._epoch.get(device, 0)

    def counters(self, device: str, values: Mapping[str, float]) -> str | None:
        """Take growing counters; the cause when they end an epoch, else None."""
        cause = None
        last = self._last.setdefault(device, {})
        if device in self._gone:
            self._gone.discard(device)
            cause = "came back after it was absent"
        for name, value in values.items():
            before = last.get(name)
            if before is not None and value < before:
                cause = cause or f"{name} went back from {before} to {value}"
        if cause is not None:
            self._advance(device)
            last.clear()
        last.update(values)
        return cause

    def identity(self, device: str, aspect: str, identity: str | None) -> str | None:
        """Take one aspect of a device's identity (None: not known now); the cause on a change."""
        if identity is None:
            return None
        before = self._identity.get((device, aspect))
        self._identity[device, aspect] = identity
        if before is None or before == identity:
            return None
        self._advance(device)
        # Counters of the former device say nothing about those of its successor.
        self._last.pop(device, None)
        return f"{aspect} changed from {before} to {identity}"

    def gone(self, device: str) -> None:
        """Note that a device which had been read is absent; its return is a new epoch."""
        if device in self._last:
            self._gone.add(device)

    def _advance(self, device: str) -> None:
        self._epoch[device] = self.current(device) + 1
