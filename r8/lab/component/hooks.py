"""Faults put between LMCache's disk backend and its files, in this process, at the read calls.

A named fake at a seam: the patched reader calls `os.preadv`, LMCache's own `open().readinto`.
What cannot be planted in a file beforehand (an error, a short read, a change in the middle of a
read) is planted here. Injection below the file system does the same without this module.
"""

from __future__ import annotations

import builtins
import errno
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType, TracebackType


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
class Seam:
    """Intercepts reads while it is entered; a context manager."""

    backend_module: ModuleType
    rules: dict[str, Rule] = field(default_factory=dict)
    _preadv: Callable[..., int] = os.preadv
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        os.preadv = self._faulty_preadv  # type: ignore[assignment]
        # Shadows the builtin in that module only.
        self.backend_module.open = self._faulty_open  # type: ignore[attr-defined]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
    seam: Seam

    def readinto(self, buffer: Any) -> int:
        kind = self.seam._fire(self.path, 0, len(buffer))  # noqa: SLF001 - two halves of one seam
        if kind == "short":
            return int(self.opened.readinto(buffer[: len(buffer) // 2]))
        return int(self.opened.readinto(buffer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.close()
