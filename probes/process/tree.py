"""Which processes belong to an engine: its root, all descendants, and what they left behind.

A process is named by pid and start time, since pids are used again. Finding new members costs one
listing of /proc and one read for each process not seen before; everything is read anew every few
seconds, in case a pid was reused in between. Members of the root's own session count too when the
root leads it: a grandchild whose parent has ended is adopted by init and looks unrelated.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..kernel_files import counter_of, read_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Often enough that a reused pid cannot go unnoticed for long, rarely enough to cost nothing.
FULL_SCAN_NS = 10_000_000_000
_FIELDS_AFTER_NAME = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcStat:
    """The parts of /proc/<pid>/stat that are used. Times in clock ticks."""

    pid: int
    state: str
    ppid: int
    session: int
    utime_ticks: int
    stime_ticks: int
    start_ticks: int


def parse_stat(data: bytes) -> ProcStat | None:
    """One stat line; None when it is not one. The command may hold spaces and parentheses."""
    head, _, tail = data.rpartition(b")")
    pid = head.split(b" (", 1)[0].strip()
    fields = tail.split()
    if len(fields) < _FIELDS_AFTER_NAME:
        return None
    numbers = (pid, fields[1], fields[3], fields[11], fields[12], fields[19])
    values = [value for number in numbers if (value := counter_of(number)) is not None]
    if len(values) < len(numbers):
        return None
    return ProcStat(
        pid=values[0],
        state=fields[0].decode("ascii", "replace"),
        ppid=values[1],
        session=values[2],
        utime_ticks=values[3],
        stime_ticks=values[4],
        start_ticks=values[5],
    )


def read_stat(proc_root: Path, pid: int) -> ProcStat | None:
    """The stat of a process; None when it is gone. Raises OSError when it may not be read."""
    try:
        return parse_stat(read_whole(f"{proc_root}/{pid}/stat"))
    except (FileNotFoundError, ProcessLookupError):
        return None


class ProcessTable:
    """Parents and sessions of every process of the host, kept up to date cheaply."""

    def __init__(self, proc_root: Path, *, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._proc = proc_root
        self._clock_ns = clock_ns
        self._known: dict[int, ProcStat] = {}
        self._full_scan_ns: int | None = None

    def refresh(self) -> None:
        """Look for processes that began or ended since the last call."""
        now_ns = self._clock_ns()
        if self._full_scan_ns is None or now_ns - self._full_scan_ns >= FULL_SCAN_NS:
            self._full_scan_ns = now_ns
            self._known.clear()
        present = {int(name) for name in os.listdir(self._proc) if name.isdigit()}  # noqa: PTH208
        for pid in self._known.keys() - present:
            del self._known[pid]
        for pid in present - self._known.keys():
            try:
                stat = read_stat(self._proc, pid)
            except OSError:  # another user's, and hidden: it cannot be followed
                continue
            if stat is not None:
                self._known[pid] = stat

    def tree(self, root: int) -> dict[int, ProcStat]:
        """The root, its descendants and the members of its session, by pid."""
        children: dict[int, list[int]] = {}
        for stat in self._known.values():
            children.setdefault(stat.ppid, []).append(stat.pid)
        root_stat = self._known.get(root)
        queue = [root] if root_stat else []
        if root_stat and root_stat.session == root:
            queue += [stat.pid for stat in self._known.values() if stat.session == root]
        found: dict[int, ProcStat] = {}
        while queue:
            pid = queue.pop()
            if pid not in found:
                found[pid] = self._known[pid]
                queue.extend(children.get(pid, ()))
        return found
