"""The published figures as one checked whole: every number, what it stands on, what it stands for.

A ledger is a folder. `figures.csv` is the transcription; `figures-added.csv` (same columns, and
`restates`) holds figures that stand on the pages and not in the transcription, and inputs the pages
name and do not publish; `relations.toml` says what figures must satisfy beyond their own formulas.
Only figures.csv must be there. A `[[reprint]]` of relations.toml gives a report that prints another
report's table rows of its own without their being typed twice.

A ledger is refused as a whole when one row could not be audited: a unit R8 does not know, a printed
text that does not show the value, a formula over a figure that is not there, a cycle, mixed units.
So no rule of the audit has to doubt its inputs.
"""

from __future__ import annotations

import csv
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from r8.claims.arithmetic import PLAIN, Enclosure, Quantity
from r8.claims.document import read_document
from r8.claims.formula import FormulaError, Node, evaluate, matches, names, parse
from r8.claims.printed import BYTE, COUNTED, UNITS, printed_enclosure
from r8.errors import UsageError
from r8.model import Basis
from r8.resources import published_path
from r8.units import BYTES_PER_GB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from r8.claims.arithmetic import Dimension

FORMAT = 2
FIGURES, ADDED, RELATIONS = "figures.csv", "figures-added.csv", "relations.toml"
# Columns that a figure keeps as they stand.
_KEPT = (
    *("where", "platform", "scenario", "arm", "level", "metric", "statistic", "unit"),
    *("as_printed", "page_label", "note"),
)
COLUMNS = ("figure_id", "report", *_KEPT, "value", "basis", "formula")
# Kinds of relation, and the formulas each must give.
KINDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("same", "base", "pair", "instances"), ()),
    "range": ("members",),
    "size": ("bytes",),
    "ceiling": ("limit",),
    "identity": ("left", "right"),
    "whole": ("number",),
    "utilisation": ("before", "after", "switches", "saved"),
}


class UnpublishedError(Exception):
    """A formula needs a figure that was not published; its id is the argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One published number, or one that a page builds on and does not publish (`value` None)."""

    figure_id: str
    reports: tuple[str, ...]
    where: str
    platform: str
    scenario: str
    arm: str
    level: str
    metric: str
    statistic: str
    value: Fraction | None
    unit: str
    as_printed: str
    page_label: str
    basis: Basis
    formula: Node | None
    note: str
    printed: Enclosure | None  # in `unit`: all values that print like this
    precision: Fraction | None  # step of the last printed digit, in `unit`
    unit_base: int | None  # bytes of the unit's GB; None where the unit holds no bytes
    restates: str | None = None  # the figure this row prints again

    def quantity(self, *, with_base: bool = False) -> Quantity:
        """The enclosure in seconds, bytes and yuan; `with_base` uses the GB the figure needs."""
        if self.printed is None:
            raise UnpublishedError(self.figure_id)
        unit = UNITS[self.unit]
        scale = unit.scale
        if with_base and self.unit_base is not None:
            scale = scale * self.unit_base / BYTES_PER_GB
        return Quantity(self.printed.scaled(scale), unit.dimension)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Something that figures must satisfy beyond their own formulas; see data/published/README."""

    kind: str
    figures: tuple[str, ...] = ()
    formulas: Mapping[str, Node] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)  # language -> what it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Figures by id, and the relations between them."""

    figures: Mapping[str, Figure]
    relations: tuple[Relation, ...] = ()
    where: str = "the ledger"

    def of(self, report: str | None) -> list[Figure]:
        """Figures of one report, or all; raises UsageError for a report nobody published."""
        if report is None:
            return list(self.figures.values())
        found = [one for one in self.figures.values() if report in one.reports]
        if not found:
            raise UsageError(
                f"no figure of report {report!r}",
                where=self.where,
                next_step=f"choose one of {', '.join(self.reports())}",
            )
        return found

    def reports(self) -> list[str]:
        """Every report that prints a figure, sorted."""
        return sorted({name for one in self.figures.values() for name in one.reports})

    def related(self, kind: str) -> list[Relation]:
        """Relations of one kind, in their order."""
        return [one for one in self.relations if one.kind == kind]

    def members(self, *patterns: str) -> list[str]:
        """Ids that sets and plain ids stand for; raises FormulaError where one stands for none."""
        found: list[str] = []
        for pattern in patterns:
            ids = matches(pattern, self.figures)
            if not ids:
                raise FormulaError(f"no figure {pattern!r}")
            found += ids
        return found

    def value(self, node: Node, *, with_base: bool = False) -> Quantity:
        """A formula over the printed figures.

        Raises:
            UnpublishedError: an input was not published.

        """
        return evaluate(
            node, lambda name: self.figures[name].quantity(with_base=with_base), self.members
        )

    def inputs(self, node: Node) -> list[str]:
        """Ids of the figures a formula reads, each once, in order."""
        return list(dict.fromkeys(self.members(*names(node))))

    def leaves(self, figure_id: str) -> set[str]:
        """Every figure that a figure rests on, through all formulas; itself when it has none."""
        formula = self.figures[figure_id].formula
        if formula is None:
            return {figure_id}
        return {leaf for one in self.inputs(formula) for leaf in self.leaves(one)}


# ---------------------------------------------------------------- reading


def load_ledger(folder: Path | None = None) -> Ledger:
    """The ledger of a folder, or the one R8 carries.

    Raises:
        UsageError: a file or a row that cannot be used, by name.

    """
    folder = published_path(FIGURES).parent if folder is None else folder
    where, path = str(folder), folder / RELATIONS
    document = read_document(path, FORMAT) if path.is_file() else {}
    rows = _rows(folder / FIGURES)
    if (folder / ADDED).is_file():
        rows += _rows(folder / ADDED)
    relations: list[Relation] = []
    for table in document.get("relation", []):
        with _blamed(where, f"relation {table.get('kind')}"):
            relations.append(_relation(table))
    figures: dict[str, Figure] = {}
    for row in rows:
        with _blamed(where, f"figure {row['figure_id']}"):
            if row["figure_id"] in figures:
                raise ValueError("the id is there twice")
            figures[row["figure_id"]] = _figure(row)
    figures = _with_bases(figures, relations)
    for reprint in document.get("reprint", []):
        with _blamed(where, "a reprint"):
            figures |= _reprinted(figures, reprint)
    ledger = Ledger(figures=figures, relations=tuple(relations), where=where)
    _check(ledger)
    return ledger


@contextmanager
def _blamed(where: str, what: str) -> Iterator[None]:
    """A fault found inside, told in one line that names the row or the relation."""
    try:
        yield
    except (KeyError, ValueError, ArithmeticError) as fault:
        why = f"key {fault} is missing" if isinstance(fault, KeyError) else str(fault)
        raise UsageError(
            f"{what}: {why}", where=where, next_step="correct the ledger and run it again"
        ) from fault


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"the published figures cannot be read: {error}"
        raise UsageError(what, where=str(path), next_step="restore the file") from error
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise UsageError(
            f"column {missing[0]!r} is missing",
            where=str(path),
            next_step="add it: data/published/README.md names every column",
        )
    rows = list(reader)
    for row in rows:
        if None in row or None in row.values():
            with _blamed(str(path), f"figure {row['figure_id']}"):
                raise ValueError("its row has not the header's columns")
    return rows


def _figure(row: dict[str, str]) -> Figure:
    unit, text = row["unit"], row["value"]
    if unit not in UNITS and (text or unit):
        raise ValueError(f"unit {unit!r} is not one R8 knows")
    basis = Basis(row["basis"])
    value = Fraction(text) if text else None
    counted = unit in COUNTED or basis is Basis.SPECIFICATION
    printed = (
        None if value is None else printed_enclosure(row["as_printed"], value, counted=counted)
    )
    if value is not None and printed is None:
        raise ValueError(f"{row['as_printed']!r} does not print {text}")
    holds_bytes = unit in UNITS and UNITS[unit].dimension[1] == 1
    return Figure(
        figure_id=row["figure_id"],
        reports=tuple(one for one in row["report"].split(",") if one),
        **{name: row[name] for name in _KEPT},
        value=value,
        basis=basis,
        formula=parse(row["formula"]) if row["formula"] else None,
        printed=printed[0] if printed else None,
        precision=printed[1] if printed else None,
        unit_base=BYTES_PER_GB if holds_bytes else None,
        restates=row.get("restates") or None,
    )


def _relation(table: dict[str, Any]) -> Relation:
    kind = str(table.get("kind"))
    if kind not in KINDS:
        raise ValueError(f"unknown kind; known: {', '.join(KINDS)}")
    missing = [key for key in KINDS[kind] if key not in table]
    if missing:
        raise ValueError(f"key {missing[0]!r} is missing")
    if table.get("unit", "s") not in UNITS:
        raise ValueError(f"unit {table['unit']!r} is not one R8 knows")
    facts = table.keys() - {"kind", "figures", "about", *KINDS[kind]}
    return Relation(
        kind=kind,
        figures=tuple(table.get("figures", ())),
        formulas={key: _formula(table[key]) for key in KINDS[kind]},
        facts={key: str(table[key]) for key in facts},
        about=dict(table.get("about", {})),
    )


def _formula(value: Any) -> Node:
    """A formula; a list of formulas and sets becomes one node whose parts are its members."""
    if not isinstance(value, list):
        return parse(str(value))
    alone = (" " not in one and set(one) & set("*{") for one in value)
    parts = (
        Node("set", one) if is_set else parse(one) for one, is_set in zip(value, alone, strict=True)
    )
    return Node("max", parts=tuple(parts))


def _with_bases(figures: dict[str, Figure], relations: Iterable[Relation]) -> dict[str, Figure]:
    """Each figure in the GB that the first relation about it says its page prints."""
    bases: dict[str, int] = {}
    for relation in relations:
        for pattern in relation.figures if relation.kind == "base" else ():
            for one in matches(pattern, figures):
                bases.setdefault(one, int(relation.facts["bytes"]))
    return {
        name: figure
        if figure.unit_base is None
        else replace(figure, unit_base=bases.get(name, figure.unit_base))
        for name, figure in figures.items()
    }


def _reprinted(figures: Mapping[str, Figure], reprint: dict[str, Any]) -> dict[str, Figure]:
    report = str(reprint["report"])
    ids = {one for pattern in reprint["figures"] for one in matches(pattern, figures)}
    return {
        f"{report.lower()}.{figure_id}": replace(
            figure,
            figure_id=f"{report.lower()}.{figure_id}",
            reports=(report,),
            where=str(reprint["where"]),
            restates=figure_id,
        )
        for figure_id, figure in figures.items()
        if figure_id in ids
    }


# ---------------------------------------------------------------- checking


def _check(ledger: Ledger) -> None:
    """Every formula can be read, no cycle, units fit; raises UsageError naming what does not."""
    graph: dict[str, list[str]] = {}
    for name, figure in ledger.figures.items():
        with _blamed(ledger.where, f"figure {name}"):
            if figure.restates is not None and figure.restates not in ledger.figures:
                raise ValueError(f"restates {figure.restates!r}, not in the ledger")
            graph[name] = [] if figure.formula is None else ledger.inputs(figure.formula)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = [str(one) for one in reversed(error.args[1])]
        with _blamed(ledger.where, f"figure {cycle[0]}"):
            raise ValueError(f"its formula is a cycle: {' -> '.join(cycle)}") from error
    for name, figure in ledger.figures.items():
        if figure.formula is not None:
            with _blamed(ledger.where, f"figure {name}"):
                if _dimension(ledger, figure.formula) not in {None, UNITS[figure.unit].dimension}:
                    fault = f"{figure.formula} does not come in {figure.unit!r}"
                    raise ValueError(f"unit mismatch: {fault}")
    for relation in ledger.relations:
        with _blamed(ledger.where, f"relation {relation.kind}"):
            _check_relation(ledger, relation)


def _check_relation(ledger: Ledger, relation: Relation) -> None:
    ids = ledger.members(*relation.figures)
    for node in relation.formulas.values():
        ledger.inputs(node)
    for one in ids if relation.kind == "base" else ():
        if ledger.figures[one].unit_base is None:
            raise ValueError(f"{one} holds no bytes")
    known = [one for one in _sides(ledger, relation, ids) if one[1] is not None]
    for name, dimension in known[1:]:
        if dimension != known[0][1]:
            raise ValueError(f"unit mismatch between {known[0][0]} and {name}")


def _sides(
    ledger: Ledger, relation: Relation, ids: list[str]
) -> Iterator[tuple[str, Dimension | None]]:
    """Everything that a relation holds against each other, with its dimension."""
    if relation.kind in {"ceiling", "same", "range", "size"}:
        yield from ((one, _dimension(ledger, one)) for one in ids)
    elif relation.kind == "whole":
        yield "a number", PLAIN
    if relation.kind == "size":
        yield "bytes", BYTE
    for name, node in relation.formulas.items():
        if name == "limit" and "unit" in relation.facts:
            if _dimension(ledger, node) not in {PLAIN, None}:
                raise ValueError(f"{node} has a unit of its own beside the one stated")
            yield relation.facts["unit"], UNITS[relation.facts["unit"]].dimension
            continue
        for part in (node.parts or (node,)) if name == "members" else (node,):
            if part.kind == "set":
                yield from ((one, _dimension(ledger, one)) for one in ledger.members(part.text))
            else:
                yield str(part), _dimension(ledger, part)


def _dimension(ledger: Ledger, what: Node | str) -> Dimension | None:
    """Of a formula or a figure; None where an input was not published or has no unit."""
    if isinstance(what, str):
        unit = ledger.figures[what].unit
        return UNITS[unit].dimension if unit in UNITS else None
    try:
        return ledger.value(what).dimension
    except UnpublishedError:
        return None
