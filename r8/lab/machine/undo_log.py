"""The log of what was started and how it is undone: JSON lines, written before the act.

A supervisor works from it alone, so that nothing depends on a message that was still under way when
a process was killed. A lock on the file says that a living process answers for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from r8.lab.machine.process_tree import Root, end_tree

PATTERN = "supervisor-*.jsonl"
_UNDO_TIMEOUT_S = 60.0
# A mount may stay busy for a moment after the last process that used it is gone.
_UNDO_ATTEMPTS = 5
_UNDO_PAUSE_S = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """One thing to undo: end the tree of `root`, or run `argv` in `cwd`.

    `grace_s` is what a process is given to obey, here or by the command that asks it to.
    """

    token: int
    name: str
    root: Root | None = None
    grace_s: float = 0.0
    argv: tuple[str, ...] = ()
    cwd: str | None = None

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Undo:
        """From a line of the log."""
        root = Root(**fields["root"]) if fields.get("root") else None
        return cls(**fields | {"root": root, "argv": tuple(fields.get("argv", ()))})

    def __str__(self) -> str:
        """One line a person can act on."""
        if self.root is None:
            return f"{self.name}: {' '.join(self.argv)}"
        return f"{self.name}: process {self.root.pid} and what it started"


class UndoLog:
    """An open log. Every line is on disk before the method returns."""

    def __init__(self, path: Path) -> None:
        """Open or create `path` for appending and share its lock.

        Raises:
            OSError: the file cannot be written.
            BlockingIOError: `clean` holds it.
        """
        self.path = path
        self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        """Give the lock back; the file stays."""
        os.close(self._handle)

    def claim(self) -> bool:
        """Lock the file for this process alone; False when another still answers for it."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def append(self, record: dict[str, Any]) -> None:
        """One line, synced. A torn line can only be the last one of the file."""
        os.write(self._handle, (json.dumps(record) + "\n").encode())
        os.fsync(self._handle)

    def add(self, undo: Undo) -> None:
        """Note an undo; a second note with the same token replaces the first."""
        self.append({"op": "add", **asdict(undo)})

    def forget(self, token: int) -> None:
        """Note that an undo is no longer needed."""
        self.append({"op": "forget", "token": token})

    def open_entries(self) -> list[Undo]:
        """What is still to be undone, in the order it was first noted."""
        return read(self.path)


def read(path: Path) -> list[Undo]:
    """What a log still holds; entries of an earlier boot of the machine are void."""
    entries: dict[int, Undo] = {}
    for line in path.read_text(errors="replace").splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        match record.pop("op"):
            case "open" if record["boot"] != boot_id():
                return []
            case "add":
                entries[record["token"]] = Undo.of(record)
            case "forget":
                entries.pop(record["token"], None)
    return list(entries.values())


def boot_id() -> str:
    """Changes with every boot, and with it what a pid or a loop device means."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def settle(log: UndoLog) -> list[Undo]:
    """Undo what a log holds, the last first, and remove the file once nothing is left."""
    entries = log.open_entries()
    left = _undo_each(log, entries)
    # A child that had not yet reached its exec when the parent died shows its mark only now.
    for entry in entries:
        if entry.root is not None:
            end_tree(entry.root, 0.0)
    # What stood in the way of one undo may have been ended by a later one.
    left = _undo_each(log, left) if left else []
    if not left:
        log.path.unlink(missing_ok=True)
    return left


def _undo_each(log: UndoLog, entries: list[Undo]) -> list[Undo]:
    left: list[Undo] = []
    for entry in reversed(entries):
        problem = undo_one(entry)
        # A full disk must not stop the tidying: the entry is then merely undone twice.
        with contextlib.suppress(OSError):
            if problem:
                log.append({"op": "failed", "token": entry.token, "problem": problem})
            else:
                log.forget(entry.token)
        if problem:
            left.insert(0, entry)
    return left


def undo_one(entry: Undo) -> str | None:
    """Undo one entry; None, or why it did not work."""
    if entry.root is not None:
        left = end_tree(entry.root, entry.grace_s)
        return f"processes {[process.pid for process in left]} survive" if left else None
    problem, patience_s = "not tried", _UNDO_TIMEOUT_S + entry.grace_s
    for attempt in range(_UNDO_ATTEMPTS):
        time.sleep(_UNDO_PAUSE_S if attempt else 0.0)
        try:
            done = subprocess.run(
                entry.argv, cwd=entry.cwd, capture_output=True, timeout=patience_s, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = str(error)
            continue
        if done.returncode == 0:
            return None
        problem = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
    return problem
