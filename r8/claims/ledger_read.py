"""The ledger read from its folder: figures.csv, figures-added.csv, relations.toml.

`figures.csv` is the transcription; `figures-added.csv` (same columns, and `restates`) holds figures
that stand on the pages and not in the transcription, and inputs the pages name and do not publish.
Only figures.csv must be there. A `[[reprint]]` of relations.toml lets a report that prints another
report's table have rows of its own without their being typed twice.
"""

from __future__ import annotations

import csv
import tomllib
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from r8.claims.formula import FormulaError, Node, matches, parse
from r8.claims.ledger import Figure, Ledger, Relation, bad_relation, bad_row
from r8.claims.ledger_check import checked
from r8.claims.printed import printed_enclosure
from r8.claims.printed_units import COUNTED, UNITS
from r8.errors import UsageError
from r8.model import Basis
from r8.resources import published_path

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
FIGURES, ADDED, RELATIONS = "figures.csv", "figures-added.csv", "relations.toml"
COLUMNS = (
    "figure_id",
    "report",
    "where",
    "platform",
    "scenario",
    "arm",
    "level",
    "metric",
    "statistic",
    "value",
    "unit",
    "as_printed",
    "page_label",
    "basis",
    "formula",
    "note",
)
DECIMAL_BASE = 10**9
LANGUAGES = ("en", "zh")
# Kinds of relation, the formulas each must give, and the sets of figures it may name.
KINDS: dict[str, tuple[str, ...]] = {
    "same": (),
    "range": ("members",),
    "base": (),
    "size": ("bytes",),
    "ceiling": ("limit",),
    "identity": ("left", "right"),
    "whole": ("number",),
    "pair": (),
    "utilisation": ("before", "after", "switches", "saved"),
    "instances": (),
}


def load_ledger(folder: Path | None = None) -> Ledger:
    """The ledger of a folder, or the one R8 carries.

    Raises:
        UsageError: a file or a row that cannot be used, by name.

    """
    folder = published_path(FIGURES).parent if folder is None else folder
    document = _relations_document(folder / RELATIONS)
    rows = _rows(folder / FIGURES)
    if (folder / ADDED).is_file():
        rows += _rows(folder / ADDED)
    where = str(folder)
    figures = [_figure(row, where) for row in rows]
    relations = [_relation(one, where) for one in document.get("relation", [])]
    figures = [_with_base(one, relations) for one in figures]
    for reprint in document.get("reprint", []):
        figures += _reprinted(figures, reprint)
    return checked(figures, relations, where=where)


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "the published figures cannot be read",
            where=str(path),
            next_step=f"restore it ({error})",
        ) from error
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise UsageError(
            f"column {missing[0]!r} is missing", where=str(path), next_step="see data/published"
        )
    rows = list(reader)
    for row in rows:
        if None in row or None in row.values():
            raise bad_row(str(path), str(row["figure_id"]), "its row has not the header's columns")
    return rows


def _figure(row: dict[str, str], where: str) -> Figure:
    name = row["figure_id"]
    if row["unit"] not in UNITS and (row["value"] or row["unit"]):
        raise bad_row(where, name, f"unit {row['unit']!r} is not one R8 knows")
    value = _value(row, where)
    counted = row["unit"] in COUNTED or row["basis"] == Basis.SPECIFICATION
    printed = (
        None if value is None else printed_enclosure(row["as_printed"], value, counted=counted)
    )
    if value is not None and printed is None:
        raise bad_row(where, name, f"{row['as_printed']!r} does not print {row['value']}")
    try:
        formula = parse(row["formula"]) if row["formula"] else None
        basis = Basis(row["basis"])
    except (FormulaError, ValueError) as error:
        raise bad_row(where, name, str(error)) from error
    holds_bytes = row["unit"] in UNITS and UNITS[row["unit"]].dimension[1] == 1
    return Figure(
        figure_id=name,
        reports=tuple(one for one in row["report"].split(",") if one),
        where=row["where"],
        platform=row["platform"],
        scenario=row["scenario"],
        arm=row["arm"],
        level=row["level"],
        metric=row["metric"],
        statistic=row["statistic"],
        value=value,
        unit=row["unit"],
        as_printed=row["as_printed"],
        page_label=row["page_label"],
        basis=basis,
        formula=formula,
        note=row["note"],
        printed=printed[0] if printed else None,
        precision=printed[1] if printed else None,
        unit_base=DECIMAL_BASE if holds_bytes else None,
        restates=row.get("restates") or None,
    )


def _value(row: dict[str, str], where: str) -> Fraction | None:
    if not row["value"]:
        return None
    try:
        return Fraction(row["value"])
    except (ValueError, ZeroDivisionError) as error:
        raise bad_row(where, row["figure_id"], f"value {row['value']!r} is no number") from error


def _relations_document(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            f"the relations cannot be read: {error}", where=str(path), next_step="correct the file"
        ) from error
    if document.get("format") != FORMAT:
        raise UsageError(
            f"format {document.get('format')!r}, this R8 reads {FORMAT}",
            where=str(path),
            next_step="use the R8 release that wrote it",
        )
    return document


def _relation(table: dict[str, Any], where: str) -> Relation:
    kind = str(table.get("kind"))
    if kind not in KINDS:
        raise bad_relation(where, kind, f"unknown kind; known: {', '.join(KINDS)}")
    missing = [key for key in KINDS[kind] if key not in table]
    if missing:
        raise bad_relation(where, kind, f"key {missing[0]!r} is missing")
    if table.get("unit", "s") not in UNITS:
        raise bad_relation(where, kind, f"unit {table['unit']!r} is not one R8 knows")
    rest = {
        key: str(value)
        for key, value in table.items()
        if key not in {"kind", "figures", *LANGUAGES, *KINDS[kind]}
    }
    try:
        formulas = {key: _formula(table[key]) for key in KINDS[kind]}
    except FormulaError as error:
        raise bad_relation(where, kind, str(error)) from error
    return Relation(
        kind=kind,
        figures=tuple(table.get("figures", ())),
        formulas=formulas,
        facts=rest,
        say={language: str(table.get(language, "")) for language in LANGUAGES},
    )


def _formula(value: Any) -> Node:
    """A formula; a list of formulas becomes the range from its least to its greatest."""
    if isinstance(value, list):
        return Node("max", parts=tuple(_member(str(one)) for one in value))
    return parse(str(value))


def _member(text: str) -> Node:
    return Node("set", text) if " " not in text and set(text) & set("*{") else parse(text)


def _with_base(figure: Figure, relations: list[Relation]) -> Figure:
    for relation in relations:
        if relation.kind == "base" and any(
            matches(pattern, [figure.figure_id]) for pattern in relation.figures
        ):
            if figure.unit_base is None:
                break  # refused by the check of the relation
            return replace(figure, unit_base=int(relation.facts["bytes"]))
    return figure


def _reprinted(figures: list[Figure], reprint: dict[str, Any]) -> list[Figure]:
    wanted = {
        one
        for pattern in reprint["figures"]
        for one in matches(pattern, [f.figure_id for f in figures])
    }
    report = str(reprint["report"])
    return [
        replace(
            figure,
            figure_id=f"{report.lower()}.{figure.figure_id}",
            reports=(report,),
            where=str(reprint["where"]),
            restates=figure.figure_id,
        )
        for figure in figures
        if figure.figure_id in wanted
    ]
