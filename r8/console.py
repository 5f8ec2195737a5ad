"""What a verb prints: one style for every table, and the same facts as JSON for machines.

Nothing here is coloured, on a terminal or elsewhere, so NO_COLOR has nothing to turn off.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

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


def print_json(value: Any) -> None:
    """One JSON value on standard output; an infinite number is text, for JSON has none."""
    print(json.dumps(_plain(value), indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
