"""The Parquet file of a table, checked before anything computes with it.

A footer is small and says what the rest comes to: rows, bytes before compression, encodings. That
is held against the budgets first, and the schema against `r8.schema` exactly. Then every value is
decoded once, a text as a dictionary (a value that stands a million times is held once) and counted
as often as it stands: a text is the one thing a row can be made heavy with. What the footer claims
of the values has to be true (`r8.evidence.footer_claims`).
"""

from __future__ import annotations

import functools
import io
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from r8.errors import EvidenceError
from r8.evidence.budgets import BUDGETS, Budgets, rows_budget, texts_budget
from r8.evidence.footer_claims import Span, claims_of
from r8.evidence.strict_json import strict_json
from r8.model import NAME
from r8.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from r8.schema import Table

# What R8 and common writers use. DELTA_BYTE_ARRAY is not among them: its texts share beginnings,
# so a page of a megabyte may hold terabytes.
_ENCODINGS = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"})
_ENCODINGS |= {"DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "BYTE_STREAM_SPLIT"}
_BATCH_ROWS = 131_072
_BUFFER_BYTES = 1 << 20  # read of a column at a time; whole columns would be held otherwise
_TAIL_BYTES = 8  # length of the footer, and PAR1
# A footer of few bytes must not become a list of many things.
_FOOTER_THINGS = 1_000_000
_TEXTS, _LIST = ("string", "name"), "list<int64>"
# Ids become parts of paths, commands and joins.
_NAME = f"^(?:{NAME.pattern})$"


def check_table(
    path: Path, table: Table, run_id: str, *, where: str, budgets: Budgets = BUDGETS
) -> None:
    """Raise EvidenceError unless the file is this table, with rows of this run alone.

    `where` is what the sender's file is called; `path` is our copy of it.
    """
    try:
        _Check(path, table, run_id, where, budgets).all()
    except (OSError, pa.ArrowException, MemoryError, ValueError) as error:
        raise unreadable(error, where) from error


def unreadable(error: Exception, where: str) -> EvidenceError:
    """The error of a file that is no Parquet, in the first line of what the library says."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return _bad_table(f"not a readable Parquet file: {first}", where)


def _bad_table(what: str, where: str) -> EvidenceError:
    return EvidenceError(
        what,
        where=where,
        next_step="use the R8 release that wrote the run (see run.json)",
    )


@functools.cache
def _columns(table: Table) -> tuple[Any, list[tuple[Any, ...]]]:
    """The names and types of the table's Arrow schema, and the leaves of its Parquet schema."""
    whole = table.arrow()
    sink = io.BytesIO()
    pq.write_table(whole.empty_table(), sink)
    return list(zip(whole.names, whole.types, strict=True)), _leaves(pq.ParquetFile(sink).schema)


def _leaves(schema: Any) -> list[tuple[Any, ...]]:
    leaves = [schema.column(number) for number in range(len(schema))]
    return [
        (
            *(one.path, one.physical_type, str(one.logical_type)),
            *(one.max_definition_level, one.max_repetition_level),
        )
        for one in leaves
    ]


class _Check:
    """One file while it is checked."""

    def __init__(self, path: Path, table: Table, run_id: str, where: str, budgets: Budgets) -> None:
        self._path, self._table, self._run_id = path, table, run_id
        self._where, self._budgets = where, budgets
        self._texts_bytes = 0
        self._values = 0

    def all(self) -> None:
        self._require("footer_bytes", self._footer_bytes())
        with pq.ParquetFile(
            self._path,
            thrift_string_size_limit=self._budgets.footer_bytes,
            thrift_container_size_limit=_FOOTER_THINGS,
        ) as file:
            said = file.metadata
            self._version(said.metadata or {})
            self._schema(file)
        self._declared(said)
        texts = [one.name for one in self._table.columns if one.type in _TEXTS]
        with pq.ParquetFile(
            self._path,
            metadata=said,
            read_dictionary=texts,
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
        ) as file:
            self._decoded(file)

    def _require(self, budget: str, found: int) -> None:
        self._budgets.require(budget, found, where=self._where)

    def _bad(self, what: str) -> EvidenceError:
        return _bad_table(what, self._where)

    def _footer_bytes(self) -> int:
        with self._path.open("rb") as file:
            if file.seek(0, os.SEEK_END) < _TAIL_BYTES:
                raise ValueError("it is too short")
            file.seek(-_TAIL_BYTES, os.SEEK_END)
            return int.from_bytes(file.read(4), "little")

    def _version(self, said: dict[bytes, bytes]) -> None:
        version = said.get(b"r8.schema_version", b"none").decode()
        if version != str(SCHEMA_VERSION):
            what = f"schema version is {version[:20]}, this R8 reads {SCHEMA_VERSION}"
            raise self._bad(what)

    def _schema(self, file: Any) -> None:
        """Names, types, order and nullability, by Parquet's own schema and by Arrow's."""
        arrow, leaves = _columns(self._table)
        found = _leaves(file.schema)
        wanted = [one[0] for one in leaves]
        if extra := sorted({one[0] for one in found} - set(wanted)):
            raise self._bad(f"unknown columns {', '.join(extra)[:200]}")
        for number, column in enumerate(self._table.columns):
            if found[number : number + 1] != leaves[number : number + 1]:
                what = f"column {column.name} is not there as {column.type}"
                raise self._bad(f"{what}, or not in place {number + 1}")
        schema = file.schema_arrow
        if len(found) > len(leaves) or list(zip(schema.names, schema.types, strict=True)) != arrow:
            raise self._bad(f"its columns are not those of {self._table.name}")

    def _declared(self, said: Any) -> None:
        """What the footer says of rows and bytes, and whether it agrees with itself."""
        self._require(rows_budget(self._table.name), said.num_rows)
        self._require("row_groups", said.num_row_groups)
        rows = table_bytes = values = 0
        for group in map(said.row_group, range(said.num_row_groups)):
            rows += group.num_rows
            for column in map(group.column, range(group.num_columns)):
                self._chunk(column, group.num_rows)
                table_bytes += column.total_uncompressed_size
                values += column.num_values if "." in column.path_in_schema else 0
        self._require("table_bytes", table_bytes)
        self._require("list_values", values)
        if rows != said.num_rows:
            raise self._bad(f"{said.num_rows} rows, but {rows} in its row groups")

    def _chunk(self, column: Any, rows: int) -> None:
        name = column.path_in_schema
        self._require("chunk_bytes", column.total_uncompressed_size)
        flat = "." not in name
        if min(rows, column.total_uncompressed_size) < 0 or (flat and column.num_values != rows):
            what = f"column {name} has {column.num_values} values in {rows} rows"
            raise self._bad(what)
        if strange := set(column.encodings) - _ENCODINGS:
            raise self._bad(f"column {name} is encoded as {', '.join(sorted(strange))}")
        if column.file_path:
            raise self._bad(f"column {name} lies in another file")
        if column.has_column_index or column.has_offset_index:
            raise self._bad(f"column {name} has an index of its pages, which R8 never writes")

    def _decoded(self, file: Any) -> None:
        """Every value once; what is counted stays within the budgets, what is claimed is true."""
        claims = claims_of(self._path)
        rows = 0
        for group in range(file.num_row_groups):
            spans = [Span() for _ in self._table.columns]
            before = rows
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], use_threads=False):
                rows += batch.num_rows
                self._require(rows_budget(self._table.name), rows)
                for column, values, span in zip(
                    self._table.columns, batch.columns, spans, strict=True
                ):
                    self._counted(column, values)
                    span.add(values)
            declared = file.metadata.row_group(group).num_rows
            if rows - before != declared:
                raise self._bad(f"{declared} rows declared, {rows - before} there")
            for number, (column, span) in enumerate(zip(self._table.columns, spans, strict=True)):
                said = claims.get((group, number))
                wrong = "no claims to read" if said is None else span.contradicted(said)
                if wrong is not None:
                    raise self._bad(f"column {column.name}, row group {group}: {wrong}")

    def _counted(self, column: Any, values: Any) -> None:
        if column.type == _LIST:
            self._values += len(values.flatten())
            self._require("list_values", self._values)
        elif column.type in _TEXTS:
            self._texts(column, values)

    def _texts(self, column: Any, values: Any) -> None:
        words = values.dictionary
        if not len(words):
            return
        lengths = pc.binary_length(words)
        self._require("text_bytes", pc.max(lengths).as_py())
        self._texts_bytes += pc.sum(lengths.take(values.indices)).as_py() or 0
        self._require(texts_budget(self._table.name), self._texts_bytes)
        if column.name == "run_id":
            if strangers := set(words.to_pylist()) - {self._run_id}:
                other = ascii(min(strangers))[1:101]
                raise self._bad(f"rows of another run: {other}")
        elif column.type == "name" and not pc.all(pc.match_substring_regex(words, _NAME)).as_py():
            fits = pc.match_substring_regex(words, _NAME)
            other = words.filter(pc.invert(fits))[0].as_py()
            raise self._bad(f"{column.name} {ascii(other)[:100]} is no name")
        elif (self._table.name, column.name) == ("events", "detail"):
            for word in words.to_pylist():
                self._facts(word)

    def _facts(self, detail: str) -> None:
        value = strict_json(detail, what="an event's detail", where=self._where)
        if not isinstance(value, dict):
            raise self._bad("an event's detail is no JSON object")
