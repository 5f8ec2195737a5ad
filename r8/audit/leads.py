"""Where a figure that does not follow may come from: the simplest expression that gives it.

The search looks at the same report first, then at the others, and never mixes two reports or two
platforms. A published figure of the same metric that prints the value is simpler than an expression
of two; two figures that differ in one thing (arm, level or statistic) are simpler than two that
differ in two. What it finds is a lead, not a cause: with many figures some will fit by chance.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING

from r8.audit.finding import Lead, printed, span
from r8.claims.arithmetic import PLAIN, Enclosure
from r8.claims.printed_units import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from r8.claims.ledger import Figure, Ledger

# Beyond two differences anything can be made of anything.
MAX_DIFFERENCES = 2
# A lead must say nearly as much as the figure: a difference of two close readings covers anything.
MAX_WIDTH = 3
# Far above what a few float operations can lose, far below a printed digit.
ROUNDING_SLACK = 1e-9
_SUFFIX = re.compile(r"_(change|ratio|reduction)$")
_ONE = Enclosure.exact(1)


def leads(ledger: Ledger, target: Figure) -> tuple[Lead, ...]:
    """At most one lead of the same report and one of another."""
    if target.printed is None:
        return ()
    wanted = target.quantity().enclosure
    own = [one for one in ledger.figures.values() if set(one.reports) & set(target.reports)]
    others = [
        one
        for one in ledger.figures.values()
        if not set(one.reports) & set(target.reports) and one.restates is None
    ]
    found = (
        _best(ledger, target, wanted, pool, same) for pool, same in ((own, True), (others, False))
    )
    return tuple(lead for lead in found if lead is not None)


def _best(
    ledger: Ledger,
    target: Figure,
    wanted: Enclosure,
    pool: list[Figure],
    same: bool,  # noqa: FBT001
) -> Lead | None:
    usable = [
        one
        for one in pool
        if one.printed is not None
        and one.figure_id != target.figure_id
        and one.platform == target.platform
    ]
    candidates = [*_printed_again(target, wanted, usable), *_pairs(target, wanted, usable)]
    if not candidates:
        return None
    _, expression, ids = min(candidates)
    values = expression
    for name in sorted(ids, key=len, reverse=True):
        values = values.replace(name, printed(ledger, name))
    result = span(_value(expression, [ledger.figures[one] for one in ids]), target.unit)
    reports = tuple(dict.fromkeys(r for one in ids for r in ledger.figures[one].reports))
    arithmetic = values if len(ids) == 1 else f"{values} = {result}"
    return Lead(same_report=same, expression=expression, arithmetic=arithmetic, reports=reports)


_Candidate = tuple[tuple[int, int, int, Fraction], str, tuple[str, ...]]


def _printed_again(
    target: Figure, wanted: Enclosure, pool: Iterable[Figure]
) -> Iterator[_Candidate]:
    for one in pool:
        if (one.metric, one.unit) == (
            target.metric,
            target.unit,
        ) and one.as_printed != target.as_printed:
            value = one.quantity().enclosure
            if value.meets(wanted):
                rank = (0, int(one.level != target.level), 0, abs(value.middle - wanted.middle))
                yield rank, one.figure_id, (one.figure_id,)


def _pairs(target: Figure, wanted: Enclosure, pool: list[Figure]) -> Iterator[_Candidate]:
    groups: dict[tuple[str, str, tuple[str, ...], str], list[Figure]] = {}
    # `ttft_change` compares TTFTs; a bare `speedup` may compare anything.
    stem = _SUFFIX.sub("", target.metric)
    for one in pool:
        if stem not in (target.metric, one.metric):
            continue
        groups.setdefault((one.metric, one.unit, one.reports, one.scenario), []).append(one)
    ends = {one.figure_id: _ends(one) for one in pool}
    for group in groups.values():
        for one, other in permutations(group, 2):
            differences = sum(
                getattr(one, name) != getattr(other, name) for name in ("arm", "level", "statistic")
            )
            if not 0 < differences <= MAX_DIFFERENCES:
                continue
            expression = _expression(target, one, other)
            if expression is None or not _near(
                expression, wanted, ends[one.figure_id], ends[other.figure_id]
            ):
                continue
            value = _value(expression, [one, other])
            narrow = value.high - value.low <= MAX_WIDTH * (wanted.high - wanted.low)
            if narrow and value.meets(wanted):
                arms = {one.arm, other.arm} - set(target.arm.split(" vs "))
                levels = {one.level, other.level} - {target.level}
                rank = (differences, len(levels), len(arms), abs(value.middle - wanted.middle))
                yield rank, expression, (one.figure_id, other.figure_id)


def _expression(target: Figure, one: Figure, other: Figure) -> str | None:
    """Ratio for a factor, change for a percentage, difference for what has a dimension."""
    dimension = UNITS[target.unit].dimension
    if dimension == PLAIN:
        if other.printed is None or other.printed.low <= 0 or UNITS[one.unit].dimension == PLAIN:
            return None
        ratio = f"{one.figure_id} / {other.figure_id}"
        if target.metric.endswith("_reduction"):
            return f"1 - {ratio}"
        return f"{ratio} - 1" if "%" in target.unit else ratio
    if UNITS[one.unit].dimension != dimension:
        return None
    return f"{one.figure_id} - {other.figure_id}"


def _ends(figure: Figure) -> tuple[float, float]:
    enclosure = figure.quantity().enclosure
    return float(enclosure.low), float(enclosure.high)


def _near(
    expression: str, wanted: Enclosure, one: tuple[float, float], other: tuple[float, float]
) -> bool:
    """Whether floats say that the expression might give the value; exact arithmetic decides."""
    if " / " not in expression:
        low, high = one[0] - other[1], one[1] - other[0]
    else:
        ratios = [a / b for a in one for b in other]
        low, high = min(ratios), max(ratios)
        if expression.endswith(" - 1"):
            low, high = low - 1, high - 1
        elif expression.startswith("1 - "):
            low, high = 1 - high, 1 - low
    slack = ROUNDING_SLACK * max(abs(low), abs(high), 1.0)
    return low <= float(wanted.high) + slack and float(wanted.low) - slack <= high


def _value(expression: str, figures: list[Figure]) -> Enclosure:
    first = figures[0].quantity().enclosure
    if len(figures) == 1:
        return first
    second = figures[1].quantity().enclosure
    if " / " not in expression:
        return first - second
    ratio = first / second
    if expression.startswith("1 - "):
        return _ONE - ratio
    return ratio - _ONE if expression.endswith(" - 1") else ratio
