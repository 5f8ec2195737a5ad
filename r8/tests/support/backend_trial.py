"""One trial of LMCache's disk backend: chunks stored, some made faulty, read, and counted up.

What cannot be planted in a file beforehand (an error, a short read, a change in the middle of a
read) is planted at the read calls, in this process: the patched reader calls `os.preadv`, LMCache's
own `open().readinto`. Part of backend_faults.py; runs in the engine's environment only.
"""

from __future__ import annotations

import builtins
import errno
import os
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from r8.lab.component.rig import DiskRig

# Several segments and a tail that no O_DIRECT read can fill in place.
CHUNK_BYTES = 300_000
SEGMENT_BYTES = 65_536
CHUNKS = 6
# Files look old, so that a change within one tick of the file system's clock still shows.
AGE_NS = 2_000_000_000
FAULTS = (
    "truncated", "empty", "grown", "deleted", "eio", "short",
    "evicted", "replaced", "rewritten",
)  # fmt: skip
CHANGES = {"replaced", "rewritten"}


@dataclass(slots=True, kw_only=True)
class Rule:
    """What happens to the reads of one file at `offset` (bytes); `action` runs once, before one.

    `kind` is "eio", "short" or "action".
    """

    kind: str
    offset: int
    action: Callable[[], None] | None = None
    fired: int = 0


@dataclass(slots=True)
class ReadHooks:
    """Intercepts reads while it is entered."""

    backend_module: ModuleType
    rules: dict[str, Rule] = field(default_factory=dict)
    _preadv: Callable[..., int] = os.preadv
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        os.preadv = self._faulty_preadv  # type: ignore[assignment]
        # Shadows the builtin in that module only.
        self.backend_module.open = self._faulty_open  # type: ignore[attr-defined]
        return self

    def __exit__(self, *_: object) -> None:
        os.preadv = self._preadv
        del self.backend_module.open

    def _fire(self, path: str, offset: int, length: int) -> str | None:
        """The kind of fault this read meets, after the rule's action ran."""
        rule = self.rules.get(path)
        if rule is None or not offset <= rule.offset < offset + length:
            return None
        with self._lock:
            rule.fired += 1
            first = rule.fired == 1
        if rule.action is not None and first:
            rule.action()
        if rule.kind == "eio":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return rule.kind

    def _faulty_preadv(self, handle: int, buffers: list[Any], offset: int) -> int:
        path = str(Path(f"/proc/self/fd/{handle}").readlink()).removesuffix(" (deleted)")
        kind = self._fire(path, offset, sum(len(buffer) for buffer in buffers))
        count = self._preadv(handle, buffers, offset)
        return count // 2 if kind == "short" else count

    def _faulty_open(self, path: str, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        opened = builtins.open(path, mode, *args, **kwargs)  # noqa: PTH123, SIM115
        return _FaultyFile(opened, path, self) if mode == "rb" else opened


@dataclass(slots=True)
class _FaultyFile:
    opened: Any
    path: str
    hooks: ReadHooks

    def readinto(self, buffer: Any) -> int:
        kind = self.hooks._fire(self.path, 0, len(buffer))
        if kind == "short":
            return int(self.opened.readinto(buffer[: len(buffer) // 2]))
        return int(self.opened.readinto(buffer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.close()


class Trial:
    """One set of chunks, some of them faulty, read once; collects what is wrong."""

    def __init__(self, rig: DiskRig, hooks: ReadHooks, first: int, seed: int) -> None:
        """Chunks `first`.. are stored healthy; the seed decides everything after that."""
        self.rig = rig
        self.hooks = hooks
        self.dice = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self.numbers = list(range(first, first + CHUNKS))
        self.payloads = {number: self.dice.randbytes(CHUNK_BYTES) for number in self.numbers}
        self.faults: dict[int, str] = {}
        self.problems: list[str] = []
        for number in self.numbers:
            rig.store(number, self.payloads[number])
            status = os.stat(rig.path(number))  # noqa: PTH116
            old = status.st_mtime_ns - AGE_NS
            os.utime(rig.path(number), ns=(old, old))
        self.buffers_before = rig.allocated()
        self.sizes = {number: rig.disk.dict[rig.key(number)].size for number in self.numbers}
        self.usage_before = rig.disk.usage

    def plant(self, number: int, fault: str) -> None:
        """Give one chunk a fault, in its file or at its reads."""
        self.faults[number] = fault
        path = Path(self.rig.path(number))
        at = self.dice.randrange(CHUNK_BYTES)
        if fault == "truncated":
            os.truncate(path, at)
        elif fault == "empty":
            os.truncate(path, 0)
        elif fault == "grown":
            os.truncate(path, CHUNK_BYTES + 1 + at)
        elif fault == "deleted":
            path.unlink()
        elif fault in {"eio", "short"}:
            self.hooks.rules[str(path)] = Rule(kind=fault, offset=at)
        else:
            actions = {
                "evicted": lambda: self.rig.disk.remove(self.rig.key(number)),
                "replaced": lambda: self._replace(path),
                "rewritten": lambda: path.write_bytes(bytes(CHUNK_BYTES)),
            }
            self.hooks.rules[str(path)] = Rule(kind="action", offset=at, action=actions[fault])

    def _replace(self, path: Path) -> None:
        other = path.with_suffix(".other")
        other.write_bytes(bytes(CHUNK_BYTES))
        other.replace(path)

    def read(self, path: str) -> list[Any]:
        """One read of all chunks, padded with None to their number; checked, not released."""
        buffers = self.rig.read(self.numbers, path=path)
        padded = buffers + [None] * (len(self.numbers) - len(buffers))
        for number, buffer in zip(self.numbers, padded, strict=True):
            if buffer is not None and bytes(buffer.byte_array) != self.payloads[number]:
                self.problems.append(f"{path}: wrong bytes of a chunk: {self.faults.get(number)}")
        return padded

    def expect_misses(self, path: str, padded: list[Any]) -> None:
        """Faulty chunks are misses; healthy ones are there, in the async path up to a miss."""
        lost = False
        for number, buffer in zip(self.numbers, padded, strict=True):
            fault = self.faults.get(number)
            lost = lost or fault is not None
            missed = lost if path == "async" else fault is not None
            if missed != (buffer is None):
                said = "delivered" if missed else "missed"
                self.problems.append(f"{path}: {said} a chunk: {fault or 'healthy'}")

    def expect_clean(self) -> None:
        """No buffer, pin, lock or account is left over."""
        disk = self.rig.disk
        if self.rig.allocated() != self.buffers_before:
            self.problems.append(f"buffers left: {self.rig.allocated()}")
        if not disk.disk_lock.acquire(timeout=1):
            self.problems.append("the disk lock is still held")
            return
        pins = [disk.dict[key].pin_count for key in disk.dict if disk.dict[key].pin_count]
        kept = {number for number in self.numbers if self.rig.key(number) in disk.dict}
        disk.disk_lock.release()
        healthy = {number for number in self.numbers if number not in self.faults}
        handles = [one for one in _open_files() if one in map(self.rig.path, self.numbers)]
        if handles:
            self.problems.append(f"files left open: {len(handles)}")
        if pins:
            self.problems.append(f"pins left: {pins}")
        if not healthy <= kept:
            self.problems.append("a healthy chunk left the index")
        gone = sum(size for number, size in self.sizes.items() if number not in kept)
        if self.usage_before - disk.usage != gone:
            freed = self.usage_before - disk.usage
            self.problems.append(f"the backend counts {freed} bytes freed, its index {gone}")

    def withdraw_changed(self) -> None:
        """Take out files that were changed during the read: they are whole again, and different."""
        for number, fault in self.faults.items():
            if fault in CHANGES:
                self.rig.disk.remove(self.rig.key(number))

    def forget(self) -> None:
        """Take the chunks out, whatever state they are in."""
        self.hooks.rules.clear()
        for number in self.numbers:
            path = Path(self.rig.path(number))
            # LMCache's own remove() raises, in 0.5.0 with its lock held, when the file is gone.
            path.touch()
            self.rig.disk.remove(self.rig.key(number))
            path.unlink(missing_ok=True)


def _open_files() -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(entry.readlink()).removesuffix(" (deleted)"))
        except FileNotFoundError:  # the handle of this very listing
            continue
    return found
