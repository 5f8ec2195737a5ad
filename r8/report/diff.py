"""A diff as a table or as JSON, in the chosen language."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from r8 import console
from r8.model import Outcome
from r8.report.words import render_reasons, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.verdict.diff import DiffRow

COLUMNS = (
    *("diff-claim", "diff-published", "diff-measured", "diff-n", "diff-interval"),
    *("diff-deviation", "diff-verdict", "diff-reason"),
)


def table(rows: Sequence[DiffRow], language: str, *, everything: bool) -> str:
    """Judged claims as a table; figures R8 cannot measure follow, or are counted."""
    shown = [row for row in rows if row.verdict is not None]
    headers = [say(language, name) for name in COLUMNS]
    cells = [_cells(row, language) for row in shown]
    text = console.table(cells, headers, widths=[None] * 7 + [70])
    rest = [row for row in rows if row.verdict is None]
    lines = [text]
    if rest and everything:
        lines += [
            f"{row.name}: {row.published or '-'}: {row.outcome}: "
            f"{render_reasons(row.reasons, language)}"
            for row in rest
        ]
    elif rest:
        lines.append(say(language, "diff-unmeasured", count=len(rest)))
    counts = ", ".join(
        f"{sum(row.outcome is outcome for row in shown)} {outcome}"
        for outcome in Outcome
        if any(row.outcome is outcome for row in shown)
    )
    lines.append(say(language, "diff-count", total=len(shown), counts=counts or "0"))
    return "\n".join(lines) + "\n"


def as_rows(rows: Sequence[DiffRow]) -> list[dict[str, Any]]:
    """Every row for a machine: unrounded numbers, and its reasons as ids and facts."""
    return [
        {
            "claim": row.name,
            "published": row.published,
            "at_least": row.at_least,
            "measured": row.measured,
            "low": row.low,
            "high": row.high,
            "unit": row.unit,
            "n_blocks": row.verdict.n_blocks if row.verdict else 0,
            "confidence": row.verdict.confidence if row.verdict else None,
            "deviation": row.deviation,
            "outcome": str(row.outcome),
            "reasons": [dataclasses.asdict(one) for one in row.reasons],
            "runs": list(row.verdict.run_ids) if row.verdict else [],
        }
        for row in rows
    ]


def _cells(row: DiffRow, language: str) -> list[str]:
    published = row.published
    if row.at_least is not None:
        published += f" (>= {row.at_least:.4g} x)"
    interval = "-"
    if row.low is not None and row.high is not None:
        interval = f"{row.low:.4g} .. {row.high:.4g}"
    measured = "-" if row.measured is None else f"{row.measured:.4g} {row.unit}".rstrip()
    deviation = "-" if row.deviation is None else f"{row.deviation:+.2%}"
    n = str(row.verdict.n_blocks) if row.verdict else "0"
    label = say(language, row.outcome)
    outcome = str(row.outcome) if label == str(row.outcome) else f"{row.outcome} {label}"
    why = render_reasons(row.reasons, language)
    return [row.name, published, measured, n, interval, deviation, outcome, why]
