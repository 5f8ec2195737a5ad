"""The load shapes: who is sent when. Everything else is the phase's.

A shape calls `load.gate()` once before each simultaneous start: it returns the instant all
processes of a plan start at. While requests are in flight it turns the wire's loop.
"""

from __future__ import annotations

import gc
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .connection import Connection
    from .phase import Phase
    from .workload import Job

# `kill -9` in a loop loses at most this much of finished requests.
FLUSH_NS = 500_000_000
# An open loop does not stop to write when a slot is nearer than this, unless it is overdue.
QUIET_NS = 20_000_000
OVERDUE_NS = 1_000_000_000
# Long enough for a connection between hosts to stand, short enough that no server drops it idle.
CONNECT_AHEAD_NS = 1_000_000_000
# A closed loop that does not hold its N by then has a plateau elsewhere.
FILLED_WITHIN_NS = 1_000_000_000
# Requests of a soak that are rendered before their turn comes.
AHEAD = 64
_NS_PER_S = 1_000_000_000


def run_shape(load: Phase) -> None:
    """Send the whole phase; returns when nothing is in flight."""
    shape = load.plan.shape
    if shape == "burst":
        _bursts(load)
    elif shape in {"closed", "ramp", "soak"}:
        _closed(load, _Supply(load))
    else:
        _open(load)


def _bursts(load: Phase) -> None:
    wire = load.wire
    for positions in load.workload.bursts():
        connections = [wire.lay(load.make(position).connection) for position in positions]
        inside = load.plan.connect == "inside"
        ready = [] if inside else wire.connect_all(connections)
        with quiet_interpreter():
            wire.samples[:] = [load.clock.sample()]
            scheduled_ns = load.gate()
            if inside:
                for connection in connections:
                    connection.scheduled_ns, connection.eager = scheduled_ns, True
                    wire.open(connection)
            else:
                wire.release(ready, scheduled_ns)
            load.series.expect(load.clock.mono_ns(), until_fall=True)
            while wire.active:
                wire.turn()
            # Rows hold no cycles either: collecting among them would be a tenth of making them.
            load.collect()
            load.flush()
        wire.outbox.empty()


class _Supply:
    """The jobs of a closed loop in order: further turns first, then new sessions."""

    def __init__(self, load: Phase) -> None:
        self._load = load
        plan = load.plan
        self._endless = plan.duration_s is not None
        self._ready: deque[Job] = deque()
        self._turns: deque[Job] = deque()
        self._rest = load.workload.positions()
        self._until_ns: int | None = None
        if self._endless:
            self._rest = load.workload.endless_positions()
        else:
            self._ready.extend(load.make(position) for position in self._rest)
        while self._endless and len(self._ready) < max(AHEAD, load.workload.concurrency()):
            self._ready.append(load.make(next(self._rest)))

    def begin(self, now_ns: int) -> None:
        """The clock of a soak starts."""
        if self._load.plan.duration_s is not None:
            self._until_ns = now_ns + round(self._load.plan.duration_s * _NS_PER_S)

    def take(self, now_ns: int) -> Job | None:
        """The next to be sent; None when nothing is left."""
        if self._turns:
            return self._turns.popleft()
        if self._until_ns is not None and now_ns >= self._until_ns:
            return None
        if not self._ready and self._endless:
            return self._load.make(next(self._rest))
        return self._ready.popleft() if self._ready else None

    def left(self, now_ns: int) -> bool:
        """More would come if there were room."""
        over = self._until_ns is not None and now_ns >= self._until_ns
        return bool(self._turns) or (bool(self._ready) and not over)

    def follow(self, job: Job | None) -> None:
        """A conversation may go on."""
        if job is not None:
            self._turns.append(job)

    def render_one(self) -> None:
        """Prepare one more, so that a free slot never waits for long."""
        if self._endless and len(self._ready) < AHEAD:
            self._ready.append(self._load.make(next(self._rest)))


def _closed(load: Phase, supply: _Supply) -> None:
    wire, clock = load.wire, load.clock
    with quiet_interpreter():
        begin_ns = flushed_ns = load.gate()
        limit = _limit(load, begin_ns)
        supply.begin(begin_ns)
        full_ns = begin_ns + round((load.plan.ramp_s or 0) * _NS_PER_S)
        while True:
            now_ns = clock.mono_ns()
            while len(wire.active) < limit(now_ns) and (job := supply.take(now_ns)) is not None:
                job.connection.eager = True
                wire.open(job.connection)
                job.connection.scheduled_ns = job.connection.opened_ns
            if not wire.active and not supply.left(now_ns):
                break
            wire.turn()
            late = now_ns >= full_ns + FILLED_WITHIN_NS
            if not load.series.watched and (late or load.series.full):
                load.series.expect(clock.mono_ns())
            if wire.ended:
                for connection in load.collect():
                    supply.follow(load.next_turn(connection))
                if not supply.left(clock.mono_ns()):
                    load.series.release(clock.mono_ns())
            supply.render_one()
            if now_ns - flushed_ns >= FLUSH_NS:
                flushed_ns = now_ns
                load.flush()


def _limit(load: Phase, begin_ns: int) -> Callable[[int], int]:
    """How many may be in flight at an instant."""
    most = load.workload.concurrency()
    if load.plan.ramp_s is None:
        return lambda _now_ns: most
    ramp_ns = round(load.plan.ramp_s * _NS_PER_S)
    return lambda now_ns: min(most, 1 + (most - 1) * max(0, now_ns - begin_ns) // ramp_ns)


def _open(load: Phase) -> None:
    wire, clock = load.wire, load.clock
    offsets = load.workload.offsets()
    jobs = deque((offsets[p], load.make(p).connection) for p in load.workload.positions())
    ahead_ns = CONNECT_AHEAD_NS if load.plan.connect == "before" else 0
    _sharpen_timers()
    with quiet_interpreter():
        flushed_ns = load.gate()
        start_ns = flushed_ns + ahead_ns
        waiting = deque(jobs)
        while jobs or wire.active:
            now_ns = clock.mono_ns()
            while waiting and start_ns + waiting[0][0] - ahead_ns <= now_ns:
                offset_ns, connection = waiting.popleft()
                connection.scheduled_ns = start_ns + offset_ns
                wire.open(connection)
            while jobs and start_ns + jobs[0][0] <= clock.mono_ns() and jobs[0][1].opened_ns:
                _, connection = jobs.popleft()
                if connection.connected_ns is not None and connection.ended is None:
                    wire.send(connection)
                else:
                    connection.eager = True
            wire.turn(_wake_ns(start_ns, ahead_ns, jobs, waiting))
            load.collect()
            quiet = not jobs or start_ns + jobs[0][0] - clock.mono_ns() > QUIET_NS
            if now_ns - flushed_ns >= (FLUSH_NS if quiet else OVERDUE_NS):
                flushed_ns = now_ns
                load.flush()


def _wake_ns(
    start_ns: int,
    ahead_ns: int,
    jobs: deque[tuple[int, Connection]],
    waiting: deque[tuple[int, Connection]],
) -> int | None:
    """The next instant at which something is to be sent or opened; None when nothing is."""
    due = [start_ns + jobs[0][0]] if jobs else []
    if waiting:
        due.append(start_ns + waiting[0][0] - ahead_ns)
    return min(due, default=None)


def _sharpen_timers() -> None:
    """Ask the kernel not to round this process's sleeps up by its usual 50 microseconds."""
    with suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1", encoding="ascii")


@contextmanager
def quiet_interpreter() -> Iterator[None]:
    """No garbage collection inside: a pass over all objects costs milliseconds."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
