"""A started process and everything that came out of it: found in /proc, ended, never by name.

What belongs to a root process is found three ways, because each has a hole:
the process group and session it leads (a grandchild may open its own), the parents chain (broken
once a parent dies), and a mark in the environment (a program may overwrite its own).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

MARK_PREFIX = "R8_STARTED_"
_PROC = Path("/proc")
_POLL_S = 0.05
# A killed process leaves only after its last system call returns; one stuck on a dead device may
# never do so, and then it is reported instead of waited for.
_KILL_WAIT_S = 10.0
_DEAD_STATES = frozenset("ZX")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """One line of the process table; `start_ticks` tells a pid's owners apart."""

    pid: int
    parent_pid: int
    group: int
    session: int
    start_ticks: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """What is known of a process that was started: `pid` is None between intent and start."""

    mark: str
    pid: int | None = None
    start_ticks: int | None = None


def look_up(pid: int) -> Running | None:
    """The process with this pid, None when there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The command stands in parentheses and may itself hold spaces and parentheses.
    fields = text[text.rindex(")") + 2 :].split()
    return Running(
        pid=pid,
        state=fields[0],
        parent_pid=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
    )


def is_alive(pid: int, start_ticks: int) -> bool:
    """Whether this very process still runs; a zombie does not."""
    found = look_up(pid)
    return found is not None and found.start_ticks == start_ticks and _runs(found)


def members(root: Root) -> list[Running]:
    """Every running process that belongs to `root`, the caller itself excepted."""
    table = _process_table()
    chosen = {pid for pid in table if _carries(pid, root.mark)}
    if root.pid is not None and not _is_stranger(table.get(root.pid), root):
        # The kernel gives a pid away only when no group or session bears it any more.
        chosen |= {p.pid for p in table.values() if root.pid in {p.pid, p.group, p.session}}
    grown = True
    while grown:
        children = {p.pid for p in table.values() if p.parent_pid in chosen} - chosen
        chosen |= children
        grown = bool(children)
    chosen.discard(os.getpid())
    return [table[pid] for pid in sorted(chosen) if _runs(table[pid])]


def end_tree(root: Root, grace_s: float) -> list[Running]:
    """Ask every member to end, after `grace_s` kill the rest; return those that would not go."""
    _signal_all(members(root), signal.SIGTERM)
    obeyed_by = time.monotonic() + grace_s
    while left := members(root):
        now = time.monotonic()
        if now > obeyed_by + _KILL_WAIT_S:
            return left
        if now > obeyed_by:
            _signal_all(left, signal.SIGKILL)
        time.sleep(_POLL_S)
    return []


def _signal_all(processes: list[Running], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            _signal_one(process, number)


def _signal_one(process: Running, number: int) -> None:
    """Signal through a pidfd that is checked once it is open: a reused pid is never signalled."""
    handle = os.pidfd_open(process.pid)
    try:
        if is_alive(process.pid, process.start_ticks):
            signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def _process_table() -> dict[int, Running]:
    found = (look_up(int(entry.name)) for entry in _PROC.iterdir() if entry.name.isdigit())
    return {process.pid: process for process in found if process is not None}


def _carries(pid: int, mark: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return f"{MARK_PREFIX}{mark}=".encode() in environment


def _is_stranger(found: Running | None, root: Root) -> bool:
    return found is not None and found.start_ticks != root.start_ticks


def _runs(process: Running) -> bool:
    return process.state not in _DEAD_STATES
