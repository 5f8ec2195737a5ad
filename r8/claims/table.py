"""The ledger as rows for SQL: one a figure, with what it stands for and what can measure it.

`python -m r8.cli.published` makes `figures.parquet` of it, and a test proves that the committed
file is what it makes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from r8.claims.measured import TOLERANCE, Measure, measure_of
from r8.message import spelled

if TYPE_CHECKING:
    from fractions import Fraction

    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Reports

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
    "not_measured": ("string", "why R8 cannot measure it: an id and its facts"),
    "note": ("string", "note of the transcription"),
}
_ARROW = {
    "string": pa.string(),
    "float64": pa.float64(),
    "int64": pa.int64(),
    "list<string>": pa.list_(pa.string()),
}


def figures_table(ledger: Ledger, reports: Reports) -> pa.Table:
    """One row a figure in the order of the ledger; meanings stand in the field metadata."""
    fields = [
        pa.field(name, _ARROW[kind], metadata={"meaning": meaning})
        for name, (kind, meaning) in COLUMNS.items()
    ]
    metadata: dict[bytes | str, bytes | str] = {
        "r8.table": "figures",
        "r8.licence": "figures of the public release 505f41e: CC-BY-4.0, mingxin-tech",
    }
    rows = [_row(ledger, reports, figure) for figure in ledger.figures.values()]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields, metadata=metadata))


def _row(ledger: Ledger, reports: Reports, figure: Figure) -> dict[str, Any]:
    """The columns of a figure that have a value; Arrow makes nulls of the others."""
    row: dict[str, Any] = {
        name: getattr(figure, name, None) or None
        for name, (kind, _) in COLUMNS.items()
        if kind == "string"
    }
    row |= {
        "reports": list(figure.reports),
        "value": _number(figure.value),
        "value_exact": None if figure.value is None else str(figure.value),
        "unit_base": figure.unit_base,
        "precision": _number(figure.precision),
        "formula": None if figure.formula is None else str(figure.formula),
    }
    if figure.printed is not None:
        row |= {
            "printed_low": float(figure.printed.low),
            "printed_high": float(figure.printed.high),
        }
    measure = measure_of(ledger, reports, figure)
    if not isinstance(measure, Measure):
        return row | {"not_measured": spelled(measure)}
    arms = (measure.numerator_arm, measure.denominator_arm)
    return row | {
        "tolerance": TOLERANCE,
        "comparability": json.dumps(dict(measure.comparability), sort_keys=True),
        "measured_by": measure.scenario,
        "measured_kind": measure.kind,
        "measured_metric": measure.metric,
        "measured_statistic": measure.statistic or None,
        "measured_arms": [arm for arm in arms if arm is not None],
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
