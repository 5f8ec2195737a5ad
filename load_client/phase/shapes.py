"""The load shapes: which request is sent when. The running phase does everything else.

A shape calls `running.gate()` once before each simultaneous start: it returns the instant at which
all processes of a plan start. While requests are in flight it polls the socket loop.
"""

from __future__ import annotations

import gc
from collections import deque
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ..clock import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..wire.connection import Connection
    from ..workload.requests import PlannedRequest
    from .running import RunningPhase

# `kill -9` in a loop loses at most this much of finished requests.
FLUSH_NS = 500_000_000
# An open loop does not stop to write when a slot is nearer than this, unless it is overdue.
QUIET_NS = 20_000_000
OVERDUE_NS = 1_000_000_000
# Long enough to connect to another host, short enough that no server drops the idle connection.
CONNECT_AHEAD_NS = 1_000_000_000
# A closed loop that does not hold its N by then has a plateau elsewhere.
FILLED_WITHIN_NS = 1_000_000_000
# Requests of a soak that are rendered before their turn comes.
AHEAD = 64


def run_shape(running: RunningPhase) -> None:
    """Send the whole phase; returns when nothing is in flight."""
    shape = running.plan.shape
    if shape == "burst":
        _bursts(running)
    elif shape in {"closed", "ramp", "soak"}:
        _closed(running, _Supply(running))
    else:
        _open(running)


def _bursts(running: RunningPhase) -> None:
    loop = running.loop
    for positions in running.workload.bursts():
        connections = [loop.buffer(running.make(position).connection) for position in positions]
        inside = running.plan.connect == "inside"
        ready = [] if inside else loop.connect_all(connections)
        with quiet_interpreter():
            loop.samples[:] = [running.clock.sample()]
            scheduled_ns = running.gate()
            if inside:
                for connection in connections:
                    connection.scheduled_ns, connection.eager = scheduled_ns, True
                    loop.open(connection)
            else:
                loop.release(ready, scheduled_ns)
            running.levels.expect(running.clock.mono_ns(), until_fall=True)
            while loop.active:
                loop.poll()
            # Rows hold no reference cycles: collecting garbage would only add a tenth to the time.
            running.collect()
            running.flush()
        loop.send_buffer.empty()


class _Supply:
    """The requests of a closed loop in order: further turns first, then new sessions."""

    def __init__(self, running: RunningPhase) -> None:
        self._running = running
        workload, endless = running.workload, running.plan.duration_s is not None
        self._rest = workload.endless_positions() if endless else workload.positions()
        ahead = max(AHEAD, workload.concurrency()) if endless else None  # None: all
        self._ready = deque(map(running.make, islice(self._rest, ahead)))
        self._turns: deque[PlannedRequest] = deque()
        self._until_ns: int | None = None

    def begin(self, now_ns: int) -> None:
        """The clock of a soak starts."""
        if self._running.plan.duration_s is not None:
            self._until_ns = now_ns + round(self._running.plan.duration_s * NS_PER_S)

    def take(self, now_ns: int) -> PlannedRequest | None:
        """The next to be sent; None when nothing is left."""
        if self._turns:
            return self._turns.popleft()
        if self._over(now_ns):
            return None
        if not self._ready:
            self.render_one()
        return self._ready.popleft() if self._ready else None

    def left(self, now_ns: int) -> bool:
        """Whether more would be sent if fewer were in flight."""
        return bool(self._turns) or (bool(self._ready) and not self._over(now_ns))

    def follow(self, planned: PlannedRequest | None) -> None:
        """Add the next turn of a conversation, if there is one."""
        if planned is not None:
            self._turns.append(planned)

    def render_one(self) -> None:
        """Prepare one more of a soak, so that a free slot never waits for long."""
        if len(self._ready) < AHEAD and (position := next(self._rest, None)) is not None:
            self._ready.append(self._running.make(position))

    def _over(self, now_ns: int) -> bool:
        return self._until_ns is not None and now_ns >= self._until_ns


def _closed(running: RunningPhase, supply: _Supply) -> None:
    loop, clock, levels = running.loop, running.clock, running.levels
    with quiet_interpreter():
        begin_ns = flushed_ns = running.gate()
        limit = _limit(running, begin_ns)
        supply.begin(begin_ns)
        full_ns = begin_ns + round((running.plan.ramp_s or 0) * NS_PER_S)
        while True:
            now_ns = clock.mono_ns()
            while len(loop.active) < limit(now_ns) and (one := supply.take(now_ns)) is not None:
                one.connection.eager = True
                loop.open(one.connection)
                one.connection.scheduled_ns = one.connection.opened_ns
            if not loop.active and not supply.left(now_ns):
                break
            loop.poll()
            late = now_ns >= full_ns + FILLED_WITHIN_NS
            if not levels.watched and (late or levels.full):
                levels.expect(clock.mono_ns())
            if loop.ended:
                for connection in running.collect():
                    supply.follow(running.next_turn(connection))
                if not supply.left(clock.mono_ns()):
                    levels.release(clock.mono_ns())
            supply.render_one()
            if now_ns - flushed_ns >= FLUSH_NS:
                flushed_ns = now_ns
                running.flush()


def _limit(running: RunningPhase, begin_ns: int) -> Callable[[int], int]:
    """How many may be in flight at an instant."""
    most = running.workload.concurrency()
    if running.plan.ramp_s is None:
        return lambda _now_ns: most
    ramp_ns = round(running.plan.ramp_s * NS_PER_S)
    return lambda now_ns: min(most, 1 + (most - 1) * max(0, now_ns - begin_ns) // ramp_ns)


def _open(running: RunningPhase) -> None:
    loop, clock = running.loop, running.clock
    offsets = running.workload.offsets()
    slots = deque((offsets[p], running.make(p).connection) for p in running.workload.positions())
    ahead_ns = CONNECT_AHEAD_NS if running.plan.connect == "before" else 0
    _sharpen_timers()
    with quiet_interpreter():
        flushed_ns = running.gate()
        start_ns = flushed_ns + ahead_ns
        unopened = deque(slots)
        while slots or loop.active:
            now_ns = clock.mono_ns()
            while unopened and start_ns + unopened[0][0] - ahead_ns <= now_ns:
                offset_ns, connection = unopened.popleft()
                connection.scheduled_ns = start_ns + offset_ns
                loop.open(connection)
            while slots and start_ns + slots[0][0] <= clock.mono_ns() and slots[0][1].opened_ns:
                _, connection = slots.popleft()
                if connection.connected_ns is not None and connection.ended is None:
                    loop.send(connection)
                else:
                    connection.eager = True
            loop.poll(_wake_ns(start_ns, ahead_ns, slots, unopened))
            running.collect()
            quiet = not slots or start_ns + slots[0][0] - clock.mono_ns() > QUIET_NS
            if now_ns - flushed_ns >= (FLUSH_NS if quiet else OVERDUE_NS):
                flushed_ns = now_ns
                running.flush()


def _wake_ns(
    start_ns: int,
    ahead_ns: int,
    slots: deque[tuple[int, Connection]],
    unopened: deque[tuple[int, Connection]],
) -> int | None:
    """The next instant at which something is to be sent or opened; None when nothing is."""
    due = [start_ns + slots[0][0]] if slots else []
    if unopened:
        due.append(start_ns + unopened[0][0] - ahead_ns)
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
