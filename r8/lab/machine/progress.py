"""Where a long piece of work stands: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from r8.console import progress


def _now() -> float:
    return time.monotonic()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02d}"


@dataclass(slots=True)
class Progress:
    """Counts cells; the ETA is the mean time of finished ones, or the site's estimate before."""

    total: int
    estimate_s: float
    already: int = 0  # cells an earlier session of this campaign finished
    done: int = 0
    label: str = ""
    _began: float = field(default_factory=_now)
    _cell_began: float = field(default_factory=_now)

    @property
    def eta_s(self) -> float:
        """Seconds left: whole cells to come plus what the present one should still need."""
        each = (self._cell_began - self._began) / self.done if self.done else self.estimate_s
        present = max(0.0, each - (time.monotonic() - self._cell_began))
        return max(0, self.total - self.already - self.done - 1) * each + present

    def start(self, label: str) -> None:
        """Begin a cell."""
        self.label = label
        self._cell_began = time.monotonic()

    def finish(self) -> None:
        """End a cell."""
        self.done += 1
        self._cell_began = time.monotonic()

    def say(self, what: str) -> None:
        """Show one step of the present cell."""
        place = min(self.already + self.done + 1, self.total)
        text = f"[{place}/{self.total}] {self.label}: {what}"
        text += f"  (elapsed {_clock(time.monotonic() - self._began)}, ETA {_clock(self.eta_s)})"
        progress(text)

    def end(self) -> None:
        """Leave the live line."""
        progress("", last=True)
