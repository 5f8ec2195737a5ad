"""`record`: threads sample, one per engine fetches pages, the main thread writes and waits.

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
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from . import __version__
from .disk import DiskProbe, TopologyProbe, WatchedDevices
from .engine import EngineProbe
from .errors import EXIT_OK, ProbeError
from .gpu import GpuProbe
from .host import HostProbe
from .iostat import IostatWitness
from .journal import Encoder, Journal
from .nfs import NfsProbe
from .nic import NicProbe
from .nvme import NvmeProbe
from .process import ProcessProbe
from .readings import Reading, Sample, Stopwatch
from .schedule import NS_PER_S, Scheduler, Task
from .topology import Sysfs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from .plan import Plan

# Rows reach the disk at least each second; the margin is for the write itself.
WRITE_INTERVAL_S = 0.8
# An engine that hangs must not keep the recorder from ending.
_ENGINE_JOIN_S = 1.0
# An engine has a busy thread on every core; at the same niceness one tick in 300 came too late.
NICENESS = -10
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NS_PER_MS = 1_000_000
_NS_PER_US = 1_000


def _task(
    plan: Plan, probe: str, sample: Callable[[], Sequence[Sample]], name: str | None = None
) -> Task:
    period_ns = round(NS_PER_S / plan.rates_hz[probe])
    return Task(name=name or probe, period_ns=period_ns, sample=sample)


def _kernel_tasks(plan: Plan, proc_root: Path, sys_root: Path) -> tuple[list[Task], list[Task]]:
    """The tasks that must not be late, the most urgent first; and those that may have to wait."""
    tasks: list[Task] = []
    slow: list[Task] = []
    watched: WatchedDevices | None = None
    if plan.block_devices:
        watched = WatchedDevices(plan.block_devices, Sysfs(sys_root, proc_root))
        # Resolved before the first sample, so that the layers below are in it. When that fails,
        # the topology probe's own first sample says why.
        with contextlib.suppress(OSError):
            watched.resolve()
        disk, topology = DiskProbe(watched, proc_root), TopologyProbe(watched)
        tasks.append(_task(plan, disk.name, disk.sample))
        slow.append(_task(plan, topology.name, topology.sample))
    if plan.engines:
        process = ProcessProbe(plan.engines, proc_root)
        tasks.append(_task(plan, process.name, process.sample))
    if plan.nics:
        nic = NicProbe(plan.nics, sys_root)
        slow.append(_task(plan, nic.name, nic.sample))
    if plan.nfs_dirs:
        nfs = NfsProbe(plan.nfs_dirs, proc_root)
        slow.append(_task(plan, nfs.name, nfs.sample))
    if plan.nvme:
        nvme = NvmeProbe(watched, sys_root)
        slow.append(_task(plan, nvme.name, nvme.sample))
    host = HostProbe(proc_root)
    slow.append(_task(plan, host.name, host.sample))
    return tasks, slow


class SelfProbe:
    """What the recorder itself costs and what it missed, so that a gap is never silent."""

    name = "self"

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks

    def sample(self) -> Sequence[Sample]:
        """CPU time of this process, and of each probe what it missed since the start.

        The text beside `missed_ticks` says of those since the last sample how late they were.
        """
        cpu_ms = time.process_time_ns() // _NS_PER_MS
        readings = [Reading(device="-", counter="cpu_ms", value=cpu_ms)]
        for task in self._tasks:
            missed, late_us = task.missed_ticks, task.worst_late_ns // _NS_PER_US
            text = task.take_notes()
            readings += [
                Reading(device=task.name, counter="missed_ticks", value=missed, text=text),
                Reading(device=task.name, counter="worst_late_us", value=late_us),
            ]
        return [Stopwatch().sample(self.name, readings)]


class Recorder:
    """One recording. `run` returns when it is over and everything is on the disk."""

    def __init__(
        self, plan: Plan, journal: Journal, raw_dir: Path | None, *, for_s: float | None = None
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._encoder = Encoder(plan.host)
        self._witness = IostatWitness(raw_dir) if plan.iostat and raw_dir else None
        self._for_s = for_s
        self._samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._stopped_by: str | None = None
        self._own: SelfProbe | None = None
        # Signals write a byte here, so that the waiting main thread wakes at once.
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self, proc_root: Path = Path("/proc"), sys_root: Path = Path("/sys")) -> int:
        """Record until told to stop. Raises ProbeError when the journal cannot be written."""
        for number in _SIGNALS:
            # nohup ignores hang-ups for its child; that wish is kept.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._emit_text("started", f"probes {__version__} pid {os.getpid()}")
        self._emit_text("plan", json.dumps(asdict(self._plan)))
        self._samples.put(_prefer())
        threads: list[threading.Thread] = []
        try:
            self._drain()
            self._start_witness()
            threads = self._start_threads(*_kernel_tasks(self._plan, proc_root, sys_root))
            # What was imported and built until now never becomes garbage: not looked through again.
            gc.freeze()
            self._write_until_stopped()
        finally:
            self._stop.set()
            self._finish(threads)
        return EXIT_OK

    def _emit_text(self, counter: str, text: str) -> None:
        reading = Reading(device="-", counter=counter, text=text)
        self._samples.put(Stopwatch().sample(SelfProbe.name, [reading]))

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._stopped_by = self._stopped_by or signal.Signals(number).name

    def _start_witness(self) -> None:
        if self._witness is not None:
            self._samples.put(self._witness.start())
            return
        why = "no raw directory, give --out" if self._plan.iostat else "not in the plan"
        reading = Reading(device="-", counter="witness", reason=f"absent: {why}")
        self._samples.put(Stopwatch().sample("iostat", [reading]))

    def _start_threads(self, fast: list[Task], slow: list[Task]) -> list[threading.Thread]:
        groups = [group for group in (fast, slow) if group]
        for instance, url in self._plan.metrics.items():
            probe = EngineProbe(instance, url)
            name = f"engine:{instance}"
            groups.append([_task(self._plan, probe.name, probe.sample, name)])
        if self._plan.gpu:
            # A thread of its own: a driver that wakes a sleeping card holds its reader up.
            gpu = GpuProbe()
            groups.append([_task(self._plan, gpu.name, gpu.sample)])
        every = [task for group in groups for task in group]
        own = self._own = SelfProbe(every)
        slow.append(Task(name=own.name, period_ns=NS_PER_S, sample=own.sample))
        threads = []
        for group in groups:
            scheduler = Scheduler(group, self._samples.put)
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
                # Whatever a parent writes is of no interest; that it can no longer write is.
                if not os.read(fd, 4096) and fd != self._wake_read:
                    self._stopped_by = self._stopped_by or "stdin closed"
            self._drain()

    def _drain(self) -> None:
        # Bounded by what is there now: the samplers go on adding.
        waiting = range(self._samples.qsize())
        lines = [self._encoder.lines(self._samples.get()) for _ in waiting]
        if lines:
            self._journal.append("".join(lines))
        self._journal.sync()

    def _finish(self, threads: list[threading.Thread]) -> None:
        """Stop everything that was started, whatever the state of the journal."""
        deadline = time.monotonic() + _ENGINE_JOIN_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if self._own is not None:
            # Once more: what the other threads missed at the very end is known only now.
            for sample in self._own.sample():
                self._samples.put(sample)
        closing = self._witness.stop() if self._witness is not None else None
        if closing is not None:
            self._samples.put(closing)
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu_ms = round((usage.ru_utime + usage.ru_stime) * 1000)
            reading = Reading(device="iostat", counter="cpu_ms", value=cpu_ms)
            self._samples.put(Stopwatch().sample(SelfProbe.name, [reading]))
        signal.set_wakeup_fd(-1)
        if self._stopped_by is not None:
            self._emit_text("stopped", self._stopped_by)
            self._drain()


def _prefer() -> Sample:
    """Come before busy engines where that is allowed: a late sampler has holes, not high load."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    reading = Reading(device="-", counter="niceness", value=os.getpriority(os.PRIO_PROCESS, 0))
    return Stopwatch().sample(SelfProbe.name, [reading])


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
