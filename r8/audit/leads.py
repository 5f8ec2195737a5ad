"""Where a figure that does not follow may come from: the simplest expression that gives it.

The search looks at the same report first, then at the others, and never mixes two reports or two
platforms. A published figure of the same metric that prints the value is simpler than an expression
of two; two figures that differ in one thing (arm, level or statistic) are simpler than two that
differ in two. What it finds is a lead, not a cause: with many figures some will fit by chance.
"""

from __future__ import annotations

import re
from itertools import permutations
from typing import TYPE_CHECKING

from r8.audit.finding import Lead, shown, span_of
from r8.claims.arithmetic import PLAIN
from r8.claims.formula import Node, evaluate
from r8.claims.printed import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from r8.claims.arithmetic import Enclosure
    from r8.claims.ledger import Figure, Ledger

# Beyond two differences anything can be made of anything.
MAX_DIFFERENCES = 2
# A lead must say nearly as much as the figure: a difference of two close readings covers anything.
MAX_WIDTH = 3
_SUFFIX = re.compile(r"_(change|ratio|reduction)$")
_ONE = Node("number", "1")

# How simple an expression is (least first), its text, and itself.
_Candidate = tuple[tuple[int, int, int, "Fraction"], str, Node]


def leads(ledger: Ledger, target: Figure) -> tuple[Lead, ...]:
    """At most one lead of the same report and one of another."""
    usable = [
        one
        for one in ledger.figures.values()
        if one.printed is not None
        and one.figure_id != target.figure_id
        and one.platform == target.platform
    ]
    mine = set(target.reports)
    own = [one for one in usable if mine & set(one.reports)]
    others = [one for one in usable if not mine & set(one.reports) and one.restates is None]
    found = []
    for pool, same_report in ((own, True), (others, False)):
        candidates = [*_printed_again(target, pool), *_pairs(target, pool)]
        if candidates:
            _, text, node = min(candidates, key=lambda one: one[:2])
            found.append(_lead(ledger, target, text, node, same_report=same_report))
    return tuple(found)


def _lead(ledger: Ledger, target: Figure, text: str, node: Node, *, same_report: bool) -> Lead:
    arithmetic = shown(ledger, node)
    if node.kind != "figure":
        arithmetic += f" = {span_of(ledger.value(node).enclosure, target.unit)}"
    reports = (name for one in ledger.inputs(node) for name in ledger.figures[one].reports)
    return Lead(
        same_report=same_report,
        expression=text,
        arithmetic=arithmetic,
        reports=tuple(dict.fromkeys(reports)),
    )


def _printed_again(target: Figure, pool: list[Figure]) -> Iterator[_Candidate]:
    wanted = target.quantity().enclosure
    for one in pool:
        alike = (one.metric, one.unit) == (target.metric, target.unit)
        if alike and one.as_printed != target.as_printed:
            value = one.quantity().enclosure
            if value.meets(wanted):
                rank = (0, int(one.level != target.level), 0, _apart(value, wanted))
                yield rank, one.figure_id, Node("figure", one.figure_id)


def _pairs(target: Figure, pool: list[Figure]) -> Iterator[_Candidate]:
    groups: dict[tuple[str, str, tuple[str, ...], str], list[Figure]] = {}
    # `ttft_change` compares TTFTs; a bare `speedup` may compare anything.
    stem = _SUFFIX.sub("", target.metric)
    for one in pool:
        if stem in (target.metric, one.metric):
            key = (one.metric, one.unit, one.reports, one.scenario)
            groups.setdefault(key, []).append(one)
    wanted = target.quantity().enclosure
    quantities = {one.figure_id: one.quantity() for one in pool}
    for one, other in (pair for group in groups.values() for pair in permutations(group, 2)):
        differences = sum(
            getattr(one, name) != getattr(other, name) for name in ("arm", "level", "statistic")
        )
        if not 0 < differences <= MAX_DIFFERENCES:
            continue
        node = _expression(target, one, other)
        if node is None:
            continue
        value = evaluate(node, quantities.__getitem__, lambda _: []).enclosure
        narrow = value.high - value.low <= MAX_WIDTH * (wanted.high - wanted.low)
        if narrow and value.meets(wanted):
            arms = {one.arm, other.arm} - set(target.arm.split(" vs "))
            levels = {one.level, other.level} - {target.level}
            rank = (differences, len(levels), len(arms), _apart(value, wanted))
            yield rank, str(node), node


def _apart(one: Enclosure, other: Enclosure) -> Fraction:
    return abs(one.middle - other.middle)


def _expression(target: Figure, one: Figure, other: Figure) -> Node | None:
    """Ratio for a factor, change for a percentage, difference for what has a dimension."""
    dimension = UNITS[target.unit].dimension
    parts = (Node("figure", one.figure_id), Node("figure", other.figure_id))
    if dimension != PLAIN:
        return Node("-", parts=parts) if UNITS[one.unit].dimension == dimension else None
    if other.printed is None or other.printed.low <= 0 or UNITS[one.unit].dimension == PLAIN:
        return None
    ratio = Node("/", parts=parts)
    if target.metric.endswith("_reduction"):
        return Node("-", parts=(_ONE, ratio))
    return Node("-", parts=(ratio, _ONE)) if "%" in target.unit else ratio
