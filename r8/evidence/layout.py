"""How a table lies in its Parquet file: which rows stand together, and how each column is coded.

The layout is no part of the format: any Parquet of the right schema is read, whatever its order.
What it is for, on a session of days:

* `probes`: a probe and host after the other, rows of one tick side by side. A view that asks for
  block devices never touches the row groups of engines and hosts (their minimum and maximum say
  so), and the instants of a tick, equal or microseconds apart, cost a byte together. What the
  views of bytes read comes first: they go over whole runs, in half the time for a tenth more bytes.
* `chunks`: a stream after the other, so `seq` counts up and a request's id is said once.
* Instants are coded as differences (DELTA_BINARY_PACKED), names as dictionaries. Readings are
  PLAIN: the same counters come again every tick, and Zstandard finds the tick before; as
  dictionaries or differences they took two to six times as much in runs that were measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from r8.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

# Half a million rows of probes are some 100 MB while they are sorted and 1 MB in the file: enough
# groups for two cores in an hour of probes, few enough for their footer in a week.
ROW_GROUP_ROWS = 500_000
# Rows that wait in memory before they are spooled; short runs never reach it.
_WAITING_ROWS = 1_000_000
_LEVEL = 3  # of Zstandard
# fmt: off
INSTANTS = frozenset({
    "mono_ns", "wall_ns", "arrival_ns", "scheduled_ns", "connected_ns", "sent_ns", "sent_done_ns",
    "first_byte_ns", "first_content_ns", "first_answer_ns", "last_content_ns", "done_ns",
})
# fmt: on
_COUNTING = frozenset({"seq", "line"})
_READINGS = frozenset({"value"})
_NO_NAME: list[tuple[str, ...]] = [()]
# Not a column: whether the row's counter is none of those the views of bytes read.
_NO_BYTES = "counter is not of bytes"
BYTES_COUNTERS = frozenset({"read_sectors", "write_sectors", "read_bytes", "exited"})


@dataclass(frozen=True, slots=True)
class Order:
    """Which rows stand together (`apart`), and how they are sorted within a row group."""

    apart: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()


# Tables that are not here keep the order of their journal.
ORDERS = {
    "probes": Order(("probe", "host", _NO_BYTES), ("mono_ns", "device", "counter")),
    "chunks": Order((), ("request_id", "seq")),
}


def open_writer(path: Path, name: str) -> pq.ParquetWriter:
    """A writer of table `name` with this layout's encodings; the caller closes it."""
    schema = TABLES[name].arrow()
    coded = {one.name: "DELTA_BINARY_PACKED" for one in schema if one.name in INSTANTS | _COUNTING}
    coded |= {one.name: "PLAIN" for one in schema if one.name in _READINGS}
    words: Any = [_leaf(one) for one in schema if one.name not in coded]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=words,
        column_encoding=coded,
    )


def _leaf(field: Any) -> str:
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else str(field.name)


class TableWriter:
    """Takes a table's rows as they come and writes them in its order, in bounded memory.

    Rows that belong apart wait in files of their own beside `path` when there are too many of them.
    Use it as a context; the Parquet file is whole when it ends without an error.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._order = ORDERS.get(name, Order())
        self._parts: dict[tuple[str, ...], _Part] = {}
        self._waiting = 0

    def __enter__(self) -> Self:
        return self

    def write(self, rows: pa.Table) -> None:
        """Take rows of the table's schema."""
        for key, part_rows in _apart(rows, self._order.apart):
            if key not in self._parts:
                spool = self._path.with_name(f".{self._name}.{len(self._parts)}.arrow")
                self._parts[key] = _Part(spool)
            self._parts[key].waiting.append(part_rows)
        self._waiting += rows.num_rows
        if self._waiting > _WAITING_ROWS:
            for part in self._parts.values():
                part.spill()
            self._waiting = 0

    def __exit__(self, kind: object, *_rest: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            for part in self._parts.values():
                part.discard()

    def _finish(self) -> None:
        ordered = (self._parts[key] for key in sorted(self._parts))
        rows = (piece for part in ordered for piece in part.rows())
        keys = (*self._order.apart, *self._order.sort)
        with open_writer(self._path, self._name) as writer:
            for group in _regrouped(rows):
                kept = _sorted(group, keys) if keys else group
                writer.write_table(kept, row_group_size=ROW_GROUP_ROWS)


class _Part:
    """Rows that stand together: what waits in memory, after what was spooled."""

    def __init__(self, spool: Path) -> None:
        self.waiting: list[pa.Table] = []
        self._spool = spool
        self._file: Any = None

    def spill(self) -> None:
        for rows in self.waiting:
            if self._file is None:
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self._file = pa.ipc.new_stream(str(self._spool), rows.schema, options=options)
            self._file.write_table(rows)
        self.waiting = []

    def rows(self) -> Iterator[pa.Table]:
        if self._file is not None:
            self._file.close()
            with pa.OSFile(str(self._spool), "rb") as file:
                for batch in pa.ipc.open_stream(file):
                    yield pa.Table.from_batches([batch])
        yield from self.waiting

    def discard(self) -> None:
        if self._file is not None:
            self._file.close()
            self._spool.unlink(missing_ok=True)


def _apart(rows: pa.Table, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """The rows of every value of the keys, each in the order they came."""
    if not keys or not rows.num_rows:
        yield (), rows
        return
    folded, names = np.zeros(rows.num_rows, dtype=np.int64), _NO_NAME
    for key in keys:
        codes, words = _codes(rows, key)
        folded = folded * len(words) + codes
        names = [(*before, word) for before in names for word in words]
    for place in np.flatnonzero(np.bincount(folded)):
        yield names[place], rows.filter(pa.array(folded == place))


def _sorted(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    columns = [
        _codes(rows, key)[0]
        if key == _NO_BYTES or pa.types.is_string(rows.schema.field(key).type)
        else rows.column(key).to_numpy()
        for key in reversed(keys)
    ]
    return rows.take(pa.array(np.lexsort(columns), pa.int64()))


def _codes(rows: pa.Table, key: str) -> tuple[Any, list[str]]:
    """Every text of a column as its place among the column's sorted texts, and those texts."""
    if key == _NO_BYTES:
        codes, counters = _codes(rows, "counter")
        others = np.array([word not in BYTES_COUNTERS for word in counters], dtype=np.int64)
        return others[codes], ["bytes", "others"]
    encoded: Any = rows.column(key).combine_chunks().dictionary_encode()
    words = encoded.dictionary.to_pylist()
    ordered = sorted(words)
    place = {word: number for number, word in enumerate(ordered)}
    ranks = np.array([place[word] for word in words], dtype=np.int64)
    return ranks[encoded.indices.to_numpy()], ordered


def _regrouped(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in the same order, in tables of a row group each."""
    held: list[pa.Table] = []
    count = 0
    for piece in pieces:
        rest = piece
        while count + rest.num_rows >= ROW_GROUP_ROWS:
            cut = ROW_GROUP_ROWS - count
            yield pa.concat_tables([*held, rest.slice(0, cut)])
            held, count, rest = [], 0, rest.slice(cut)
        if rest.num_rows:
            held.append(rest)
            count += rest.num_rows
    if held:
        yield pa.concat_tables(held)
