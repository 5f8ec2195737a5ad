"""What a verb prints: the only place that writes to a terminal, and everything passes a filter.

`line` prints one line whatever is in it, `page` lines that R8 laid out, `complain` one line on
standard error; tables have one style, JSON and CSV one spelling. See `r8.text` for the filters.

Nothing here is coloured, on a terminal or elsewhere, so NO_COLOR has nothing to turn off.
"""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from r8.text import csv_cell, json_text, visible
from r8.text import page as page_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ABSENT = "-"
# A longer cell would pad every row to its width; --json has all of it.
CELL_CHARS_MAX = 1000


def line(text: str, *, end: str = "\n") -> None:
    """One line on standard output."""
    print(visible(text), end=end)


def page(text: str, *, end: str = "\n") -> None:
    """Lines that R8 laid out, on standard output."""
    print(page_text(text), end=end)


def complain(text: str, *more: str, by: str = "r8") -> None:
    """What went wrong, on standard error: one line after the name of who says so, and `more`."""
    for one in (f"{by}: {visible(text)}", *(f"  {visible(one)}" for one in more)):
        print(one, file=sys.stderr)


def progress(text: str, *, last: bool = False) -> None:
    """Where a long piece of work stands: a live line on a terminal, a line each elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write("\n" if last else f"\r\x1b[2K{visible(text)}")
    elif not last:
        sys.stderr.write(f"{visible(text)}\n")
    sys.stderr.flush()


def table(
    rows: Iterable[Sequence[object]],
    headers: Sequence[object],
    *,
    widths: Sequence[int | None] | None = None,
) -> str:
    """Rows as text; absent cells are a dash. `widths` wrap the columns that hold sentences."""
    return tabulate(
        [[_cell(one) for one in row] for row in rows],
        headers=[visible(str(one), CELL_CHARS_MAX) for one in headers],
        tablefmt="simple" if headers else "plain",
        disable_numparse=True,
        maxcolwidths=None if widths is None else list(widths),
    )


def _cell(value: object) -> str:
    return ABSENT if value is None or value == "" else visible(str(value), CELL_CHARS_MAX)


def print_json(value: Any) -> None:
    """One JSON value on standard output; an infinite number is text, for JSON has none."""
    print(json_text(value))


def print_csv(rows: Iterable[Sequence[object]], headers: Sequence[object]) -> None:
    """Rows as CSV on standard output, absent cells empty."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows([csv_cell(one) for one in row] for row in (headers, *rows))
