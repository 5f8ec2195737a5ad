"""Absolute deadlines: tick n is due at start + n x period, however long the ticks before it took.

A tick that could not start before the next one was due is missed. Missed ticks are counted, never
made up for: two samples taken at the same late instant would say nothing new. Each miss is noted
with how late its probe was and what the thread did before, so that the cause can be looked for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import reason_of
from ..samples import Batch, Stopwatch, samples_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
# Of a recorder that is late for minutes: enough to see why, not a text without end.
_NOTES_MAX = 8


def guarded(probe: str, sample: Callable[[], Sequence[Batch]]) -> Sequence[Batch]:
    """Let a probe sample; an exception becomes a row with its reason, and recording goes on."""
    watch = Stopwatch()
    try:
        return sample()
    except Exception as error:  # noqa: BLE001 - one bad read must not end the series
        return [watch.batch(probe, samples_of("-", reasons={"sample": reason_of(error)}))]


@dataclass(slots=True, kw_only=True)
class Task:
    """One probe with its period. `missed_ticks` grows; `due_ns` is the next deadline.

    `notes` say of each miss how late and after what; `worst_late_ns` is the latest start. The
    recorder reports them with `take_notes`, from another thread.
    """

    name: str
    period_ns: int
    sample: Callable[[], Sequence[Batch]]
    due_ns: int = 0
    missed_ticks: int = 0
    worst_late_ns: int = 0
    notes: list[str] = field(default_factory=list)

    def advance(self, started_ns: int, before: str = "nothing") -> None:
        """Set the next deadline after the tick that started at `started_ns`.

        `before` is what the thread did last, for the note of a miss.
        """
        late_ns = max(0, started_ns - self.due_ns)
        missed = late_ns // self.period_ns
        self.worst_late_ns = max(self.worst_late_ns, late_ns)
        if missed:
            self.missed_ticks += missed
            if len(self.notes) < _NOTES_MAX:
                self.notes.append(
                    f"{missed} missed, {late_ns // _NS_PER_MS} ms late at {started_ns}, "
                    f"after {before}"
                )
        self.due_ns += (missed + 1) * self.period_ns

    def take_notes(self) -> str | None:
        """The notes since the last time; None when no tick was missed."""
        notes, self.notes = self.notes, []
        return "; ".join(notes) or None


class Scheduler:
    """Runs tasks in one thread until told to stop. Tests give a clock and an event of their own."""

    def __init__(
        self,
        tasks: Sequence[Task],
        emit: Callable[[Batch], None],
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._tasks = list(tasks)
        self._emit = emit
        self._clock_ns = clock_ns
        self._before = "its start"

    def run(self, stop: Event) -> None:
        """Sample until `stop` is set, then once more, so that the end of the window is covered."""
        start_ns = self._clock_ns()
        for task in self._tasks:
            task.due_ns = start_ns
        while self._tasks and not stop.is_set():
            wait_ns = self._next_ns() - self._clock_ns()
            if wait_ns > 0 and stop.wait(wait_ns / NS_PER_S):
                break
            self._run_due()
        for task in self._tasks:
            # A recorder that was held up until the very end missed ticks as well.
            now_ns = self._clock_ns()
            if task.due_ns <= now_ns:
                task.advance(now_ns, self._before)
            self._run(task)

    def _run_due(self) -> None:
        # In the order given: the probe that must not be late comes first.
        for task in self._tasks:
            now_ns = self._clock_ns()
            if task.due_ns <= now_ns:
                task.advance(now_ns, self._before)
                self._run(task)
        self._before = "waiting" if self._clock_ns() < self._next_ns() else self._before

    def _next_ns(self) -> int:
        return min(task.due_ns for task in self._tasks)

    def _run(self, task: Task) -> None:
        begin_ns = self._clock_ns()
        for batch in guarded(task.name, task.sample):
            self._emit(batch)
        took_ms = (self._clock_ns() - begin_ns) // _NS_PER_MS
        self._before = f"{task.name} took {took_ms} ms"
