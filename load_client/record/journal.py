"""Append-only journals: whole JSON lines, fsynced, readable after `kill -9` and on a full disk."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_MODE = 0o644
# One encoder for all rows: json.dumps with separators makes a new one for each.
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


def append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append one line a row and fsync; concurrent appenders take turns.

    Raises ClientError as `append_lines` does.
    """
    append_lines(path, "".join([_ENCODE(row) + "\n" for row in rows]))


def append_lines(path: Path, lines: str) -> None:
    """Append ASCII text of whole lines and fsync; concurrent appenders take turns.

    Raises ClientError when the disk refuses; whole lines written until then stay, a torn one is
    removed.
    """
    data = lines.encode("ascii")
    with _opened(path) as descriptor:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        if end and os.pread(descriptor, 1, end - 1) not in {b"\n", b""}:
            # A process was killed inside a line: begin a new one.
            data = b"\n" + data
        _write(path, descriptor, data, whole_lines=True)


def append_bytes(path: Path, data: bytes) -> None:
    """Append `data` as one piece and fsync; ClientError when the disk refuses: none of it stays."""
    with _opened(path) as descriptor:
        _write(path, descriptor, data, whole_lines=False)


def create_numbered(directory: Path, stem: str, suffix: str) -> Path:
    """A new empty file `<stem>-<k><suffix>` with the smallest free k; never an old one."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        number = 0
        while True:
            path = directory / f"{stem}-{number}{suffix}"
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE))
            except FileExistsError:
                number += 1
                continue
            return path
    except OSError as refusal:
        raise _refused(directory, refusal) from refusal


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _MODE)
    except OSError as refusal:
        raise _refused(path, refusal) from refusal
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _write(path: Path, descriptor: int, data: bytes, *, whole_lines: bool) -> None:
    begin = os.lseek(descriptor, 0, os.SEEK_END)
    written = 0
    try:
        while written < len(data):
            written += os.write(descriptor, memoryview(data)[written:])
        os.fsync(descriptor)
    except OSError as refusal:
        kept = data.rfind(b"\n", 0, written) + 1 if whole_lines else 0
        _take_back(descriptor, begin + kept)
        raise _refused(path, refusal) from refusal


def _take_back(descriptor: int, size: int) -> None:
    try:
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    except OSError:
        # The torn tail stays; readers drop a torn last line. The first error is being raised.
        return


def _refused(path: Path, refusal: OSError) -> ClientError:
    return ClientError(
        f"cannot write: {refusal.strerror}",
        where=str(path),
        next_step="free space or choose another --out; rows written before this stay readable",
    )
