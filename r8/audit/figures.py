"""Rules about single figures: arithmetic, label, reprints, percentile support, platforms."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from r8.audit.finding import AuditAnswer, amount, finding, printed, shown, span
from r8.audit.leads import leads
from r8.claims.ledger import UnpublishedError
from r8.claims.measured import samples_needed
from r8.model import Basis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from r8.audit.finding import AuditFinding
    from r8.claims.ledger import Figure, Ledger

FOLLOWS, OFF, UNDETERMINED = AuditAnswer.FOLLOWS, AuditAnswer.OFF, AuditAnswer.UNDETERMINED
MEASURED_LABEL = "Measured"
# A label "Measured" promises a reading; these bases hold none.
UNREAD = frozenset({Basis.MODELLED, Basis.ESTIMATED, Basis.SPECIFICATION})
# A formula may hold specified counts (24 drives) and still be measured; not a model or an estimate.
UNREAD_INPUTS = frozenset({Basis.MODELLED, Basis.ESTIMATED})
_COMPARISON = re.compile(r".*(_change|_ratio)$|speedup$")
_PERCENTILE = re.compile(r"p(\d+)( of instance \w+)?")
_LEVEL = re.compile(r"c(\d+)")
MEDIAN = 50
# Reports, metric, rank, samples, whether of one instance.
_Samples = tuple[tuple[str, ...], str, int, int, bool]


def derived(ledger: Ledger) -> Iterator[AuditFinding]:
    """A1: a derived figure lies where the printed inputs put it."""
    for figure in ledger.figures.values():
        if figure.value is None or figure.restates is not None:
            continue
        if figure.formula is not None:
            yield _derived(ledger, figure)
        elif _COMPARISON.fullmatch(figure.metric) and figure.basis is Basis.MEASURED:
            facts = {"figure": figure.figure_id, "printed": figure.as_printed}
            yield finding(
                ledger, "A1", (UNDETERMINED, "A1.no_readings"), (figure.figure_id,), facts
            )


def _derived(ledger: Ledger, figure: Figure) -> AuditFinding:
    node = figure.formula
    if node is None:
        raise ValueError(figure.figure_id)
    ids = (figure.figure_id,)
    facts = {
        "figure": figure.figure_id,
        "printed": figure.as_printed,
        "formula": str(node),
        "values": shown(ledger, node),
    }
    try:
        result = ledger.value(node).enclosure
    except UnpublishedError as absent:
        facts["input"] = str(absent)
        return finding(ledger, "A1", (UNDETERMINED, "A1.undetermined"), ids, facts)
    stands_for = figure.quantity().enclosure
    facts |= {"result": span(result, figure.unit), "stands_for": span(stands_for, figure.unit)}
    if result.meets(stands_for):
        return finding(ledger, "A1", (FOLLOWS, "A1.follows"), ids, facts)
    gap = result.gap_to(stands_for)
    facts["gap"] = amount(gap, figure.unit)
    key = "A1.off_above" if gap > 0 else "A1.off_below"
    return finding(ledger, "A1", (OFF, key), ids, facts, leads=leads(ledger, figure))


def labels(ledger: Ledger) -> Iterator[AuditFinding]:
    """A2: what a page calls measured rests on readings."""
    for figure in ledger.figures.values():
        if not figure.page_label.startswith(MEASURED_LABEL):
            continue
        facts = {
            "figure": figure.figure_id,
            "printed": figure.as_printed,
            "label": figure.page_label,
            "basis": str(figure.basis),
        }
        ids = (figure.figure_id,)
        if figure.value is None:
            yield finding(ledger, "A2", (UNDETERMINED, "A2.unpublished"), ids, facts)
            continue
        unread = [
            one
            for one in sorted(ledger.leaves(figure.figure_id) - {figure.figure_id})
            if ledger.figures[one].basis in UNREAD_INPUTS
        ]
        if figure.basis in UNREAD:
            yield finding(ledger, "A2", (OFF, "A2.off"), ids, facts)
        elif unread:
            facts |= {"input": unread[0], "basis": str(ledger.figures[unread[0]].basis)}
            yield finding(ledger, "A2", (OFF, "A2.off_input"), (*ids, unread[0]), facts)
        else:
            yield finding(ledger, "A2", (FOLLOWS, "A2.follows"), ids, facts)


def reprints(ledger: Ledger) -> Iterator[AuditFinding]:
    """A3: one quantity printed in two places has one value."""
    stated = {
        frozenset((a, b)): relation.say
        for relation in ledger.relations
        if relation.kind == "same"
        for a, b in combinations(relation.figures, 2)
    }
    for figure in ledger.figures.values():
        if figure.restates is not None and figure.value is not None:
            stated.setdefault(frozenset((figure.restates, figure.figure_id)), {})
    order = list(ledger.figures)
    for pair in (*stated, *(pair for pair in _alike(ledger) if pair not in stated)):
        one, other = sorted(pair, key=order.index)
        yield _same(ledger, one, other, stated.get(pair, {}))


def _alike(ledger: Ledger) -> Iterator[frozenset[str]]:
    """Pairs of figures that name one quantity of one report."""
    groups: dict[tuple[object, ...], list[Figure]] = {}
    for figure in ledger.figures.values():
        if figure.value is not None:
            key = (figure.reports, figure.platform, figure.scenario, figure.arm)
            more = (figure.level, figure.metric, figure.statistic)
            groups.setdefault((*key, *more), []).append(figure)
    for group in groups.values():
        for a, b in combinations(group, 2):
            if not _distinct(ledger, a, b):
                yield frozenset((a.figure_id, b.figure_id))


def _distinct(ledger: Ledger, one: Figure, other: Figure) -> bool:
    """Two ends of one printed range, or a part and its whole, are no one quantity."""
    if (one.as_printed, one.where) == (other.as_printed, other.where):
        return True
    return any(
        a.formula is not None and b.figure_id in ledger.inputs(a.formula)
        for a, b in ((one, other), (other, one))
    )


def _same(ledger: Ledger, one: str, other: str, topic: Mapping[str, str]) -> AuditFinding:
    first, second = ledger.figures[one], ledger.figures[other]
    if first.value is None or second.value is None:
        unread = one if first.value is None else other
        facts = {"input": unread}
        return finding(ledger, "A3", (UNDETERMINED, "A3.undetermined"), (one, other), facts)
    a, b = first.quantity(), second.quantity()
    facts = {
        "one": one,
        "other": other,
        "first": first.as_printed,
        "second": second.as_printed,
        "spans": f"{span(a.enclosure, first.unit)} / {span(b.enclosure, second.unit)}",
    }
    if a.dimension == b.dimension and a.enclosure.meets(b.enclosure):
        return finding(ledger, "A3", (FOLLOWS, "A3.follows"), (one, other), facts, topic=topic)
    facts["gap"] = amount(a.enclosure.gap_to(b.enclosure), first.unit)
    return finding(ledger, "A3", (OFF, "A3.off"), (one, other), facts, topic=topic)


def percentiles(ledger: Ledger) -> Iterator[AuditFinding]:
    """A7: a percentile has the samples it needs; below, it is the maximum under another name."""
    instances = {
        one.facts["scenario"]: int(one.facts["n"])
        for one in ledger.relations
        if one.kind == "instances"
    }
    groups: dict[_Samples, list[str]] = {}
    for figure in ledger.figures.values():
        percentile = _PERCENTILE.fullmatch(figure.statistic)
        level = _LEVEL.fullmatch(figure.level)
        if figure.basis is not Basis.MEASURED or figure.restates is not None:
            continue
        if percentile and level and int(percentile[1]) > MEDIAN:
            n = int(level[1])
            if percentile[2]:
                n //= instances.get(figure.scenario, 1)
            key = (figure.reports, figure.metric, int(percentile[1]), n, bool(percentile[2]))
            groups.setdefault(key, []).append(figure.figure_id)
    for (_, metric, rank, n, _), ids in groups.items():
        needed = samples_needed(rank)
        enough = n >= needed
        facts = {
            "metric": metric,
            "rank": f"p{rank}",
            "n": str(n),
            "needed": str(needed),
            "count": str(len(ids)),
            "example": f"{ids[0]} {printed(ledger, ids[0])}",
        }
        key_text = "A7.follows" if enough else "A7.off"
        yield finding(ledger, "A7", (FOLLOWS if enough else OFF, key_text), tuple(ids), facts)


def platforms(ledger: Ledger) -> Iterator[AuditFinding]:
    """A11: no figure is made of results of two platforms."""
    for figure in ledger.figures.values():
        if figure.formula is None or figure.restates is not None:
            continue
        found = {ledger.figures[one].platform for one in ledger.inputs(figure.formula)}
        others = sorted(found - {figure.platform})
        facts = {"figure": figure.figure_id, "own": figure.platform, "others": ", ".join(others)}
        answer, key = (OFF, "A11.off") if others else (FOLLOWS, "A11.follows")
        yield finding(ledger, "A11", (answer, key), (figure.figure_id,), facts)
