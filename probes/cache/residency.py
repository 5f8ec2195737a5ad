"""Page-cache residency of every file below a directory, and eviction of the same files.

What this cannot show: data an application keeps in its own memory, in huge pages or in /dev/shm,
and the caches of arrays and drives.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ProbeError, reason_of
from ..probe import Context, Status
from .pagecache import METHODS, Method, choose_method, evict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..block.sysfs import Sysfs


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResidency:
    """One row of the residency table: a file, or a directory that could not be listed."""

    moment: str
    host: str
    path: str  # relative to the directory asked about
    size_bytes: int | None
    resident_bytes: int | None
    device: str | None
    method: str | None
    self_test: bool | None
    reason: str | None
    mono_ns: int


def _files(directory: Path) -> Iterator[tuple[Path, OSError | None]]:
    """Every regular file below, in order; what cannot be looked into comes with its error.

    Links are not followed: what they point to does not lie below.
    """
    errors: list[OSError] = []
    for root, folders, names in os.walk(directory, onerror=errors.append):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            try:
                regular = stat.S_ISREG(path.lstat().st_mode)
            except OSError as lost:
                yield path, lost
                continue
            if regular:
                yield path, None
    for denied in errors:
        yield Path(denied.filename or directory), denied


class _DeviceNames:
    """Kernel names of block devices by st_dev, each looked up once."""

    def __init__(self, sysfs: Sysfs) -> None:
        self._sysfs = sysfs
        self._names: dict[int, str | None] = {}

    def __call__(self, st_dev: int) -> str | None:
        if st_dev not in self._names:
            number = f"{os.major(st_dev)}:{os.minor(st_dev)}"
            self._names[st_dev] = self._sysfs.name_of(number)
        return self._names[st_dev]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    size_bytes: int | None = None
    resident_bytes: int | None = None
    device: str | None = None
    reason: str | None = None


def _look(path: Path, method: Method, device_of: Callable[[int], str | None]) -> _Seen:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return _Seen(reason=reason_of(error))
    try:
        status = os.fstat(fd)
        resident, reason = _resident_bytes(method, fd, status.st_size)
        return _Seen(
            size_bytes=status.st_size,
            resident_bytes=resident,
            device=device_of(status.st_dev),
            reason=reason,
        )
    finally:
        os.close(fd)


def _resident_bytes(method: Method, fd: int, size_bytes: int) -> tuple[int | None, str | None]:
    if method.name is None:
        return None, method.reason
    try:
        return METHODS[method.name](fd, size_bytes), None
    except OSError as error:
        return None, reason_of(error)


def _require_directory(directory: Path) -> None:
    if not directory.is_dir():
        raise ProbeError(
            "there is no such directory",
            where=str(directory),
            next_step="give --dir the directory that holds the KV files",
        )


def measure(
    directory: Path, moment: str, *, host: str, sysfs: Sysfs, method: Method | None = None
) -> Iterator[FileResidency]:
    """One row a file; `resident_bytes` is null with its reason where it cannot be known.

    The self-test is made first, on the same file system; `method` replaces it in tests.
    """
    _require_directory(directory)
    method = method or choose_method(directory)
    device_of = _DeviceNames(sysfs)
    for path, unreadable in _files(directory):
        seen = _Seen(reason=None if unreadable is None else reason_of(unreadable))
        if unreadable is None:
            seen = _look(path, method, device_of)
        yield FileResidency(
            moment=moment,
            host=host,
            path=os.path.relpath(path, directory),
            size_bytes=seen.size_bytes,
            resident_bytes=seen.resident_bytes,
            device=seen.device,
            method=method.name,
            self_test=method.self_test,
            reason=seen.reason,
            mono_ns=time.monotonic_ns(),
        )


def evict_all(directory: Path) -> list[str]:
    """Write back and evict every file below; the failures, as `path: reason`."""
    _require_directory(directory)
    failures = []
    for path, unreadable in _files(directory):
        if unreadable is not None:
            failures.append(f"{os.path.relpath(path, directory)}: {reason_of(unreadable)}")
            continue
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                evict(fd)
            finally:
                os.close(fd)
        except OSError as failure:
            failures.append(f"{os.path.relpath(path, directory)}: {reason_of(failure)}")
    return failures


def summary(rows: list[FileResidency]) -> dict[str, object]:
    """Totals for a person. `resident_bytes` is null as soon as one file is unknown."""
    unknown = [row for row in rows if row.resident_bytes is None]
    return {
        "files": len(rows),
        "bytes": sum(row.size_bytes or 0 for row in rows),
        "resident_bytes": None if unknown else sum(row.resident_bytes or 0 for row in rows),
        "unknown_files": len(unknown),
        "method": rows[0].method if rows else None,
        "self_test": rows[0].self_test if rows else None,
        "reason": unknown[0].reason if unknown else None,
    }


def check(_context: Context, *, directory: Path) -> Status:
    """Whether residency can be measured on the file system of `directory`."""
    method = choose_method(directory)
    if method.name is None:
        detail = method.reason or "failed"
        return Status(works="no", detail=f"{detail} (in {directory})")
    return Status(works="yes", detail=f"{method.name}, self-test passed in {directory}")
