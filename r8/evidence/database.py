"""Checked runs as tables of an in-memory DuckDB, with every view of data/queries over them.

The same SQL files that an analyst runs by hand (`data/queries/README.md`) make the tables and views
here; this module says which directories they read.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import duckdb

from r8.errors import MetricError
from r8.evidence import door
from r8.resources import published_path, query_names, query_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from r8.evidence.reader import Evidence

# Files that no metric is made from: what rules ask, and what analysts and pictures do.
_OF_RULES = frozenset({"balance", "growth", "network", "outputs", "residency"})
_OF_PEOPLE = frozenset({"arms", "timelines", "claims"})
FIGURES = "figures.parquet"
# 72 hours of 51.5 million probe rows are asked, judged and reported within 2 GB a process, without
# spilling: twice that, and as much again on the disk for what an analyst types.
MEMORY_MAX = "4GB"
SPILL_MAX = "8GB"


def connect(
    evidences: Iterable[Evidence], *, allowed: Sequence[Path] = ()
) -> duckdb.DuckDBPyConnection:
    """A connection with the tables and views over these runs; the caller closes it.

    It opens our copies of the runs and the published figures, and nothing else: no other file, no
    network, no extension, and none of that can be set again. Statements may also read and write
    the directories `allowed`.

    Raises MetricError for no runs at all: views over nothing would answer every question with
    nothing.
    """
    found = list(evidences)
    if not found:
        raise MetricError(
            "there are no runs to compute from", where="-", next_step="name at least one run"
        )
    connection = duckdb.connect()
    confine(connection, [door.home(), *allowed], [published_path(FIGURES)])
    directories = list_of(evidence.tables for evidence in found)
    connection.execute(f"SET VARIABLE r8_run_dirs = {directories}")
    run_ids = list_of(evidence.run.run_id for evidence in found)
    connection.execute(f"SET VARIABLE r8_run_ids = {run_ids}")
    make_views(connection)
    return connection


def confine(
    connection: duckdb.DuckDBPyConnection, directories: Sequence[Path | str], files: Sequence[Path]
) -> None:
    """Let a connection reach these places alone, in bounded memory, for good.

    The order matters: some of it can no longer be set once files are out of reach.
    """
    spill = door.home() / "spill"
    for setting in (
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        f"temp_directory = {_quoted(str(spill))}",
        f"max_temp_directory_size = '{SPILL_MAX}'",
        f"memory_limit = '{MEMORY_MAX}'",
        f"allowed_directories = {list_of(directories)}",
        f"allowed_paths = {list_of(files)}",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


@contextlib.contextmanager
def probes_of(run_id: str, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """While it lasts `probes` is this run's alone, over a connection of `connect`.

    A question about one run of many would open the files of all of them to find that out.
    """
    ((path,),) = connection.execute(
        "SELECT getvariable('r8_run_dirs')"
        "[list_position(CAST(getvariable('r8_run_ids') AS VARCHAR[]), $run)]",
        {"run": run_id},
    ).fetchall()
    if path is None:  # a connection that somebody else made
        yield
        return
    file = _quoted(f"{path}/probes.parquet")
    connection.execute(
        f"CREATE TEMP VIEW probes AS FROM read_parquet({file}, hive_partitioning = false)"
    )
    try:
        yield
    finally:
        connection.execute("DROP VIEW temp.probes")


def list_of(texts: Iterable[object]) -> str:
    """Texts, or paths, as a list in SQL."""
    return f"[{', '.join(_quoted(str(one)) for one in texts)}]"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def make_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Tables and metrics over the directories the connection's variable names."""
    _read(connection, set(query_names()) - _OF_RULES - _OF_PEOPLE)


def add_rule_views(connection: duckdb.DuckDBPyConnection) -> None:
    """What rules and reports ask beyond metrics, and `metrics` itself computed once.

    Asking one view a hundred small questions must not compute it a hundred times.
    """
    _read(connection, _OF_RULES)
    connection.execute("CREATE TEMP TABLE metrics AS FROM memory.main.metrics")


def add_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Every view that is not there yet: timelines, and published figures beside the runs."""
    figures = _quoted(str(published_path(FIGURES)))
    connection.execute(f"SET VARIABLE r8_figures = {figures}")
    _read(connection, _OF_RULES | _OF_PEOPLE)


def _read(connection: duckdb.DuckDBPyConnection, names: Collection[str]) -> None:
    for name in query_names():
        for statement in _statements(name) if name in names else ():
            connection.execute(statement)


@functools.cache
def _statements(name: str) -> tuple[Any, ...]:
    """A query file, parsed once a process: a fifth of what a connection over small runs costs."""
    return tuple(duckdb.extract_statements(query_text(name)))
