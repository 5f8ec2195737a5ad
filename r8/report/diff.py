"""A diff as a table or as JSON, in the chosen language."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from r8.message import Message
from r8.model import Outcome
from r8.report.words import LANGUAGES, render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.message import Fact
    from r8.verdict.diff import DiffRow

COLUMNS = (
    *("diff-claim", "diff-published", "diff-measured", "diff-n", "diff-interval"),
    *("diff-deviation", "diff-verdict", "diff-reason"),
)
_POINT_CHECK = r"; point check: the published number carries no variance(?P<more>.*)"
# Sentences of the verdict that say which key differs, and their place in the catalogue.
_REASONS = (
    (
        re.compile(
            r"basis: published measured, run (?P<run>\S+) (?P<basis>\w+): a device shaped after "
            r"the published numbers proves nothing about them"
        ),
        "reason-basis",
    ),
    (
        re.compile(
            r"run (?P<run>\S+) is (?P<basis>\w+): a device shaped after the published numbers "
            r"proves nothing about them"
        ),
        "reason-basis",
    ),
    (
        re.compile(r"rung: published cluster, run (?P<run>\S+) rehearsal step '(?P<rung>[^']*)'"),
        "reason-rung",
    ),
    (
        re.compile(
            r"(?P<key>[\w -]+): published '(?P<ours>[^']*)', run (?P<run>\S+) (?P<theirs>.+)"
        ),
        "reason-key",
    ),
    (
        re.compile(r"no run of (?P<scenario>\S+) at level (?P<level>\S+)"),
        "reason-no-run",
    ),
    (re.compile(r"no run of arm (?P<arm>\S+)"), "reason-no-arm"),
    (
        re.compile(
            r"(?:reference: )?(?P<key>\w+): (?P<ours>.+) in (?P<run>\S+), (?P<theirs>.+) in "
            r"(?P<other>\S+)"
        ),
        "reason-unlike",
    ),
    (
        re.compile(
            r"(?!\d+ of)(?P<found>.+?), claimed (?P<claimed>.+), limit (?P<low>\S+) to "
            r"(?P<high>[^\s,;]+)(?:, deviation (?P<deviation>[^;]+?))?" + _POINT_CHECK
        ),
        "reason-value",
    ),
    (
        re.compile(
            r"(?!\d+ of)(?P<found>.+?), claimed (?P<claimed>.+), limit (?P<low>\S+) or more"
            + _POINT_CHECK
        ),
        "reason-least",
    ),
    (
        re.compile(r"(?P<n>\d+) of (?P<needed>\d+) blocks the plan needs; (?P<rest>.*)"),
        "reason-few",
    ),
)


def table(rows: Sequence[DiffRow], language: str, *, everything: bool) -> str:
    """Judged claims as a table; figures R8 cannot measure follow, or are counted."""
    shown = [row for row in rows if row.verdict is not None]
    headers = [_say(name, language) for name in COLUMNS]
    cells = [_cells(row, language) for row in shown]
    text = tabulate(cells, headers, disable_numparse=True, maxcolwidths=[None] * 7 + [70])
    rest = [row for row in rows if row.verdict is None]
    lines = [text]
    if rest and everything:
        lines += [
            f"{row.name}: {row.published or '-'}: {Outcome.NOT_MEASURED}: {reason(row, language)}"
            for row in rest
        ]
    elif rest:
        lines.append(_say("diff-unmeasured", language, count=len(rest)))
    counts = ", ".join(
        f"{sum(row.outcome is outcome for row in shown)} {outcome}"
        for outcome in Outcome
        if any(row.outcome is outcome for row in shown)
    )
    lines.append(_say("diff-count", language, total=len(shown), counts=counts or "0"))
    return "\n".join(lines) + "\n"


def as_json(rows: Sequence[DiffRow], exit_code: int) -> str:
    """Every row with unrounded numbers and its reason in both languages."""
    found: list[dict[str, Any]] = [
        {
            "claim": row.name,
            "published": row.published,
            "measured": _finite(row.measured),
            "low": _finite(row.low),
            "high": _finite(row.high),
            "unit": row.unit,
            "n_blocks": row.verdict.n_blocks if row.verdict else 0,
            "confidence": row.verdict.confidence if row.verdict else None,
            "deviation": _finite(row.deviation),
            "outcome": str(row.outcome),
            "reason": {language: reason(row, language) for language in LANGUAGES},
            "runs": list(row.verdict.run_ids) if row.verdict else [],
        }
        for row in rows
    ]
    document = {"exit_code": exit_code, "rows": found}
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def reason(row: DiffRow, language: str) -> str:
    """Why the row came to what it did; a sentence of the evidence itself stays as written."""
    if row.why_not is not None:
        return render(row.why_not, language)
    return translated(row.verdict.reason if row.verdict else "", language)


def translated(text: str, language: str) -> str:
    """A sentence of the verdict in the chosen language; one the catalogue lacks stays as it is."""
    for pattern, key in _REASONS:
        found = pattern.fullmatch(text)
        if found:
            groups = found.groupdict(default="-")
            if "rest" in groups:
                groups["rest"] = translated(groups["rest"], language)
            return _say(key, language, **groups)
    return text


def _say(entry: str, language: str, **facts: Fact) -> str:
    return render(Message(id=entry, facts=facts), language)


def _cells(row: DiffRow, language: str) -> list[str]:
    interval = "-"
    if row.low is not None and row.high is not None:
        interval = f"{row.low:.4g} .. {row.high:.4g}"
    measured = "-" if row.measured is None else f"{row.measured:.4g} {row.unit}".rstrip()
    deviation = "-" if row.deviation is None else f"{row.deviation:+.2%}"
    n = str(row.verdict.n_blocks) if row.verdict else "0"
    outcome = str(row.outcome)
    label = _say(outcome, language)
    shown = outcome if label == outcome else f"{outcome} {label}"
    return [row.name, row.published, measured, n, interval, deviation, shown, reason(row, language)]


def _finite(value: float | None) -> float | str | None:
    return str(value) if value is not None and not math.isfinite(value) else value
