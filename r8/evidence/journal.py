"""The write side of a run directory: journals of JSON lines, and `run.json`.

A line that `Journal.append` returned from is on the disk: it was checked against `r8.schema`,
written whole and fsynced. What fails on the way (a full disk above all) raises and takes its own
half line back, so that every earlier line stays readable.

While a `Journal` is open it holds a shared lock on the directory; finalising wants the lock for
itself, so a run that is still being written cannot be finalised from under its writer.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import math
import os
import time
import typing
from typing import TYPE_CHECKING, Any

import msgspec

from r8.errors import EvidenceError, SiteError
from r8.model import INT64_MAX, NAME, KvRun, Run, TransferRun
from r8.schema import SCHEMA_VERSION, TABLES, Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

RUN_FILE = "run.json"
# The contract of a run directory: nothing journalled is at risk for longer than this.
SYNC_EVERY_NS = 1_000_000_000


def lock_directory(directory: Path, *, exclusive: bool) -> int:
    """A descriptor holding a lock on `directory` until it is closed.

    Raises EvidenceError when somebody else holds it: a writer against a finaliser, or two
    finalisers. A file system without locks is used without one.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        mode = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise EvidenceError(
            "another process is using this run directory",
            where=str(directory),
            next_step="wait until the run has ended, then repeat the command",
        ) from None
    except OSError:
        return descriptor
    return descriptor


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, data: bytes) -> None:
    """Write all of `data`; a short write is continued, an error passes through."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_json_atomic(path: Path, value: object) -> None:
    """Replace `path` with `value` as JSON: a reader sees the old content or the new, never a mix.

    Raises SiteError when the disk does not take it; the old content is then still there.
    """
    data = (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            write_whole(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)  # noqa: PTH105 - beside the other os calls it belongs with
        sync_directory(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _disk_error(error, path) from error


def _disk_error(error: OSError, path: Path) -> SiteError:
    return SiteError(
        f"cannot write evidence: {error.strerror or error}",
        where=str(path),
        next_step="free space on that file system, then `r8 recover` what was journalled",
    )


def row_fault(columns: Mapping[str, Column], row: object) -> str | None:
    """Why `row` cannot be a line of a journal with these columns; None when it can."""
    if not isinstance(row, dict):
        return "not a JSON object"
    for key, value in row.items():
        column = columns.get(key)
        if column is None:
            return f"unknown key {key!r}"
        if value is not None and not _fits(column.type, value):
            return f"{key!r} is {value!r}, not {column.type}"
    for name, column in columns.items():
        if not column.nullable and row.get(name) is None:
            return f"{name!r} is missing"
    return None


def _fits(type_name: str, value: object) -> bool:
    if type_name == "int64":
        return type(value) is int and abs(value) <= INT64_MAX
    if type_name == "float64":
        return type(value) in {int, float} and math.isfinite(typing.cast("float", value))
    if type_name == "string":
        return isinstance(value, str) and _encodable(value)
    if type_name == "name":
        return isinstance(value, str) and NAME.fullmatch(value) is not None
    if type_name == "bool":
        return isinstance(value, bool)
    return isinstance(value, list) and all(_fits("int64", item) for item in value)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: JSON can carry it, Parquet cannot
        return False
    return True


def journal_columns(table: str) -> dict[str, Column]:
    """The keys a line of this table's journal may have: every column but `run_id`."""
    return {column.name: column for column in TABLES[table].columns if column.name != "run_id"}


class Journal:
    """Append-only JSON lines of one table, `<directory>/<table>.jsonl`.

    Usable as a context manager. Not for several threads at once.
    """

    def __init__(self, directory: Path, table: str) -> None:
        """Open or create the journal.

        Raises EvidenceError when the file ends in a torn line (recover it, do not continue it) or
        the directory is being finalised, and SiteError when it cannot be opened.
        """
        self.path = directory / f"{table}.jsonl"
        self._columns = journal_columns(table)
        self._lock = lock_directory(directory, exclusive=False)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._descriptor = os.open(self.path, flags, 0o644)
            sync_directory(directory)
        except OSError as error:
            os.close(self._lock)
            raise _disk_error(error, self.path) from error
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            self.close()
            raise EvidenceError(
                "the journal ends in a torn line",
                where=str(self.path),
                next_step=f"r8 recover {directory}",
            )

    def append(self, row: Mapping[str, object]) -> None:
        """Add one row and make it durable. See `extend`."""
        self.extend((row,))

    def extend(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Add rows; all are durable on return, and each within a second of its writing.

        Raises EvidenceError for a row that is not one of this table's (rows before it are kept)
        and SiteError when the disk does not take it.
        """
        synced_ns = time.monotonic_ns()
        try:
            for row in rows:
                self._write(self._line(row))
                if time.monotonic_ns() - synced_ns >= SYNC_EVERY_NS:
                    self.sync()
                    synced_ns = time.monotonic_ns()
        finally:
            self.sync()

    def sync(self) -> None:
        """Make durable what was appended; raises SiteError when the disk refuses."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise _disk_error(error, self.path) from error

    def close(self) -> None:
        """Release the file and the directory's lock."""
        os.close(self._descriptor)
        os.close(self._lock)

    def __enter__(self) -> typing.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _line(self, row: Mapping[str, object]) -> bytes:
        fault = row_fault(self._columns, row)
        if fault is not None:
            raise EvidenceError(
                f"a row does not belong in this journal: {fault}",
                where=str(self.path),
                next_step="compare the row with the table in r8/schema.py",
            )
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _write(self, line: bytes) -> None:
        good_bytes = os.fstat(self._descriptor).st_size
        try:
            write_whole(self._descriptor, line)
        except OSError as error:
            # The half line must not stay: the next one would make it a torn line in the middle.
            os.ftruncate(self._descriptor, good_bytes)
            raise _disk_error(error, self.path) from error


# The records a `run.json` may hold, by the kind it says.
KINDS: dict[str, type[Run]] = {record.kind: record for record in (KvRun, TransferRun)}


def run_to_json(run: Run) -> dict[str, Any]:
    """The content of `run.json`; `run_from_json` gives an equal Run back."""
    fields = dataclasses.asdict(run)
    return {"schema_version": fields.pop("schema_version"), "kind": run.kind, **fields}


def run_from_json(value: object, *, where: str) -> Run:
    """A Run from the content of `run.json`.

    Raises EvidenceError naming the key that is unknown, missing or of the wrong type, and for
    another schema version before anything else is looked at.
    """
    fields = dict(value) if isinstance(value, dict) else {}
    version = fields.get("schema_version")
    if version != SCHEMA_VERSION:
        raise EvidenceError(
            f"schema version is {version!r:.100}, this R8 reads {SCHEMA_VERSION}",
            where=where,
            next_step="use the R8 release that wrote the run (`r8_version` in its run.json)",
        )
    record = KINDS.get(str(fields.pop("kind", None)))
    try:
        if record is None:
            raise ValueError(f"key 'kind' is none of {', '.join(KINDS)}")  # noqa: TRY301
        run = msgspec.convert(fields, record)
        if fault := _difference(fields, msgspec.to_builtins(run), "run"):
            raise ValueError(fault)  # noqa: TRY301
    except ValueError as error:
        raise EvidenceError(
            str(error), where=where, next_step="compare it with class Run in r8/model.py"
        ) from error
    return run


def _difference(written: Any, read: Any, name: str) -> str | None:
    """The first key that one of them has and the other has not.

    msgspec ignores a key it does not know, and a default stands in for one that is missing.
    """
    if isinstance(written, dict):
        for key in sorted(written.keys() ^ read.keys()):
            return f"{'unknown' if key in written else 'missing'} key {name}.{key}"
        pairs = [(written[key], read[key], f"{name}.{key}") for key in written]
    elif isinstance(written, list):
        pairs = [(*both, name) for both in zip(written, read, strict=True)]
    else:
        return None
    return next((fault for pair in pairs if (fault := _difference(*pair))), None)
