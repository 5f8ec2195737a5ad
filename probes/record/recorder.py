"""`record`: threads sample, the main thread writes and waits.

Writing is apart from sampling on purpose: an fsync that takes three seconds on a busy disk must
not be a hole in the series. Disks and processes are apart from everything that may block in the
kernel: a driver's statistics wait for a lock, an array's state for its controller. The main thread
ends the recording on a signal, at the end of standard input (the parent is gone), after a given
time, or when the journal cannot be written.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import resource
import select
import signal
import stat
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..catalogue import PROBES
from ..errors import EXIT_OK, ProbeError
from ..probe import Context, Thread
from ..samples import Batch, Sample, Stopwatch, samples_of
from .iostat import IOSTAT, IostatWitness
from .iostat import NAME as IOSTAT_NAME
from .journal import Encoder, Journal
from .schedule import NS_PER_S, Scheduler, Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from ..plan import Plan

NAME = "self"
# Rows reach the disk at least each second; the margin is for the write itself.
WRITE_INTERVAL_S = 0.8
# An engine that hangs must not keep the recorder from ending.
_JOIN_S = 1.0
# An engine has a busy thread on every core; at the same niceness one tick in 300 came too late.
NICENESS = -10
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NS_PER_MS = 1_000_000
_NS_PER_US = 1_000


def task_groups(context: Context) -> dict[str, list[Task]]:
    """Tasks of what the plan asks for, by the thread that samples them, most urgent first."""
    groups: dict[str, list[Task]] = {}
    for probe in PROBES:
        rate_hz = context.plan.rates_hz[probe.name]
        for name, sampler in (probe.start(context) if rate_hz else {}).items():
            task = Task(name=name, period_ns=round(NS_PER_S / rate_hz), sample=sampler.sample)
            thread = name if probe.thread is Thread.OWN else probe.thread.name
            groups.setdefault(thread, []).append(task)
    return groups


class SelfSampler:
    """What the recorder itself costs and what it missed, so that a gap is never silent."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks

    def sample(self) -> Sequence[Batch]:
        """CPU time of this process, and of each task what it missed since the start.

        `late_ticks` says of the ticks missed since the last sample how late they were.
        """
        cpu_ms = time.process_time_ns() // _NS_PER_MS
        samples = samples_of("-", {"cpu_ms": cpu_ms})
        for task in self._tasks:
            missed, late_us = task.missed_ticks, task.worst_late_ns // _NS_PER_US
            notes = task.take_notes()
            values = {"missed_ticks": missed, "worst_late_us": late_us}
            samples += samples_of(task.name, values, {"late_ticks": notes} if notes else {})
        return [Stopwatch().batch(NAME, samples)]


class Recorder:
    """One recording. `run` returns when it is over and everything is on the disk."""

    def __init__(
        self, plan: Plan, journal: Journal, raw_dir: Path | None, *, for_s: float | None = None
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._encoder = Encoder(plan.host)
        self._witness = IostatWitness(raw_dir) if plan[IOSTAT] and raw_dir else None
        self._for_s = for_s
        self._batches: queue.SimpleQueue[Batch] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._stopped_by: str | None = None
        self._own: SelfSampler | None = None
        # Signals write a byte here, so that the waiting main thread wakes at once.
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self, proc_root: Path = Path("/proc"), sys_root: Path = Path("/sys")) -> int:
        """Record until told to stop. Raises ProbeError when the journal cannot be written."""
        for number in _SIGNALS:
            # nohup ignores hang-ups for its child; that wish is kept.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._emit(texts={"started": f"probes {__version__} pid {os.getpid()}"})
        self._emit(texts={"plan": json.dumps(self._plan.row())})
        self._emit(values={"niceness": _prefer()})
        threads: list[threading.Thread] = []
        try:
            self._drain()
            self._start_witness()
            context = Context(plan=self._plan, proc_root=proc_root, sys_root=sys_root)
            threads = self._start_threads(task_groups(context))
            # What was imported and built until now lives to the end: collections may skip it.
            gc.freeze()
            self._write_until_stopped()
        finally:
            self._stop.set()
            self._finish(threads)
        return EXIT_OK

    def _emit(
        self,
        device: str = "-",
        values: dict[str, float] | None = None,
        texts: dict[str, str] | None = None,
    ) -> None:
        self._batches.put(Stopwatch().batch(NAME, samples_of(device, values, texts)))

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._stopped_by = self._stopped_by or signal.Signals(number).name

    def _start_witness(self) -> None:
        if self._witness is not None:
            self._batches.put(self._witness.start())
            return
        why = "no raw directory, give --out" if self._plan[IOSTAT] else "not in the plan"
        absent = Sample(device="-", counter="witness", reason=f"absent: {why}")
        self._batches.put(Stopwatch().batch(IOSTAT_NAME, [absent]))

    def _start_threads(self, groups: dict[str, list[Task]]) -> list[threading.Thread]:
        own = self._own = SelfSampler([task for group in groups.values() for task in group])
        task = Task(name=NAME, period_ns=NS_PER_S, sample=own.sample)
        groups.setdefault(Thread.PATIENT.name, []).append(task)
        threads = []
        for group in groups.values():
            scheduler = Scheduler(group, self._batches.put)
            # Daemons: an engine page that never comes must not keep the process alive.
            thread = threading.Thread(target=scheduler.run, args=(self._stop,), daemon=True)
            thread.start()
            threads.append(thread)
        return threads

    def _write_until_stopped(self) -> None:
        started = time.monotonic()
        watched = [self._wake_read, *_parent_pipe()]
        while self._stopped_by is None:
            wait_s = WRITE_INTERVAL_S
            if self._for_s is not None:
                left_s = started + self._for_s - time.monotonic()
                if left_s <= 0:
                    self._stopped_by = "elapsed"
                    break
                wait_s = min(wait_s, left_s)
            ready, _, _ = select.select(watched, [], [], wait_s)
            for fd in ready:
                # What a parent writes does not matter; that it closed its end does.
                if not os.read(fd, 4096) and fd != self._wake_read:
                    self._stopped_by = self._stopped_by or "stdin closed"
            self._drain()

    def _drain(self) -> None:
        # Bounded by what is there now: the samplers go on adding.
        waiting = range(self._batches.qsize())
        lines = [self._encoder.lines(self._batches.get()) for _ in waiting]
        if lines:
            self._journal.append("".join(lines))
        self._journal.sync()

    def _finish(self, threads: list[threading.Thread]) -> None:
        """Stop everything that was started, whatever the state of the journal."""
        deadline = time.monotonic() + _JOIN_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if self._own is not None:
            # Once more: what the other threads missed at the very end is known only now.
            for batch in self._own.sample():
                self._batches.put(batch)
        closing = self._witness.stop() if self._witness is not None else None
        if closing is not None:
            self._batches.put(closing)
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu_ms = round((usage.ru_utime + usage.ru_stime) * 1000)
            self._emit("iostat", values={"cpu_ms": cpu_ms})
        signal.set_wakeup_fd(-1)
        if self._stopped_by is not None:
            self._emit(texts={"stopped": self._stopped_by})
            self._drain()


def _prefer() -> int:
    """Be scheduled before busy engines where that is allowed; the niceness that came of it."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    return os.getpriority(os.PRIO_PROCESS, 0)


def _parent_pipe() -> list[int]:
    """Standard input, when its end means that the parent is gone: a pipe, socket or terminal.

    /dev/null and files are at their end from the start and say nothing.
    """
    try:
        fd = sys.stdin.fileno()
        mode = os.fstat(fd).st_mode
    except (OSError, ValueError, AttributeError):
        return []
    speaks = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
    return [fd] if speaks else []


def record(plan: Plan, out: Path | None, *, for_s: float | None) -> int:
    """Record to `out`/probes.jsonl and `out`/raw, or rows alone to standard output."""
    if out is None:
        journal = Journal(sys.stdout.fileno(), "standard output")
    else:
        if not out.is_dir():
            raise ProbeError(
                "there is no such directory",
                where=str(out),
                next_step="make it, or give --out a run directory",
            )
        journal = Journal.open(out / "probes.jsonl")
    code = Recorder(plan, journal, out / "raw" if out else None, for_s=for_s).run()
    journal.close()
    return code
