"""What a Parquet footer claims of its columns, held against what the pages hold.

DuckDB leaves out a row group whose claimed smallest and largest value do not fit a filter, and may
answer count, min and max from the claims alone. Whoever writes a file writes its claims: rows that
hash right and that every other reader sees could be hidden from a judged number. So a claim is
either not there or exactly true. The claims are read by DuckDB, since it is the one that believes
them; the values by pyarrow, which believes none while it reads everything.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pathlib import Path

_ASKED = """
SELECT row_group_id, column_id, stats_null_count, bloom_filter_offset IS NOT NULL,
       [stats_min, stats_min_value], [stats_max, stats_max_value]
FROM parquet_metadata($file)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What the footer says of one leaf column of one row group; values as DuckDB prints them."""

    nulls: int | None
    filtered: bool  # has a Bloom filter
    smallest: tuple[str, ...]  # in the old field, the new one or both
    largest: tuple[str, ...]


class Span:
    """What a leaf column of a row group holds, batch by batch."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.nulls = 0
        self.smallest: Any = None
        self.largest: Any = None
        self._has_nan = False

    def add(self, values: Any) -> None:
        """Count a batch of an int64, float64, bool, text (as a dictionary) or list column."""
        if pa.types.is_list(values.type):
            # A list that is null or empty has one place in the leaf, without a value.
            filled = pc.sum(pc.greater(pc.list_value_length(values), 0)).as_py() or 0
            self.nulls += len(values) - filled
            values = values.flatten()
        self.nulls += values.null_count
        if pa.types.is_dictionary(values.type):
            values = values.dictionary
        elif pa.types.is_floating(values.type):
            self._has_nan |= bool(pc.any(pc.is_nan(values)).as_py())
        found = pc.min_max(values).as_py()
        if found["min"] is not None:
            pairs = self.smallest, self.largest
            self.smallest = found["min"] if pairs[0] is None else min(pairs[0], found["min"])
            self.largest = found["max"] if pairs[1] is None else max(pairs[1], found["max"])

    def contradicted(self, said: Claims) -> str | None:
        """What the claims say that is not so, in words; None when each of them is true."""
        if said.filtered:
            return "a Bloom filter, which R8 never writes"
        if self._has_nan:
            return "a value that is no number"
        if said.nulls is not None and said.nulls != self.nulls:
            return f"a footer that says {said.nulls} nulls where {self.nulls} are"
        for word, claims, value in (
            ("smallest", said.smallest, self.smallest),
            ("largest", said.largest, self.largest),
        ):
            if not all(_same(claim, value) for claim in claims):
                return f"a footer that says another {word} value than its rows have"
        return None


def claims_of(path: Path) -> dict[tuple[int, int], Claims]:
    """The claims of a Parquet file by row group and leaf column; raises ValueError without."""
    try:
        rows = _reader(os.getpid()).execute(_ASKED, {"file": str(path)}).fetchall()
    except duckdb.Error as error:
        raise ValueError(str(error)) from error
    return {
        (group, leaf): Claims(
            nulls=nulls,
            filtered=filtered,
            smallest=tuple(one for one in smallest if one is not None),
            largest=tuple(one for one in largest if one is not None),
        )
        for group, leaf, nulls, filtered, smallest, largest in rows
    }


@functools.cache
def _reader(_process: int) -> duckdb.DuckDBPyConnection:
    """One connection a process: to open one costs more than to read ten footers."""
    return duckdb.connect(config={"threads": 1, "autoload_known_extensions": False})


def _same(claim: str, value: Any) -> bool:
    """Whether a printed claim is this value; a zero may have either sign."""
    try:
        if isinstance(value, bool):
            return claim == str(value).lower()
        if isinstance(value, float):
            return float(claim) == value
        if isinstance(value, int):
            return int(claim) == value
    except ValueError:
        return False
    return bool(claim == value)
