"""Journals and engine logs as rows of the schema, a block at a time.

A block of lines is parsed by Arrow when nothing about it is unusual; whatever Arrow refuses, or
might read more kindly than R8 does, is read line by line, so that a fault is named by its line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from r8.errors import EvidenceError
from r8.evidence.engine_log import parse_log
from r8.evidence.journal import journal_columns, row_fault
from r8.evidence.layout import TableWriter
from r8.evidence.log_clock import LogClock, Mark
from r8.model import NAME
from r8.schema import TABLES, Pseudonymised
from r8.sensitive import masked, masked_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from r8.schema import Column, Travels

# Some 60 000 probe rows: a week of them must not need a week of memory.
_BLOCK_BYTES = 16 << 20
_BATCH_ROWS = 50_000
# More than the longest stretch of lines without a stamp, such as a traceback.
_TAIL_BYTES = 1 << 20
# Halves of surrogate pairs and words JSON does not know: Arrow takes some of them, R8 none.
_ESCAPE, _UNUSUAL = b"\\u", (b"\\ud", b"\\uD")


def write_table(partial: Path, work: Path, name: str, run_id: str) -> int:
    """Write one Parquet file; the number of torn lines dropped (0 or 1).

    Raises EvidenceError naming file and line for a journal that is not one.
    """
    torn: list[int] = []
    if name == "engine_log":
        tables: Iterable[pa.Table] = (_table(name, rows) for rows in _log_batches(partial))
    else:
        tables = _journal_tables(partial / f"{name}.jsonl", name, torn)
    with TableWriter(work / f"{name}.parquet", name) as writer:
        for table in tables:
            writer.write(_with_run(table, name, run_id))
    return len(torn)


def _with_run(table: pa.Table, name: str, run_id: str) -> pa.Table:
    schema = TABLES[name].arrow()
    ids = pa.repeat(pa.scalar(run_id), table.num_rows)
    columns = [
        ids if one.name == "run_id" else _without_secrets(table.column(one.name), one.travels)
        for one in TABLES[name].columns
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _without_secrets(column: Any, travels: Travels | None) -> Any:
    """A column with values of secrets replaced where anybody's sentence may stand in it."""
    if not isinstance(travels, Pseudonymised) or not travels.free:
        return column
    hide = _masked_facts if travels.by == "facts" else masked
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    hidden = [hide(text) for text in texts]
    if hidden == texts:
        return column
    return pc.take(pa.array(hidden, pa.string()), encoded.indices)


def _masked_facts(detail: str) -> str:
    """An event's facts stay a JSON object whatever was masked, and no key is there twice."""
    text = masked(detail)
    try:
        facts = json.loads(text)
    except ValueError:
        return detail if text == detail else json.dumps({"masked": text})
    hidden = masked_json(facts)
    return text if (text, hidden) == (detail, facts) else json.dumps(hidden, sort_keys=True)


def _log_batches(partial: Path) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    marks = _marks(partial / "events.jsonl")
    for path in sorted((partial / "raw").glob("server-*.log")):
        instance = path.name.removeprefix("server-").removesuffix(".log")
        clock = LogClock(marks, instance)
        clock.set_zone(*_stamped_ends(path, clock))
        with path.open("rb") as lines:
            for row in parse_log(lines, instance=instance):
                batch.append(row | clock.instants(str(row["text"])))
                if len(batch) >= _BATCH_ROWS:
                    yield batch
                    batch = []
    yield batch


def _marks(path: Path) -> list[Mark]:
    """The run's events; lines that are none are named when their own table is written."""
    found = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            row = json.loads(line)
            found.append(Mark(**{one.name: row.get(one.name) for one in dataclasses.fields(Mark)}))
    return found


def _stamped_ends(path: Path, clock: LogClock) -> tuple[str | None, str | None]:
    """The first and the last line of a log that has a stamp."""
    with path.open("rb") as file:
        first = clock.first_stamped(line.decode(errors="replace") for line in file)
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        tail = reversed(file.readlines())
        return first, clock.first_stamped(line.decode(errors="replace") for line in tail)


def _journal_tables(path: Path, name: str, torn: list[int]) -> Iterator[pa.Table]:
    """Checked rows of one journal; `torn` gets the number of a dropped last line."""
    if not path.is_file():
        return
    first = 1
    for block in _blocks(path):
        fast = _parsed_by_arrow(block, name)
        yield _table(name, _read_lines(block, first, path, torn)) if fast is None else fast
        first += block.count(b"\n")


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time; a last line without its end comes alone."""
    rest = b""
    with path.open("rb") as file:
        while data := file.read(_BLOCK_BYTES):
            lines, end, tail = data.rpartition(b"\n")
            if end:
                yield rest + lines + end
                rest = tail
            else:
                rest += data
    if rest:
        yield rest


def _parsed_by_arrow(block: bytes, name: str) -> pa.Table | None:
    """The rows of a block; None when it must be read line by line."""
    if not block.endswith(b"\n"):
        return None
    if _ESCAPE in block and any(one in block for one in _UNUSUAL):
        return None
    schema = _fields(name)
    options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    reading = pa_json.ReadOptions(block_size=len(block) + 1)
    try:
        block.decode()
        table = pa_json.read_json(io.BytesIO(block), reading, options).select(schema.names)
    except (pa.ArrowException, UnicodeDecodeError, KeyError):
        return None
    whole = table.num_rows == block.count(b"\n")
    fits = all(_is_plain(table.column(column.name), column) for column in _columns(name))
    return table if whole and fits else None


def _is_plain(values: Any, column: Column) -> bool:
    """Nothing missing that must be there, and no number that is none."""
    if values.null_count and not column.nullable:
        return False
    if column.type == "name":
        fits = pc.match_substring_regex(pc.unique(values), f"^(?:{NAME.pattern})$")
        return bool(pc.all(fits, min_count=0).as_py())
    if column.type == "float64":
        return bool(pc.all(pc.is_finite(values), min_count=0).as_py())
    return column.type != "list<int64>" or pc.list_flatten(values).null_count == 0


def _columns(name: str) -> list[Column]:
    return list(journal_columns(name).values())


def _fields(name: str) -> pa.Schema:
    # Without "not null": Arrow would fill what is missing instead of saying so.
    return pa.schema([(f.name, f.type) for f in TABLES[name].arrow() if f.name != "run_id"])


def _table(name: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    kept, schema = list(rows), _fields(name)
    arrays = [pa.array([row.get(one.name) for row in kept], one.type) for one in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _read_lines(block: bytes, first: int, path: Path, torn: list[int]) -> Iterator[dict[str, Any]]:
    columns = journal_columns(path.stem)
    for number, line in enumerate(io.BytesIO(block), start=first):
        try:
            row = json.loads(line)
            fault = row_fault(columns, row)
        except ValueError as error:
            if not line.endswith(b"\n"):  # only the last line can lack it
                torn.append(number)
                return
            fault = f"torn or not JSON: {error}"
        if fault is not None:
            raise EvidenceError(
                f"line {number} is not a row of {path.stem}: {fault}",
                where=f"{path}:{number}",
                next_step="keep the directory; the instrument that wrote the line is at fault",
            )
        yield row
