"""The journal: JSON lines, appended whole, on the disk at least each second.

A full disk ends the recording with one error; the half-written line is cut off again where the
file allows it, so that what is there stays readable.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING

from ..errors import ProbeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ..samples import Batch, Sample

_FREE_SPACE = "free space on that file system, then record again; the rows before this are intact"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OTHERWISE = "check that file system or pipe, then record again; the rows before this are intact"


class Encoder:
    """Turns batches into lines; the text that names a counter is rendered once and kept."""

    def __init__(self, host: str) -> None:
        self._host = json.dumps(host)
        self._heads: dict[tuple[str, str, str], str] = {}

    def lines(self, batch: Batch) -> str:
        """One line a sample, each ended by a newline; every column present, absent is null."""
        tail = f'"mono_ns":{batch.mono_ns},"wall_ns":{batch.wall_ns},'
        tail += f'"read_cost_ns":{batch.read_cost_ns},"epoch":'
        return "".join(
            f"{self._head(batch.probe, sample)}{_body(sample)}{tail}{sample.epoch}}}\n"
            for sample in batch.samples
        )

    def _head(self, probe: str, sample: Sample) -> str:
        key = (probe, sample.device, sample.counter)
        head = self._heads.get(key)
        if head is None:
            device, counter = json.dumps(sample.device), json.dumps(sample.counter)
            head = f'{{"probe":{json.dumps(probe)},"host":{self._host},'
            head += f'"device":{device},"counter":{counter},'
            self._heads[key] = head
        return head


def _body(sample: Sample) -> str:
    if sample.value is not None:
        return f'"value":{sample.value!r},"text":null,"reason":null,'
    text, reason = json.dumps(sample.text), json.dumps(sample.reason)
    return f'"value":null,"text":{text},"reason":{reason},'


class Journal:
    """An append-only file of JSON lines, or standard output."""

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self._regular = stat.S_ISREG(os.fstat(fd).st_mode)
        self._dirty = False

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Open for appending; a torn last line of an earlier process gets its newline first."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ProbeError(
                f"cannot open the journal: {error.strerror}",
                where=str(path),
                next_step="give --out a directory that exists and is writable",
            ) from error
        journal = cls(fd, str(path))
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            journal.append("\n")
        return journal

    def append(self, lines: str) -> None:
        """Write whole lines; raises ProbeError when the file system does not take them."""
        data = memoryview(lines.encode())
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
                self._dirty = True
        except OSError as error:
            self._cut_torn_line(bytes(data[:written]))
            raise self._error("write to", error) from error

    def append_rows(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Write rows given as mappings, one JSON line each."""
        dumps = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
        self.append("".join(dumps(row) + "\n" for row in rows))

    def _cut_torn_line(self, written: bytes) -> None:
        torn = len(written) - (written.rfind(b"\n") + 1)
        if torn and self._regular:
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - torn)

    def _error(self, doing: str, error: OSError) -> ProbeError:
        return ProbeError(
            f"cannot {doing} the journal: {error.strerror}",
            where=self._name,
            next_step=_FREE_SPACE if error.errno in _FULL else _OTHERWISE,
        )

    def sync(self) -> None:
        """Have what was appended on the disk; pipes and terminals have nothing to sync."""
        if not (self._dirty and self._regular):
            return
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise self._error("fsync", error) from error
        self._dirty = False

    def close(self) -> None:
        """Sync and close."""
        try:
            self.sync()
        finally:
            os.close(self._fd)
