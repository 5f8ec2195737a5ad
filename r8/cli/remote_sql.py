"""DuckDB for an analyst, with every table and view, over local runs, bundles or remote paths.

Local runs are read back by hash and judged, so `findings`, `claims` and `verdicts` stand beside the
views. Remote ones (`s3://`, `https://`) are read in place through DuckDB's httpfs: nobody compared
them with their manifest or checked their tables, and the verb says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from r8.errors import UsageError
from r8.evidence.database import FIGURES, add_views, confine, list_of, make_views
from r8.evidence.door import home
from r8.resources import published_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

REMOTE = ("s3://", "https://", "http://", "gs://", "r2://", "hf://")


def is_remote(path: str) -> bool:
    """Whether a run is named by a URL."""
    return path.startswith(REMOTE)


def connect_remote(
    run_dirs: Sequence[str], allowed: Sequence[Path] = ()
) -> duckdb.DuckDBPyConnection:
    """The views over run directories named by URL; `s3://` names may hold `*`.

    Statements reach these URLs and the directories `allowed`, nothing else.

    Raises UsageError when httpfs is neither installed nor to be had, or a name matches nothing.
    """
    connection = duckdb.connect()
    try:
        connection.execute("LOAD httpfs")
    except duckdb.Error:
        _install_httpfs(connection)
    found = [name for path in run_dirs for name in _expand(connection, path)]
    connection.execute("FROM duckdb_secrets()")  # stored ones are files, read when first asked for
    confine(connection, [*found, home(), *allowed], [published_path(FIGURES)])
    connection.execute(f"SET VARIABLE r8_run_dirs = {list_of(found)}")
    make_views(connection)
    add_views(connection)
    return connection


def _install_httpfs(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.execute("INSTALL httpfs")
        connection.execute("LOAD httpfs")
    except duckdb.Error as error:
        raise UsageError(
            f"DuckDB's httpfs is not to be had: {str(error).splitlines()[0]}",
            where="r8 sql",
            next_step="run `INSTALL httpfs` once in duckdb with a network, or copy the runs here",
        ) from error


def _expand(connection: duckdb.DuckDBPyConnection, path: str) -> list[str]:
    path = path.rstrip("/")
    if "*" not in path:
        return [path]
    rows = connection.execute(
        "SELECT regexp_replace(file, '/MANIFEST\\.sha256$', '') FROM glob($1) ORDER BY file",
        [f"{path}/MANIFEST.sha256"],
    ).fetchall()
    if not rows:
        raise UsageError("no run matches", where=path, next_step="ls the bucket")
    return [name for (name,) in rows]
