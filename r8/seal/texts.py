"""Every text of a directory: lines of files, of packed ones too, and texts of Parquet columns."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from r8.errors import EvidenceError
from r8.evidence.budgets import BUDGETS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK_CHARS = 4 << 20
# A plan is one line: 8 000 prompts of 2 000 tokens are 96 MB. What is longer may be without an end.
LINE_CHARS_MAX = 256 << 20
_BATCH_ROWS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A piece of text: a block of lines of a file, or one value of a column."""

    file: str  # with the column, for a Parquet file
    line: int  # of its first line, or the row among those with a text, from 1
    text: str


def texts_of(directory: Path) -> Iterator[Text]:
    """Every text below a directory, file by file; equal values of a batch of rows once."""
    for path in sorted(one for one in directory.rglob("*") if one.is_file()):
        name = path.relative_to(directory).as_posix()
        yield from _of_parquet(path, name) if path.suffix == ".parquet" else _of_lines(path, name)


def _of_lines(path: Path, name: str) -> Iterator[Text]:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    number, count = 1, 0
    try:
        with opened(path, "rt", encoding="utf-8", errors="backslashreplace") as lines:
            while block := lines.read(_BLOCK_CHARS) + lines.readline(LINE_CHARS_MAX):
                count += len(block)
                BUDGETS.require("file_bytes", count, where=name)
                if len(block) >= LINE_CHARS_MAX:
                    raise _unread(name, f"a line of more than {LINE_CHARS_MAX} characters")
                yield Text(file=name, line=number, text=block)
                number += block.count("\n")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _unread(name, f"no whole gzip: {error}") from error


def _unread(name: str, what: str) -> EvidenceError:
    return EvidenceError(
        f"{name} cannot be read as text: {what}",
        where=name,
        next_step="nobody can tell what stands in it; record the run again",
    )


def _of_parquet(path: Path, name: str) -> Iterator[Text]:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        said = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
        yield Text(file=f"{name} (metadata)", line=1, text=json.dumps(said))
        columns = [one.name for one in schema if _holds_text(one.type)]
        first = 1
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            for column in columns:
                encoded = _flat(batch.column(column)).drop_null().dictionary_encode()
                rows = np.unique(encoded.indices.to_numpy(), return_index=True)[1]
                for value, row in zip(encoded.dictionary.to_pylist(), rows, strict=True):
                    yield Text(file=f"{name} ({column})", line=first + int(row), text=str(value))
            first += batch.num_rows


def _holds_text(kind: Any) -> bool:
    return not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    ) and not (pa.types.is_list(kind) and not _holds_text(kind.value_type))


def _flat(column: Any) -> Any:
    return column.flatten() if pa.types.is_list(column.type) else column
