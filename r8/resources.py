"""Where the data that travels with R8 lies: the SQL and the published figures.

A checkout has them in `data/queries` and `data/published`; an installed wheel carries the same
files inside the package as `r8/queries` and `r8/published`.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from r8.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent


def data_path(folder: str, name: str) -> Path:
    """The file `name` of `folder` ("queries" or "published"); raises UsageError when not there."""
    for place in (_PACKAGE / folder, _PACKAGE.parent / "data" / folder):
        if (place / name).is_file():
            return place / name
    raise UsageError(
        f"{folder}/{name} is not part of this R8",
        where=str(_PACKAGE),
        next_step="run from a complete checkout, or reinstall the wheel",
    )


def query_text(name: str) -> str:
    """The SQL text of `data/queries/<name>.sql`."""
    return data_path("queries", f"{name}.sql").read_text(encoding="utf-8")


def query_names() -> tuple[str, ...]:
    """The SQL files of `data/queries` in the order they build on each other, by `load.sql`."""
    return tuple(re.findall(r"^\.read data/queries/(\w+)\.sql$", query_text("load"), re.MULTILINE))


def view_columns() -> dict[tuple[str, str], tuple[str, str]]:
    """Unit and meaning of every column of a view, by view and column; `*` holds in any view."""
    with data_path("queries", "columns.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["view"], row["column"]): (row["unit"], row["meaning"]) for row in rows}


def published_path(name: str) -> Path:
    """The path of `data/published/<name>`."""
    return data_path("published", name)
