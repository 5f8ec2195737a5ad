"""The data dictionary: every column of every table and view, with type, unit and meaning.

Tables are described by `r8.schema`; views by `data/queries/columns.csv`, whose rows under `*` hold
for a column wherever it appears. The generated text is `data/queries/DICTIONARY.md`; a test holds
it against the files.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
from tabulate import tabulate

from r8.errors import UsageError
from r8.evidence.database import add_views, make_views
from r8.resources import view_columns
from r8.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERYWHERE = "*"
_TYPES = """
    SELECT table_name, column_name, data_type FROM duckdb_columns()
    WHERE NOT internal AND schema_name = 'main' AND database_name = current_database()
    ORDER BY table_name, column_index
"""
_HEAD = """\
# Data dictionary

Made by `r8 dictionary --markdown` from `r8/schema.py` and `columns.csv`; a test holds it against
the files. Instants are nanoseconds on the monotonic clock of the host that took them, sizes are
bytes, absent is NULL and never 0. Inside a Parquet file the same unit and meaning stand in each
column's own metadata.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One column of one table or view."""

    relation: str
    column: str
    type: str
    unit: str
    meaning: str
    is_table: bool


@contextlib.contextmanager
def describing() -> Iterator[duckdb.DuckDBPyConnection]:
    """Every table and view over a run without a row: enough to say what their columns are."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        for table in TABLES.values():
            pq.write_table(table.arrow().empty_table(), Path(folder) / f"{table.name}.parquet")
        (Path(folder) / "run.json").write_text("{}")
        quoted = folder.replace("'", "''")
        connection.execute(f"SET VARIABLE r8_run_dirs = ['{quoted}']")
        make_views(connection)
        add_views(connection)
        yield connection


def dictionary(connection: duckdb.DuckDBPyConnection) -> list[Entry]:
    """Every column behind the connection, in the order of relations and columns.

    Raises UsageError for a column that nothing describes: a number without a meaning is no data.
    """
    written = view_columns()
    found = []
    for relation, column, kind in connection.execute(_TYPES).fetchall():
        unit, meaning = _describe(relation, column, written)
        found.append(
            Entry(
                relation=relation,
                column=column,
                type=kind,
                unit=unit,
                meaning=meaning,
                is_table=relation in TABLES,
            )
        )
    return found


def unused(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Descriptions in columns.csv that describe no column of any view."""
    there = {(relation, column) for relation, column, _ in connection.execute(_TYPES).fetchall()}
    columns = {column for relation, column in there if relation not in TABLES}
    return [
        f"{view}.{column}"
        for view, column in view_columns()
        if (column not in columns if view == EVERYWHERE else (view, column) not in there)
    ]


def as_markdown(entries: list[Entry]) -> str:
    """The dictionary as a document: tables of a run directory first, then views."""
    parts = [_HEAD]
    for title, is_table in (("Tables of a run directory", True), ("Views", False)):
        parts.append(f"## {title}\n")
        chosen = [one for one in entries if one.is_table is is_table]
        for relation in dict.fromkeys(one.relation for one in chosen):
            about = f": {TABLES[relation].meaning}" if is_table else ""
            rows = [
                [f"`{one.column}`", one.type, one.unit, one.meaning]
                for one in chosen
                if one.relation == relation
            ]
            headers = ["column", "type", "unit", "meaning"]
            table = tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)
            parts.append(f"### `{relation}`{about}\n\n{table}\n")
    return "\n".join(parts)


def _describe(
    relation: str, column: str, written: dict[tuple[str, str], tuple[str, str]]
) -> tuple[str, str]:
    if relation in TABLES:
        known = {one.name: one for one in TABLES[relation].columns}
        if column in known:
            return known[column].unit, known[column].meaning
    for view in (relation, EVERYWHERE):
        if (view, column) in written:
            return written[view, column]
    raise UsageError(
        f"nothing says what {relation}.{column} is",
        where="data/queries/columns.csv",
        next_step="add a row for it",
    )
