"""One style for every table on a terminal: tabulate's plain one, never wider than the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabulate import tabulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ABSENT = "-"


def table(
    rows: Iterable[Sequence[object]],
    headers: Sequence[str],
    *,
    widths: Sequence[int | None] | None = None,
) -> str:
    """Rows as text; absent cells are a dash. `widths` wrap the columns that hold sentences."""
    cells = [[ABSENT if one is None or one == "" else str(one) for one in row] for row in rows]
    return tabulate(
        cells,
        headers=list(headers),
        tablefmt="simple" if headers else "plain",
        disable_numparse=True,
        maxcolwidths=None if widths is None else list(widths),
    )
