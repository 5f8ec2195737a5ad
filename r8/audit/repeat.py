"""Run-to-run pairs against the deviation a report states, under each denominator.

"Two runs deviate by at most 5 %" names no denominator. Of 72.6 and 69.0 the difference is 5.2 % of
one and 5.0 % of the other, so the same pair holds or fails by the choice, and rounding can decide
the rest. Both are computed, over all values the printed numbers allow.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from r8.audit.finding import AuditAnswer, finding, shown, span
from r8.claims.arithmetic import Enclosure
from r8.claims.formula import bindings, matches, parse
from r8.claims.ledger import UnpublishedError
from r8.claims.printed_units import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.audit.finding import AuditFinding
    from r8.claims.formula import Node
    from r8.claims.ledger import Figure, Ledger, Relation

FOLLOWS, OFF, UNDETERMINED = AuditAnswer.FOLLOWS, AuditAnswer.OFF, AuditAnswer.UNDETERMINED
ONE = Enclosure.exact(1)
ZERO = Fraction(0)


def pairs(ledger: Ledger) -> Iterator[AuditFinding]:
    """A9: each pair of repeated readings lies within the stated deviation."""
    for relation in ledger.relations:
        if relation.kind != "pair":
            continue
        stated = ledger.figures.get(relation.facts["stated"])
        for first, second in repeated(ledger, relation):
            if stated is not None and stated.value is not None:
                yield _pair(ledger, relation, first, second, stated)


def repeated(ledger: Ledger, relation: Relation) -> Iterator[tuple[str, Node]]:
    """Figures of the later run that have an earlier reading, each with its formula."""
    pattern = relation.facts["first"]
    for figure_id in matches(pattern, ledger.figures):
        text = relation.facts["second"]
        for number, word in enumerate(bindings(pattern, figure_id), start=1):
            text = re.sub(rf"\${number}(?!\d)", word, text)
        node = parse(text)
        if all(one in ledger.figures for one in _ids(node)):
            yield figure_id, node


def _ids(node: Node) -> list[str]:
    own = [node.text] if node.kind == "figure" else []
    return own + [one for part in node.parts for one in _ids(part)]


def _pair(
    ledger: Ledger, relation: Relation, later: str, earlier: Node, stated: Figure
) -> AuditFinding:
    ids = (later, *_ids(earlier), stated.figure_id)
    figure = ledger.figures[later]
    try:
        new = figure.quantity().enclosure
        old = ledger.value(earlier).enclosure
    except UnpublishedError as absent:
        facts = {"input": str(absent)}
        return finding(ledger, "A9", (UNDETERMINED, "undetermined"), ids, facts)
    # The bound is taken as written; it is a promise, not a reading that was rounded.
    limit = (stated.value or ZERO) * UNITS[stated.unit].scale
    of_old, of_new = deviation(new, old), deviation(old, new)
    facts = {
        "later": f"{later} {figure.as_printed}",
        "earlier": f"{earlier} = {shown(ledger, earlier)}",
        "of_earlier": span(of_old, "%"),
        "of_later": span(of_new, "%"),
        "stated": stated.as_printed,
    }
    if of_old.high <= limit and of_new.high <= limit:
        answer, key = FOLLOWS, "A9.within"
    elif of_old.low > limit and of_new.low > limit:
        answer, key = OFF, "A9.beyond"
    else:
        answer, key = UNDETERMINED, "A9.depends"
    return finding(ledger, "A9", (answer, key), ids, facts, topic=relation.say)


def deviation(measured: Enclosure, denominator: Enclosure) -> Enclosure:
    """Size of (measured - denominator) / denominator over all values of both."""
    change = measured / denominator - ONE
    if change.low <= 0 <= change.high:
        return Enclosure(ZERO, max(-change.low, change.high))
    ends = sorted((abs(change.low), abs(change.high)))
    return Enclosure(ends[0], ends[1])
