"""The process probe: what each process of an engine's tree read, wrote and used.

`read_bytes` are charged once, at the top of the block stack, to the process that submitted them.
A process that was waited for by its parent has its `read_bytes` and their like *added to the
parent's own* by the kernel. So a sum over a tree takes each exited process by its row
`exited`: `folded:<parent>` is in the parent's counters already, `lost:<why>` is in none but its own
last ones.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..epochs import EpochTracker
from ..errors import reason_of
from ..kernel_files import KeptFile, counter_of, read_whole
from ..plan import Setting
from ..probe import Context, Probe, Sampler, Status, Thread
from ..samples import Batch, Sample, Stopwatch, samples_of
from .tree import ProcessTable, ProcStat, parse_stat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    _Parser = Callable[[bytes], dict[str, int | None]]

NAME = "process"
_IO = {
    b"rchar": "rchar",
    b"wchar": "wchar",
    b"syscr": "syscr",
    b"syscw": "syscw",
    b"read_bytes": "read_bytes",
    b"write_bytes": "write_bytes",
    b"cancelled_write_bytes": "cancelled_write_bytes",
}
_STATUS = {b"VmRSS": "rss_bytes", b"VmHWM": "rss_peak_bytes", b"VmSwap": "swap_bytes"}
_BYTES_PER_KB = 1024
_MS_PER_S = 1000
_SIGCHLD_BIT = 1 << 16
# A process born and ended in between has left its bytes in its parent's counters.
_TREE_NS = 500_000_000
# Memory is context, and the kernel takes longer to write it down than everything else here.
_STATUS_NS = 1_000_000_000


def parse_lines(data: bytes) -> dict[bytes, bytes]:
    """`name: value` lines; a last line without its newline may be cut and is left out."""
    pairs = (line.partition(b":") for line in data.split(b"\n")[:-1])
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}


def parse_io(data: bytes) -> dict[str, int | None]:
    """/proc/<pid>/io; None for a counter that is not there or no number."""
    lines = parse_lines(data)
    return {counter: counter_of(lines.get(name)) for name, counter in _IO.items()}


def parse_status(data: bytes) -> dict[str, int | None]:
    """Memory of /proc/<pid>/status in bytes; a zombie and a kernel thread have none."""
    lines = parse_lines(data)
    values: dict[str, int | None] = {}
    for name, counter in _STATUS.items():
        number, _, unit = lines.get(name, b"").partition(b" ")
        values[counter] = counter_of(number, _BYTES_PER_KB) if unit.strip() == b"kB" else None
    values["threads"] = counter_of(lines.get(b"Threads"))
    return values


def _pids(value: Any) -> dict[str, int] | None:
    if isinstance(value, dict) and all(type(pid) is int and pid > 0 for pid in value.values()):
        return value
    return None


ENGINES: Setting[Mapping[str, int]] = Setting(
    key="engines",  # instance -> root pid
    default={},
    accept=_pids,
    example='the root pid of each: {"a": 4711}',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    device: str  # <instance>:<pid>:<starttime>
    pid: int
    start_ticks: int
    ppid: int
    parent_ignores_sigchld: bool
    stat: KeptFile
    io: KeptFile


class ProcessSampler:
    """Every process of every engine's tree, each with the instant of its own read."""

    def __init__(
        self,
        engines: Mapping[str, int],
        proc_root: Path,
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._engines = dict(engines)
        self._proc = proc_root
        self._table = ProcessTable(proc_root)
        self._members: dict[str, dict[str, _Member]] = {name: {} for name in engines}
        self._epochs = EpochTracker()
        self._tick_hz = os.sysconf("SC_CLK_TCK")
        self._clock_ns = clock_ns
        self._tree_due_ns = 0
        self._status_due_ns: dict[str, int] = {}

    def sample(self) -> Sequence[Batch]:
        """One batch a process; members found once are followed until they end."""
        now_ns = self._clock_ns()
        if now_ns >= self._tree_due_ns:
            self._tree_due_ns = now_ns + _TREE_NS
            self._look_for_members()
        batches: list[Batch] = []
        for instance, root in self._engines.items():
            if not self._members[instance]:
                absent = _unreadable(f"{instance}:{root}:-", "absent: no process has this pid")
                batches.append(Stopwatch().batch(NAME, absent))
            batches += self._read_all(instance, now_ns)
        return batches

    def _look_for_members(self) -> None:
        self._table.refresh()
        for instance, root in self._engines.items():
            members = self._members[instance]
            for stat in self._table.tree(root).values():
                device = f"{instance}:{stat.pid}:{stat.start_ticks}"
                if device not in members:
                    members[device] = self._member(device, stat)

    def _read_all(self, instance: str, now_ns: int) -> list[Batch]:
        members = self._members[instance]
        read = {member.device: self._read(member, now_ns) for member in members.values()}
        # All are read before any is declared ended: a parent that ended in the same interval can
        # hold nothing of its child in its last sample.
        ended = [members.pop(device) for device, batch in read.items() if batch is None]
        for member in ended:
            member.stat.close()
            member.io.close()
            self._status_due_ns.pop(member.device, None)
        return [batch for batch in read.values() if batch is not None] + [
            Stopwatch().batch(NAME, [self._exited(instance, member)]) for member in ended
        ]

    def _member(self, device: str, stat: ProcStat) -> _Member:
        return _Member(
            device=device,
            pid=stat.pid,
            start_ticks=stat.start_ticks,
            ppid=stat.ppid,
            parent_ignores_sigchld=self._ignores_sigchld(stat.ppid),
            stat=KeptFile(f"{self._proc}/{stat.pid}/stat"),
            io=KeptFile(f"{self._proc}/{stat.pid}/io"),
        )

    def _ignores_sigchld(self, pid: int) -> bool:
        try:
            lines = parse_lines(read_whole(f"{self._proc}/{pid}/status"))
            return bool(int(lines.get(b"SigIgn", b"0"), 16) & _SIGCHLD_BIT)
        except (OSError, ValueError):
            return False

    def _read(self, member: _Member, now_ns: int) -> Batch | None:
        """The process's counters now; None when it has ended."""
        watch = Stopwatch()
        try:
            stat = parse_stat(member.stat.read())
        except (FileNotFoundError, ProcessLookupError):
            return None
        except OSError as error:
            return watch.batch(NAME, _unreadable(member.device, reason_of(error)))
        if stat is None or stat.start_ticks != member.start_ticks:
            return None
        contents: dict[_Parser, bytes | OSError] = {parse_io: _content(member.io.read)}
        if now_ns >= self._status_due_ns.get(member.device, 0):
            self._status_due_ns[member.device] = now_ns + _STATUS_NS
            path = f"{self._proc}/{member.pid}/status"
            contents[parse_status] = _content(lambda: read_whole(path))
        watch.stop()
        if any(isinstance(content, ProcessLookupError) for content in contents.values()):
            return None
        return watch.batch(NAME, self._samples(member.device, stat, contents))

    def _exited(self, instance: str, member: _Member) -> Sample:
        parents = [
            other.device for other in self._members[instance].values() if other.pid == member.ppid
        ]
        if not parents:
            account = "lost:its parent is not in the tree"
        elif member.parent_ignores_sigchld:
            account = f"lost:{parents[0]} ignores SIGCHLD"
        else:
            account = f"folded:{parents[0]}"
        return Sample(device=member.device, counter="exited", text=account)

    def _samples(
        self, device: str, stat: ProcStat, contents: dict[_Parser, bytes | OSError]
    ) -> list[Sample]:
        ticks = stat.utime_ticks + stat.stime_ticks
        values: dict[str, float] = {"cpu_ms": ticks * _MS_PER_S // self._tick_hz}
        reasons: dict[str, str] = {}
        for parse, content in contents.items():
            if not isinstance(content, bytes):
                reasons |= dict.fromkeys(parse(b""), reason_of(content))
                continue
            for name, value in parse(content).items():
                if value is None:
                    reasons[name] = f"absent: not given for a process in state {stat.state}"
                else:
                    values[name] = value
        growing: dict[str, float] = {
            name: values[name] for name in ("read_bytes", "cpu_ms") if name in values
        }
        cause = self._epochs.counters(device, growing)
        epoch = self._epochs.current(device)
        return samples_of(device, values, reasons=reasons, epoch=epoch, causes=[cause])


def _content(read: Callable[[], bytes]) -> bytes | OSError:
    try:
        return read()
    except OSError as error:
        return error


def _unreadable(device: str, reason: str) -> list[Sample]:
    counters = (*parse_io(b""), *parse_status(b""), "cpu_ms")
    return samples_of(device, reasons=dict.fromkeys(counters, reason))


def _start(context: Context) -> Mapping[str, Sampler]:
    engines = context.plan[ENGINES]
    return {NAME: ProcessSampler(engines, context.proc_root)} if engines else {}


def _check(context: Context) -> Status:
    counters = parse_io(read_whole(f"{context.proc_root}/self/io"))
    missing = [name for name, value in counters.items() if value is None]
    detail = f"absent: {','.join(missing)}" if missing else "/proc/<pid>/io of own processes"
    if os.geteuid() != 0:
        detail += "; processes of other users are denied without root"
    return Status(works="partly" if missing else "yes", detail=detail)


PROCESS = Probe(
    name=NAME,
    start=_start,
    check=_check,
    rate_hz=2.0,
    thread=Thread.URGENT,
    settings=(ENGINES,),
)
