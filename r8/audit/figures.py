"""Rules about single figures: arithmetic, label, reprints, percentile support, platforms."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from r8.audit.finding import amount, ends, finding, printed, shown, size
from r8.audit.leads import leads
from r8.claims.arithmetic import dimension_name
from r8.claims.ledger import UnpublishedError
from r8.claims.measured import LEVEL, samples_needed
from r8.claims.printed import UNITS
from r8.message import Check, missing
from r8.model import Basis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.audit.finding import AuditFinding
    from r8.claims.ledger import Figure, Ledger, Relation

MEASURED_LABEL = "Measured"
# A label "Measured" promises a reading. A formula may hold specified counts (24 drives) and still
# be measured; it may not hold a model or an estimate.
READ = (str(Basis.MEASURED), str(Basis.DERIVED))
READ_INPUTS = (*READ, str(Basis.SPECIFICATION))
_COMPARISON = re.compile(r".*(_change|_ratio)$|speedup$")
_PERCENTILE = re.compile(r"p(\d+)( of instance \w+)?")
MEDIAN = 50


def derived(ledger: Ledger) -> Iterator[AuditFinding]:
    """A1: a derived figure lies where the printed inputs put it."""
    for figure in ledger.figures.values():
        if figure.value is None or figure.restates is not None:
            continue
        if figure.formula is not None:
            yield _derived(ledger, figure)
        elif _COMPARISON.fullmatch(figure.metric) and figure.basis is Basis.MEASURED:
            check = missing(
                "printed - computed",
                "a1-no-readings",
                figure=figure.figure_id,
                printed=figure.as_printed,
            )
            yield finding(ledger, "A1", check, (figure.figure_id,))


def _derived(ledger: Ledger, figure: Figure) -> AuditFinding:
    node = figure.formula
    if node is None:
        raise ValueError(figure.figure_id)
    ids = (figure.figure_id,)
    facts = {"figure": figure.figure_id, "printed": figure.as_printed}
    try:
        result = ledger.value(node).enclosure
    except UnpublishedError as absent:
        facts |= {"formula": str(node), "input": str(absent)}
        return finding(ledger, "A1", missing("printed - computed", "a1-unpublished", **facts), ids)
    stands_for = figure.quantity().enclosure
    gap = result.gap_to(stands_for)
    check = Check(
        quantity="printed - computed",
        measured=size(gap, figure.unit),
        op="==",
        limit=0,
        unit=figure.unit,
        message="a1-follows" if gap == 0 else "a1-above" if gap > 0 else "a1-below",
        facts={
            **facts,
            "values": shown(ledger, node),
            **ends("result", result, figure.unit),
            **ends("stands_for", stands_for, figure.unit),
            **amount("gap", gap, figure.unit),
        },
    )
    return finding(ledger, "A1", check, ids, leads=leads(ledger, figure) if gap else ())


def labels(ledger: Ledger) -> Iterator[AuditFinding]:
    """A2: what a page calls measured rests on readings."""
    for figure in ledger.figures.values():
        if figure.page_label.startswith(MEASURED_LABEL):
            yield _labelled(ledger, figure)


def _labelled(ledger: Ledger, figure: Figure) -> AuditFinding:
    ids: tuple[str, ...] = (figure.figure_id,)
    facts = {
        "figure": figure.figure_id,
        "printed": figure.as_printed,
        "label": figure.page_label,
        "basis": str(figure.basis),
    }
    if figure.value is None:
        return finding(ledger, "A2", missing("basis", "a2-unpublished", **facts), ids)
    inputs = sorted(ledger.leaves(figure.figure_id) - {figure.figure_id})
    unread = [one for one in inputs if ledger.figures[one].basis not in READ_INPUTS]
    if figure.basis in READ and unread:
        ids += (unread[0],)
        facts |= {"input": unread[0], "basis": str(ledger.figures[unread[0]].basis)}
    check = Check(
        quantity="basis",
        measured=facts["basis"],
        op="in",
        limit=READ_INPUTS if len(ids) > 1 else READ,
        message="a2-off-input" if len(ids) > 1 else _A2[figure.basis in READ],
        facts=facts,
    )
    return finding(ledger, "A2", check, ids)


_A2 = {True: "a2-follows", False: "a2-off"}


def reprints(ledger: Ledger) -> Iterator[AuditFinding]:
    """A3: one quantity printed in two places has one value."""
    stated: dict[frozenset[str], Relation | None] = {
        frozenset(pair): relation
        for relation in ledger.related("same")
        for pair in combinations(relation.figures, 2)
    }
    for figure in ledger.figures.values():
        if figure.restates is not None and figure.value is not None:
            stated.setdefault(frozenset((figure.restates, figure.figure_id)), None)
    order = {name: place for place, name in enumerate(ledger.figures)}
    for pair in dict.fromkeys((*stated, *_alike(ledger))):
        one, other = sorted(pair, key=order.__getitem__)
        yield _same(ledger, one, other, stated.get(pair))


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
    """Whether they are two ends of one printed range, or a part and its whole."""
    if (one.as_printed, one.where) == (other.as_printed, other.where):
        return True
    return any(
        a.formula is not None and b.figure_id in ledger.inputs(a.formula)
        for a, b in ((one, other), (other, one))
    )


def _same(ledger: Ledger, one: str, other: str, relation: Relation | None) -> AuditFinding:
    first, second = ledger.figures[one], ledger.figures[other]
    if first.value is None or second.value is None:
        unread = one if first.value is None else other
        check = missing("first - second", "a3-unpublished", input=unread)
        return finding(ledger, "A3", check, (one, other), relation)
    a, b = first.quantity().enclosure, second.quantity().enclosure
    gap = a.gap_to(b)
    if UNITS[first.unit].dimension != UNITS[second.unit].dimension:
        return finding(ledger, "A3", _unlike(first, second), (one, other), relation)
    check = Check(
        quantity="second - first",
        measured=size(gap, first.unit),
        op="==",
        limit=0,
        unit=first.unit,
        message="a3-off" if gap else "a3-follows",
        facts={
            "one": one,
            "other": other,
            "first": first.as_printed,
            "second": second.as_printed,
            **ends("one_is", a, first.unit),
            **ends("other_is", b, second.unit),
            **amount("gap", gap, first.unit),
        },
    )
    return finding(ledger, "A3", check, (one, other), relation)


def _unlike(first: Figure, second: Figure) -> Check:
    """One quantity in two units that nothing converts."""
    names = [dimension_name(UNITS[one.unit].dimension) for one in (first, second)]
    return Check(
        quantity="dimension",
        measured=names[1],
        op="==",
        limit=names[0],
        message="a3-units",
        facts={
            "one": first.figure_id,
            "other": second.figure_id,
            "first": f"{first.as_printed} {first.unit}",
            "second": f"{second.as_printed} {second.unit}",
        },
    )


def percentiles(ledger: Ledger) -> Iterator[AuditFinding]:
    """A7: a percentile has the samples it needs; below, it is the maximum under another name."""
    instances = {one.facts["scenario"]: int(one.facts["n"]) for one in ledger.related("instances")}
    groups: dict[tuple[int, int, tuple[str, ...], str, bool], list[str]] = {}
    for figure in ledger.figures.values():
        percentile = _PERCENTILE.fullmatch(figure.statistic)
        level = LEVEL.fullmatch(figure.level)
        if figure.basis is not Basis.MEASURED or figure.restates is not None:
            continue
        if percentile and level and int(percentile[1]) > MEDIAN:
            n = int(level[1])
            if percentile[2]:
                n //= instances.get(figure.scenario, 1)
            key = (int(percentile[1]), n, figure.reports, figure.metric, bool(percentile[2]))
            groups.setdefault(key, []).append(figure.figure_id)
    for (rank, n, *_), ids in groups.items():
        yield finding(ledger, "A7", _supported(ledger, rank, n, ids), tuple(ids))


def _supported(ledger: Ledger, rank: int, n: int, ids: list[str]) -> Check:
    needed = samples_needed(rank)
    return Check(
        quantity="samples",
        measured=n,
        op=">=",
        limit=needed,
        message="a7-follows" if n >= needed else "a7-off",
        facts={
            "metric": ledger.figures[ids[0]].metric,
            "rank": f"p{rank}",
            "n": n,
            "needed": needed,
            "count": len(ids),
            "example": f"{ids[0]} {printed(ledger, ids[0])}",
        },
    )


def platforms(ledger: Ledger) -> Iterator[AuditFinding]:
    """A11: no figure is made of results of two platforms."""
    for figure in ledger.figures.values():
        if figure.formula is None or figure.restates is not None:
            continue
        found = {ledger.figures[one].platform for one in ledger.inputs(figure.formula)}
        others = sorted(found - {figure.platform})
        check = Check(
            quantity="other platforms",
            measured=len(others),
            op="==",
            limit=0,
            message="a11-off" if others else "a11-follows",
            facts={
                "figure": figure.figure_id,
                "own": figure.platform,
                "others": ", ".join(others),
            },
        )
        yield finding(ledger, "A11", check, (figure.figure_id,))
