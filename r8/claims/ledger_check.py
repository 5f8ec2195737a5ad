"""What makes a ledger one whole: every formula readable, no cycle, units that fit.

The checks run once, when a ledger is read, so that no rule of the audit has to doubt its inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.claims.arithmetic import PLAIN, UndefinedError
from r8.claims.formula import FormulaError, Node
from r8.claims.ledger import Ledger, UnpublishedError, bad_relation, bad_row
from r8.claims.printed_units import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from r8.claims.arithmetic import Dimension
    from r8.claims.ledger import Figure, Relation

BYTE: Dimension = (0, 1, 0)


def checked(figures: Iterable[Figure], relations: Iterable[Relation] = (), *, where: str) -> Ledger:
    """A ledger in which every formula can be read; raises UsageError naming the row that cannot."""
    by_id: dict[str, Figure] = {}
    for figure in figures:
        if figure.figure_id in by_id:
            raise bad_row(where, figure.figure_id, "the id is there twice")
        by_id[figure.figure_id] = figure
    ledger = Ledger(figures=by_id, relations=tuple(relations), where=where)
    for figure in by_id.values():
        if figure.restates is not None and figure.restates not in by_id:
            raise bad_row(
                where, figure.figure_id, f"restates {figure.restates!r}, not in the ledger"
            )
        if figure.formula is not None:
            _check_formula(ledger, figure, figure.formula)
    _refuse_cycles(ledger)
    for relation in ledger.relations:
        _check_relation(ledger, relation)
    return ledger


def _check_formula(ledger: Ledger, figure: Figure, formula: Node) -> None:
    try:
        ledger.inputs(formula)
        result = ledger.value(formula)
    except FormulaError as error:
        raise bad_row(ledger.where, figure.figure_id, f"formula: {error}") from error
    except UndefinedError as error:
        raise bad_row(ledger.where, figure.figure_id, f"unit mismatch or {error}") from error
    except UnpublishedError:
        return
    wanted = UNITS[figure.unit].dimension
    if result.dimension not in {None, wanted}:
        raise bad_row(
            ledger.where,
            figure.figure_id,
            f"unit mismatch: {formula} does not come in {figure.unit!r}",
        )


def _refuse_cycles(ledger: Ledger) -> None:
    done: set[str] = set()

    def visit(figure_id: str, path: tuple[str, ...]) -> None:
        if figure_id in path:
            cycle = " -> ".join([*path[path.index(figure_id) :], figure_id])
            raise bad_row(ledger.where, figure_id, f"its formula is a cycle: {cycle}")
        if figure_id in done:
            return
        formula = ledger.figures[figure_id].formula
        for one in ledger.inputs(formula) if formula else ():
            visit(one, (*path, figure_id))
        done.add(figure_id)

    for figure_id in ledger.figures:
        visit(figure_id, ())


def _check_relation(ledger: Ledger, relation: Relation) -> None:
    try:
        ids = [one for name in relation.figures for one in ledger.members(name)]
        for node in relation.formulas.values():
            ledger.inputs(node)
        wanted = list(_sides(ledger, relation, ids))
    except (FormulaError, UndefinedError) as error:
        raise bad_relation(ledger.where, relation.kind, str(error)) from error
    known = [one for one in wanted if one[1] is not None]
    for name, dimension in known[1:]:
        if dimension != known[0][1]:
            what = f"unit mismatch between {known[0][0]} and {name}"
            raise bad_relation(ledger.where, relation.kind, what)


def _sides(
    ledger: Ledger, relation: Relation, ids: list[str]
) -> Iterator[tuple[str, Dimension | None]]:
    """Everything that a relation holds against each other, with its dimension."""
    if relation.kind in {"ceiling", "same", "range", "size"}:
        yield from ((one, _of_figure(ledger.figures[one])) for one in ids)
    elif relation.kind == "base":
        _require_bytes(ledger, ids)
    elif relation.kind == "whole":
        yield "a number", PLAIN
    if relation.kind == "size":
        yield "bytes", BYTE
    for name, node in relation.formulas.items():
        if name == "members":
            yield from _members(ledger, node)
        elif name == "limit" and "unit" in relation.facts:
            _require_plain(ledger, node)
            yield relation.facts["unit"], UNITS[relation.facts["unit"]].dimension
        else:
            yield str(node), _of_node(ledger, node)


def _members(ledger: Ledger, node: Node) -> Iterator[tuple[str, Dimension | None]]:
    for part in node.parts or (node,):
        if part.kind == "set":
            yield from ((one, _of_figure(ledger.figures[one])) for one in ledger.members(part.text))
        else:
            yield str(part), _of_node(ledger, part)


def _of_figure(figure: Figure) -> Dimension | None:
    return UNITS[figure.unit].dimension if figure.unit in UNITS else None


def _of_node(ledger: Ledger, node: Node) -> Dimension | None:
    try:
        return ledger.value(node).dimension
    except UnpublishedError:
        return None


def _require_plain(ledger: Ledger, node: Node) -> None:
    if _of_node(ledger, node) not in {PLAIN, None}:
        raise FormulaError(f"{node} has a unit of its own beside the one stated")


def _require_bytes(ledger: Ledger, ids: list[str]) -> None:
    for one in ids:
        if ledger.figures[one].unit_base is None:
            raise FormulaError(f"{one} holds no bytes")
