"""The ledger as rows: one a figure, with what it stands for and what can measure it.

The rows become `figures.parquet` (for SQL) and `ledger-<report>.toml` (for reading); both are made
from figures.csv, figures-added.csv and relations.toml by `python -m r8.audit.files`, and a test
proves that the committed ones are what it makes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from r8.claims.measured import TOLERANCE, Measure, keys_of, measure_of
from r8.claims.words import say

if TYPE_CHECKING:
    from fractions import Fraction

    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Reports

OTHER = "other"  # rows that cite no report: gates, devices, prices
_HEADER = """\
# Figures of {report}, made from figures.csv, figures-added.csv and relations.toml by
# `python -m r8.audit.files --write`; do not edit. Rows whose `where` names the public release come
# from mingxin-tech/mingxin-kvcache-bench 505f41e, CC-BY-4.0, by mingxin-tech.

format = 1
"""
# Column: type, unit, meaning.
COLUMNS: dict[str, tuple[str, str]] = {
    "figure_id": ("string", "id of the figure"),
    "reports": ("list<string>", "reports that print it"),
    "where": ("string", "page or section it stands on"),
    "platform": ("string", "what it was measured on; never merged"),
    "scenario": ("string", "what was done"),
    "arm": ("string", "what differs between readings"),
    "level": ("string", "offered load"),
    "metric": ("string", "what was read"),
    "statistic": ("string", "how readings were summed up, as far as stated"),
    "value": ("float64", "the printed number, in `unit`; null: not published"),
    "value_exact": ("string", "the printed number as a fraction or decimal text"),
    "unit": ("string", "unit as printed"),
    "unit_base": ("int64", "bytes of the unit's GB; null where the unit holds no bytes"),
    "as_printed": ("string", "the number as it stands on the page"),
    "precision": ("float64", "step of the last printed digit, in `unit`"),
    "printed_low": ("float64", "lowest value that prints like this, in `unit`"),
    "printed_high": ("float64", "highest value that prints like this, in `unit`"),
    "page_label": ("string", "label on the page"),
    "basis": ("string", "measured, modelled, estimated, specification or derived"),
    "formula": ("string", "formula over figure ids, in the ledger's language"),
    "restates": ("string", "the figure this row prints again"),
    "tolerance": ("float64", "relative tolerance a measurement is judged with"),
    "comparability": ("string", "JSON: keys a run must share for absolute values"),
    "measured_by": ("string", "scenario of R8 that can measure it"),
    "measured_kind": ("string", "value or at-least"),
    "measured_metric": ("string", "metric of the view `metrics`"),
    "measured_statistic": ("string", "statistic of the view `metrics`"),
    "measured_arms": ("list<string>", "arms of the runs: numerator, denominator"),
    "not_measured": ("string", "why R8 cannot measure it"),
    "note": ("string", "note of the transcription"),
}
_ARROW = {
    "string": pa.string(),
    "float64": pa.float64(),
    "int64": pa.int64(),
    "list<string>": pa.list_(pa.string()),
}


def rows(ledger: Ledger, reports: Reports) -> list[dict[str, Any]]:
    """One row a figure in the order of the ledger; absent is None."""
    return [_row(ledger, reports, figure) for figure in ledger.figures.values()]


def _row(ledger: Ledger, reports: Reports, figure: Figure) -> dict[str, Any]:
    measure = measure_of(ledger, figure)
    measured = isinstance(measure, Measure)
    row: dict[str, Any] = {
        "figure_id": figure.figure_id,
        "reports": list(figure.reports),
        "value": _number(figure.value),
        "value_exact": None if figure.value is None else str(figure.value),
        "unit_base": figure.unit_base,
        "precision": _number(figure.precision),
        "printed_low": _number(figure.printed.low if figure.printed else None),
        "printed_high": _number(figure.printed.high if figure.printed else None),
        "basis": str(figure.basis),
        "formula": None if figure.formula is None else str(figure.formula),
        "restates": figure.restates,
        "tolerance": TOLERANCE if measured else None,
        "comparability": None,
        "measured_by": None,
        "measured_kind": None,
        "measured_metric": None,
        "measured_statistic": None,
        "measured_arms": None,
        "not_measured": None,
    }
    for name in ("where", "platform", "scenario", "arm", "level", "metric", "statistic", "unit"):
        row[name] = getattr(figure, name) or None
    for name in ("as_printed", "page_label", "note"):
        row[name] = getattr(figure, name) or None
    if isinstance(measure, Measure):
        arms = [measure.numerator_arm, measure.denominator_arm]
        row |= {
            "comparability": json.dumps(keys_of(reports, measure), sort_keys=True),
            "measured_by": measure.scenario,
            "measured_kind": measure.kind,
            "measured_metric": measure.metric,
            "measured_statistic": measure.statistic or None,
            "measured_arms": [arm for arm in arms if arm is not None],
        }
    else:
        row["not_measured"] = say("en", measure.key, detail=measure.detail)
    return {name: row[name] for name in COLUMNS}


def parquet_table(found: list[dict[str, Any]]) -> pa.Table:
    """The rows as an Arrow table; meanings stand in the field metadata."""
    fields = [
        pa.field(name, _ARROW[kind], metadata={"meaning": meaning})
        for name, (kind, meaning) in COLUMNS.items()
    ]
    metadata: dict[bytes | str, bytes | str] = {
        "r8.table": "figures",
        "r8.licence": "figures of the public release 505f41e: CC-BY-4.0, mingxin-tech",
    }
    return pa.Table.from_pylist(found, schema=pa.schema(fields, metadata=metadata))


def toml_files(found: list[dict[str, Any]]) -> dict[str, str]:
    """File name to text: one file a report, a figure of several reports in the first one's."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        groups.setdefault(row["reports"][0] if row["reports"] else OTHER, []).append(row)
    return {
        f"ledger-{report}.toml": "\n".join(
            [_HEADER.format(report=report), *(_toml(row) for row in group)]
        )
        for report, group in sorted(groups.items())
    }


def _toml(row: dict[str, Any]) -> str:
    lines = ["[[figure]]"]
    for name, value in row.items():
        if value is None:
            continue
        if name == "comparability":
            pairs = ", ".join(f"{key} = {_text(v)}" for key, v in json.loads(value).items())
            lines.append(f"{name} = {{ {pairs} }}" if pairs else f"{name} = {{}}")
        elif isinstance(value, list):
            lines.append(f"{name} = [{', '.join(map(_text, value))}]")
        else:
            lines.append(f"{name} = {_text(value) if isinstance(value, str) else repr(value)}")
    return "\n".join([*lines, ""])


def _text(value: str) -> str:
    # A JSON string of printable text is a TOML basic string.
    return json.dumps(value, ensure_ascii=False)


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
