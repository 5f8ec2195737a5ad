"""Rules about figures held against each other, one for each kind of relation of the ledger.

A4 ranges, A5 unit bases, A6 ceilings, A8 dimensions, A9 repeated readings, A10 utilisation model.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from r8.audit.finding import amount, ends, finding, shown, size, span_of
from r8.claims.arithmetic import Enclosure
from r8.claims.formula import bindings, matches, names, parse
from r8.claims.ledger import UnpublishedError
from r8.claims.printed import UNITS
from r8.message import Check, missing
from r8.units import BYTES_PER_GB, BYTES_PER_GIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from r8.audit.finding import AuditFinding
    from r8.claims.formula import Node
    from r8.claims.ledger import Figure, Ledger, Relation

    _Rule = Callable[[Ledger, Relation], AuditFinding]

# File headers, directory blocks and a part chunk: what a size may differ by from its geometry.
SIZE_TOLERANCE = Fraction(5, 1000)
SECONDS_PER_HOUR = Enclosure.exact(3600)
ONE = Enclosure.exact(1)
ZERO = Fraction(0)


def _guarded(ledger: Ledger, rule_id: str, kind: str, rule: _Rule) -> Iterator[AuditFinding]:
    """The rule's finding of each relation of a kind, or that an input was not published."""
    for relation in ledger.related(kind):
        try:
            yield rule(ledger, relation)
        except UnpublishedError as absent:
            ids = tuple(ledger.members(*relation.figures))
            yield finding(ledger, rule_id, _unpublished(kind, absent), ids, relation)


def _unpublished(quantity: str, absent: UnpublishedError) -> Check:
    return missing(quantity, "input-unpublished", input=str(absent))


def ranges(ledger: Ledger) -> Iterator[AuditFinding]:
    """A4: a range in the text holds every member of its table, and each end is some member."""
    return _guarded(ledger, "A4", "range", _range)


def _range(ledger: Ledger, relation: Relation) -> AuditFinding:
    figures = [ledger.figures[one] for one in relation.figures]
    unit = figures[0].unit
    spans = {one.figure_id: one.quantity().enclosure for one in figures}
    order = sorted(spans.values(), key=lambda one: one.middle)
    low, high = order[0].low, order[-1].high
    members = _members(ledger, relation.formulas["members"])
    outside = {name: value for name, value in members if value.high < low or value.low > high}
    unmet = [
        name for name, end in spans.items() if not any(value.meets(end) for _, value in members)
    ]
    check = Check(
        quantity="members outside + ends no member reaches",
        measured=len(outside) + len(unmet),
        op="==",
        limit=0,
        message="a4-off" if outside or unmet else "a4-follows",
        facts={
            "printed": figures[0].as_printed,
            "count": len(members),
            **ends("least", min((v for _, v in members), key=lambda v: v.low), unit),
            **ends("greatest", max((v for _, v in members), key=lambda v: v.high), unit),
            "outside": _listed(outside, unit),
            "unmet": ", ".join(unmet) or "-",
        },
    )
    ids = (*relation.figures, *(one for one in outside if one in ledger.figures))
    return finding(ledger, "A4", check, ids, relation)


def _listed(values: Mapping[str, Enclosure], unit: str) -> str:
    return "; ".join(f"{name} = {span_of(one, unit)}" for name, one in values.items()) or "-"


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
    sized = {one for relation in ledger.related("size") for one in relation.figures}
    for relation in ledger.related("base"):
        ids = [
            one
            for one in ledger.members(*relation.figures)
            if one not in sized and ledger.figures[one].restates is None
        ]
        if ids:
            yield finding(ledger, "A5", _base(ledger, relation, ids), tuple(ids), relation)
    yield from _guarded(ledger, "A5", "size", _size)


def _base(ledger: Ledger, relation: Relation, ids: list[str]) -> Check:
    base, first = int(relation.facts["bytes"]), ledger.figures[ids[0]]
    return Check(
        quantity="bytes of a printed GB",
        measured=base,
        op="==",
        limit=BYTES_PER_GB,
        unit="B",
        message="a5-base-follows" if base == BYTES_PER_GB else "a5-base",
        facts={
            "count": len(ids),
            "base": base,
            "share": base / BYTES_PER_GB - 1,
            "example": f"{ids[0]}: {first.as_printed}",
            **ends("decimal", first.quantity(with_base=True).enclosure, first.unit),
        },
    )


def _size(ledger: Ledger, relation: Relation) -> AuditFinding:
    figure, node = ledger.figures[relation.figures[0]], relation.formulas["bytes"]
    true = ledger.value(node).enclosure
    decimal = figure.quantity().enclosure
    binary = decimal.scaled(Fraction(BYTES_PER_GIB, BYTES_PER_GB))
    off = excess(decimal, true)
    message = "a5-decimal" if off <= SIZE_TOLERANCE else "a5-neither"
    if off > SIZE_TOLERANCE >= excess(binary, true):
        message = "a5-binary"
    check = Check(
        quantity="printed size / true size - 1",
        measured=float(off),
        op="<=",
        limit=float(SIZE_TOLERANCE),
        message=message,
        facts={
            "printed": figure.as_printed,
            "values": shown(ledger, node),
            "bytes": float(true.middle),
            "decimal_gb": float(true.middle / BYTES_PER_GB),
            "binary_gb": float(true.middle / BYTES_PER_GIB),
        },
    )
    return finding(ledger, "A5", check, relation.figures, relation)


def excess(printed: Enclosure, true: Enclosure) -> Fraction:
    """By what share of itself a printed size must be widened, at least, to meet the true one."""
    return max(1 - true.high / printed.low, true.low / printed.high - 1, ZERO)


def ceilings(ledger: Ledger) -> Iterator[AuditFinding]:
    """A6: nothing is faster than what carries it."""
    for relation in ledger.related("ceiling"):
        ids = [
            one for one in ledger.members(*relation.figures) if ledger.figures[one].restates is None
        ]
        try:
            limit = ledger.value(relation.formulas["limit"], with_base=True).enclosure
            values = {one: ledger.figures[one].quantity(with_base=True).enclosure for one in ids}
        except UnpublishedError as absent:
            yield finding(ledger, "A6", _unpublished("rate", absent), tuple(ids), relation)
            continue
        if "unit" in relation.facts:
            limit = limit.scaled(UNITS[relation.facts["unit"]].scale)
        over = [one for one in ids if values[one].low > limit.high]
        for one in over or [max(ids, key=lambda one: values[one].high)]:
            check = _below(ledger.figures[one], values[one], limit, relation, len(ids))
            yield finding(ledger, "A6", check, (one,), relation)


def _below(
    figure: Figure, value: Enclosure, limit: Enclosure, relation: Relation, count: int
) -> Check:
    """Even the lowest reading against the highest limit; a named figure may settle an excess."""
    unit, over = figure.unit, value.low > limit.high
    unless = relation.facts.get("unless", "")
    facts = {
        "figure": figure.figure_id,
        "printed": figure.as_printed,
        **ends("value", value, unit),
        **ends("limit", limit, unit),
        "times": float(value.middle / limit.middle),
        "count": count,
    }
    if over and unless:
        return missing("rate", "a6-unsettled", **facts, unless=unless)
    return Check(
        quantity="rate",
        measured=size(value.low, unit),
        op="<=",
        limit=size(limit.high, unit),
        unit=unit,
        message="a6-off" if over else "a6-follows",
        facts=facts,
    )


def dimensions(ledger: Ledger) -> Iterator[AuditFinding]:
    """A8: time x bandwidth is a size, tokens over time a throughput."""
    yield from _guarded(ledger, "A8", "whole", _whole)
    yield from _guarded(ledger, "A8", "identity", _identity)


def _whole(ledger: Ledger, relation: Relation) -> AuditFinding:
    node = relation.formulas["number"]
    number = ledger.value(node).enclosure
    wholes = max(math.floor(number.high) - max(math.ceil(number.low), 1) + 1, 0)
    check = Check(
        quantity="whole numbers it can be",
        measured=wholes,
        op=">=",
        limit=1,
        message="a8-whole" if wholes else "a8-not-whole",
        facts={"formula": shown(ledger, node), **ends("number", number, "")},
    )
    return finding(ledger, "A8", check, relation.figures, relation)


def _identity(ledger: Ledger, relation: Relation) -> AuditFinding:
    left, right = (ledger.value(relation.formulas[side]).enclosure for side in ("left", "right"))
    unit = relation.facts.get("unit", "")
    one_sided = relation.facts.get("at_least") == "left"
    gap = left.gap_to(right)
    wrong = gap > 0 if one_sided else gap != 0
    message = "a8-short" if one_sided else "a8-off"
    if not wrong:
        message = "a8-enough" if one_sided else "a8-equal"
    check = Check(
        quantity="right - left",
        measured=size(gap, unit),
        op="<=" if one_sided else "==",
        limit=0,
        unit=unit,
        message=message,
        facts={
            "left": shown(ledger, relation.formulas["left"]),
            "right": shown(ledger, relation.formulas["right"]),
            **ends("left_is", left, unit),
            **ends("right_is", right, unit),
            **amount("gap", gap, unit),
            "share": float(left.middle / right.middle - 1),
        },
    )
    return finding(ledger, "A8", check, relation.figures, relation)


def repeats(ledger: Ledger) -> Iterator[AuditFinding]:
    """A9: each pair of repeated readings lies within the stated deviation.

    "Two runs deviate by at most 5 %" names no denominator. Of 72.6 and 69.0 the difference is 5.2 %
    of one and 5.0 % of the other, so the same pair holds or fails by the choice, and rounding can
    decide the rest. Both are computed, over all values the printed numbers allow.
    """
    for relation in ledger.related("pair"):
        stated = ledger.figures.get(relation.facts["stated"])
        if stated is None or stated.value is None:
            continue
        for later, earlier in _repeated(ledger, relation):
            ids = (later, *names(earlier), stated.figure_id)
            try:
                check = _pair(ledger, later, earlier, stated)
            except UnpublishedError as absent:
                check = _unpublished("deviation", absent)
            yield finding(ledger, "A9", check, ids, relation)


def _repeated(ledger: Ledger, relation: Relation) -> Iterator[tuple[str, Node]]:
    """Figures of the later run that have an earlier reading, each with its formula."""
    pattern = relation.facts["first"]
    for figure_id in matches(pattern, ledger.figures):
        text = relation.facts["second"]
        for number, word in enumerate(bindings(pattern, figure_id), start=1):
            text = re.sub(rf"\${number}(?!\d)", word, text)
        node = parse(text)
        if all(one in ledger.figures for one in names(node)):
            yield figure_id, node


def _pair(ledger: Ledger, later: str, earlier: Node, stated: Figure) -> Check:
    figure = ledger.figures[later]
    new, old = figure.quantity().enclosure, ledger.value(earlier).enclosure
    # The bound is taken as written; it is a promise, not a reading that was rounded.
    limit = (stated.value or ZERO) * UNITS[stated.unit].scale
    of_old, of_new = deviation(new, old), deviation(old, new)
    least, most = min(of_old.low, of_new.low), max(of_old.high, of_new.high)
    facts = {
        "later": f"{later} {figure.as_printed}",
        "earlier": f"{earlier} = {shown(ledger, earlier)}",
        **ends("of_earlier", of_old, "%"),
        **ends("of_later", of_new, "%"),
        "stated": stated.as_printed,
    }
    if least <= limit < most:
        return missing("deviation", "a9-depends", **facts)
    return Check(
        quantity="deviation",
        measured=float(most if most <= limit else least),
        op="<=",
        limit=float(limit),
        message="a9-within" if most <= limit else "a9-beyond",
        facts=facts,
    )


def deviation(measured: Enclosure, denominator: Enclosure) -> Enclosure:
    """Size of (measured - denominator) / denominator over all values of both."""
    change = measured / denominator - ONE
    if change.low <= 0 <= change.high:
        return Enclosure(ZERO, max(-change.low, change.high))
    low, high = sorted((abs(change.low), abs(change.high)))
    return Enclosure(low, high)


def models(ledger: Ledger) -> Iterator[AuditFinding]:
    """A10: load times implied by the printed utilisation agree with the printed per-model gain.

    U = 1 - n * t_load / 3600 s: n is the number of model switches an hour, t_load the seconds one
    load takes, U the share of the hour left for compute. Report R1 prints U for n = 20 before and
    after, says that load times were measured, and publishes none; the formula is inferred from the
    page's words. Cannot show: work that goes on while a model loads, time lost to anything but
    loading, or loads that overlap.
    """
    return _guarded(ledger, "A10", "utilisation", _model)


def load_time(switches_per_hour: Enclosure, used: Enclosure) -> Enclosure:
    """Seconds one load must take for a printed utilisation.

    Formula: (1 - used) * 3600 / switches_per_hour.
    """
    return (ONE - used) * SECONDS_PER_HOUR / switches_per_hour


def _model(ledger: Ledger, relation: Relation) -> AuditFinding:
    # A number of switches is an operating point that was set, not a reading that was rounded.
    switches = Enclosure.exact(ledger.value(relation.formulas["switches"]).enclosure.middle)
    before, after = (
        load_time(switches, ledger.value(relation.formulas[name]).enclosure)
        for name in ("before", "after")
    )
    claimed = ledger.value(relation.formulas["saved"]).enclosure
    saved, faster = ONE - after / before, before / after - ONE
    gaps = [abs(claimed.gap_to(one)) for one in (saved, faster)]
    message = _MODELS[gaps[0] == 0, gaps[1] == 0]
    check = Check(
        quantity="printed gain - implied gain",
        measured=size(min(gaps), "%"),
        op="==",
        limit=0,
        unit="%",
        message=message,
        facts={
            **ends("before", before, "s"),
            **ends("after", after, "s"),
            "switches": float(switches.middle),
            **ends("saved", saved, "%"),
            **ends("faster", faster, "%"),
            **ends("claimed", claimed, "%"),
        },
    )
    return finding(ledger, "A10", check, relation.figures, relation)


# Whether the printed gain is time saved, whether it is speed gained.
_MODELS = {
    (True, False): "a10-saved",
    (False, True): "a10-faster",
    (True, True): "a10-either",
    (False, False): "a10-off",
}
