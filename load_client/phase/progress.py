"""How far a phase is: one line kept current on a terminal, a line every 10 s elsewhere."""

from __future__ import annotations

import time
from typing import TextIO

TERMINAL_EVERY_S = 0.2
PLAIN_EVERY_S = 10.0


def _visible(text: str) -> str:
    """Words of an engine may be in it: what a terminal would obey is shown as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class PhaseProgress:
    """Writes to `stream` (stderr); says nothing when `quiet`, except `warn`."""

    def __init__(self, stream: TextIO, label: str, total: int, *, quiet: bool = False) -> None:
        """`total` counts requests of the whole phase."""
        self._stream, self._label, self._total, self._quiet = stream, label, total, quiet
        self._terminal = stream.isatty()
        self._begin_s = time.monotonic()
        self._shown_s = self._begin_s
        self._line_open = False

    def update(self, done: int, in_flight: int) -> None:
        """Show the state when enough time has passed."""
        now_s = time.monotonic()
        every_s = TERMINAL_EVERY_S if self._terminal else PLAIN_EVERY_S
        if self._quiet or now_s - self._shown_s < every_s:
            return
        self._shown_s = now_s
        elapsed_s = now_s - self._begin_s
        rest = f", ETA {elapsed_s / done * (self._total - done):.0f} s" if done else ""
        text = f"{self._label}: {done}/{self._total} done, {in_flight} in flight, {elapsed_s:.0f} s"
        if self._terminal:
            self._stream.write(f"\r\x1b[K{text}{rest}")
            self._line_open = True
        else:
            self._stream.write(f"{text}{rest}\n")
        self._stream.flush()

    def note(self, text: str) -> None:
        """A line of its own."""
        if not self._quiet:
            self._write(f"{self._label}: {text}")

    def warn(self, text: str) -> None:
        """A line that even `quiet` does not swallow."""
        self._write(f"{self._label}: warning: {text}")

    def _write(self, text: str) -> None:
        text = _visible(text)
        self._stream.write(f"\r\x1b[K{text}\n" if self._line_open else f"{text}\n")
        self._line_open = False
        self._stream.flush()
