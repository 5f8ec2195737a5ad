"""Rules about figures held against each other: ranges, unit bases, ceilings, dimensions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from r8.audit.finding import AuditAnswer, amount, finding, share, shown, span
from r8.claims.arithmetic import Enclosure
from r8.claims.ledger import UnpublishedError
from r8.claims.printed import plain
from r8.claims.printed_units import UNITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.audit.finding import AuditFinding
    from r8.claims.formula import Node
    from r8.claims.ledger import Ledger, Relation

    _Rule = Callable[[Ledger, Relation], AuditFinding]

FOLLOWS, OFF, UNDETERMINED = AuditAnswer.FOLLOWS, AuditAnswer.OFF, AuditAnswer.UNDETERMINED
BINARY_GB = 1 << 30
DECIMAL_GB = 10**9
# File headers, directory blocks and a part chunk: what a size may differ by from its geometry.
SIZE_TOLERANCE = Fraction(5, 1000)


def ranges(ledger: Ledger) -> Iterator[AuditFinding]:
    """A4: a range in the text holds every member of its table, and each end is some member."""
    for relation in _of(ledger, "range"):
        yield _guarded(ledger, "A4", relation, _range)


def _range(ledger: Ledger, relation: Relation) -> AuditFinding:
    ends = [ledger.figures[one] for one in relation.figures]
    unit = ends[0].unit
    spans = sorted((end.quantity().enclosure for end in ends), key=lambda one: one.middle)
    members = _members(ledger, relation.formulas["members"])
    outside = [
        name for name, value in members if value.high < spans[0].low or value.low > spans[-1].high
    ]
    unmet = [
        end.figure_id
        for end in ends
        if not any(value.meets(end.quantity().enclosure) for _, value in members)
    ]
    by_name = dict(members)
    facts = {
        "printed": ends[0].as_printed,
        "count": str(len(members)),
        "low": span(min((v for _, v in members), key=lambda v: v.low), unit),
        "high": span(max((v for _, v in members), key=lambda v: v.high), unit),
        "outside": "; ".join(f"{one} = {span(by_name[one], unit)}" for one in outside) or "-",
        "unmet": ", ".join(unmet) or "-",
    }
    ids = (*relation.figures, *(one for one in outside if one in ledger.figures))
    good = not outside and not unmet
    key = "A4.follows" if good else "A4.off"
    answer = FOLLOWS if good else OFF
    return finding(ledger, "A4", (answer, key), ids, facts, topic=relation.say)


def _members(ledger: Ledger, node: Node) -> list[tuple[str, Enclosure]]:
    found: list[tuple[str, Enclosure]] = []
    for part in node.parts or (node,):
        if part.kind == "set":
            found += [
                (one, ledger.figures[one].quantity().enclosure) for one in ledger.members(part.text)
            ]
        else:
            found.append((str(part), ledger.value(part).enclosure))
    return found


def bases(ledger: Ledger) -> Iterator[AuditFinding]:
    """A5: a printed GB is the GB its geometry, or the tool that read it, says it is."""
    sized = {one for relation in _of(ledger, "size") for one in relation.figures}
    for relation in _of(ledger, "base"):
        ids = tuple(
            one
            for pattern in relation.figures
            for one in ledger.members(pattern)
            if one not in sized and ledger.figures[one].restates is None
        )
        if ids:
            base = Fraction(relation.facts["bytes"])
            first = ledger.figures[ids[0]]
            facts = {
                "count": str(len(ids)),
                "base": str(base),
                "share": share(base / DECIMAL_GB - 1),
                "example": f"{ids[0]}: {first.as_printed}",
                "decimal": span(first.quantity(with_base=True).enclosure, first.unit),
            }
            good = base == DECIMAL_GB
            key, answer = ("A5.base_follows", FOLLOWS) if good else ("A5.base", OFF)
            yield finding(ledger, "A5", (answer, key), ids, facts, topic=relation.say)
    for relation in _of(ledger, "size"):
        yield _guarded(ledger, "A5", relation, _size)


def _size(ledger: Ledger, relation: Relation) -> AuditFinding:
    figure = ledger.figures[relation.figures[0]]
    node = relation.formulas["bytes"]
    size = ledger.value(node).enclosure
    decimal = figure.quantity().enclosure
    binary = decimal.scaled(Fraction(BINARY_GB, DECIMAL_GB))
    facts = {
        "printed": figure.as_printed,
        "values": shown(ledger, node),
        "bytes": f"{float(size.middle):.0f}",
        "decimal": plain(size.middle / DECIMAL_GB, 5),
        "binary": plain(size.middle / BINARY_GB, 5),
    }
    key, answer = "A5.neither", OFF
    if _near(decimal, size):
        key, answer = "A5.decimal", FOLLOWS
    elif _near(binary, size):
        key = "A5.binary"
    return finding(ledger, "A5", (answer, key), relation.figures, facts, topic=relation.say)


def _near(one: Enclosure, other: Enclosure) -> bool:
    wider = Enclosure(one.low * (1 - SIZE_TOLERANCE), one.high * (1 + SIZE_TOLERANCE))
    return wider.meets(other)


def ceilings(ledger: Ledger) -> Iterator[AuditFinding]:
    """A6: nothing is faster than what carries it."""
    for relation in _of(ledger, "ceiling"):
        yield from _ceiling(ledger, relation)


def _ceiling(ledger: Ledger, relation: Relation) -> Iterator[AuditFinding]:
    node = relation.formulas["limit"]
    ids = [one for pattern in relation.figures for one in ledger.members(pattern)]
    ids = [one for one in ids if ledger.figures[one].restates is None]
    try:
        limit = ledger.value(node, with_base=True).enclosure
        values = {one: ledger.figures[one].quantity(with_base=True).enclosure for one in ids}
    except UnpublishedError as absent:
        facts = {"input": str(absent)}
        yield finding(
            ledger, "A6", (UNDETERMINED, "undetermined"), tuple(ids), facts, topic=relation.say
        )
        return
    if "unit" in relation.facts:
        limit = limit.scaled(UNITS[relation.facts["unit"]].scale)
    over = [one for one in ids if values[one].low > limit.high]
    top = max(ids, key=lambda one: values[one].high)
    for one in over or [top]:
        unit = ledger.figures[one].unit
        facts = {
            "figure": one,
            "printed": ledger.figures[one].as_printed,
            "value": span(values[one], unit),
            "limit": span(limit, unit),
            "times": plain(values[one].middle / limit.middle, 3),
            "count": str(len(ids)),
            "unless": relation.facts.get("unless", ""),
        }
        answer, key = (OFF, "A6.off") if over else (FOLLOWS, "A6.follows")
        if over and facts["unless"]:
            answer, key = UNDETERMINED, "A6.undetermined"
        yield finding(ledger, "A6", (answer, key), (one,), facts, topic=relation.say)


def dimensions(ledger: Ledger) -> Iterator[AuditFinding]:
    """A8: time x bandwidth is a size, tokens over time a throughput."""
    for relation in _of(ledger, "whole"):
        yield _guarded(ledger, "A8", relation, _whole)
    for relation in _of(ledger, "identity"):
        yield _guarded(ledger, "A8", relation, _identity)


def _whole(ledger: Ledger, relation: Relation) -> AuditFinding:
    node = relation.formulas["number"]
    number = ledger.value(node).enclosure
    good = math.floor(number.high) >= max(math.ceil(number.low), 1)
    facts = {"formula": shown(ledger, node), "number": span(number, "")}
    answer, key = (FOLLOWS, "A8.whole") if good else (OFF, "A8.not_whole")
    return finding(ledger, "A8", (answer, key), relation.figures, facts, topic=relation.say)


def _identity(ledger: Ledger, relation: Relation) -> AuditFinding:
    left, right = (ledger.value(relation.formulas[side]).enclosure for side in ("left", "right"))
    unit = relation.facts.get("unit", "")
    one_sided = relation.facts.get("at_least") == "left"
    good = left.high >= right.low if one_sided else left.meets(right)
    facts = {
        "left": shown(ledger, relation.formulas["left"]),
        "right": shown(ledger, relation.formulas["right"]),
        "left_is": span(left, unit),
        "right_is": span(right, unit),
        "gap": amount(left.gap_to(right), unit),
        "share": share(left.middle / right.middle - 1),
    }
    key = (
        ("A8.enough" if one_sided else "A8.equal")
        if good
        else "A8.short"
        if one_sided
        else "A8.off"
    )
    answer = FOLLOWS if good else OFF
    return finding(ledger, "A8", (answer, key), relation.figures, facts, topic=relation.say)


def _of(ledger: Ledger, kind: str) -> list[Relation]:
    return [one for one in ledger.relations if one.kind == kind]


def _guarded(ledger: Ledger, rule_id: str, relation: Relation, rule: _Rule) -> AuditFinding:
    """The rule's finding, or that an input was not published."""
    try:
        return rule(ledger, relation)
    except UnpublishedError as absent:
        facts = {"input": str(absent)}
        ids = tuple(one for name in relation.figures for one in ledger.members(name))
        return finding(
            ledger, rule_id, (UNDETERMINED, "undetermined"), ids, facts, topic=relation.say
        )
