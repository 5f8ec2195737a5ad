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
from r8.resources import view_columns

if TYPE_CHECKING:
    from fractions import Fraction

    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Reports

TEXT, NUMBER, TEXTS = pa.string(), pa.float64(), pa.list_(pa.string())
# What each column means stands in data/queries/columns.csv, as for every view.
COLUMNS: dict[str, pa.DataType] = {
    "figure_id": TEXT,
    "reports": TEXTS,
    **dict.fromkeys(("where", "platform", "scenario", "arm", "level", "metric"), TEXT),
    "statistic": TEXT,
    "value": NUMBER,
    **dict.fromkeys(("value_exact", "unit"), TEXT),
    "unit_base": pa.int64(),
    "as_printed": TEXT,
    **dict.fromkeys(("precision", "printed_low", "printed_high"), NUMBER),
    **dict.fromkeys(("page_label", "basis", "formula", "restates"), TEXT),
    "tolerance": NUMBER,
    **dict.fromkeys(("comparability", "measured_by", "measured_kind", "measured_metric"), TEXT),
    "measured_statistic": TEXT,
    "measured_arms": TEXTS,
    "measured_unit_size": NUMBER,
    **dict.fromkeys(("not_measured", "note"), TEXT),
}


def figures_table(ledger: Ledger, reports: Reports) -> pa.Table:
    """One row a figure in the order of the ledger; meanings stand in the field metadata."""
    said = view_columns()
    fields = [
        pa.field(
            name, kind, metadata={"meaning": (said.get(("figures", name)) or said["*", name])[1]}
        )
        for name, kind in COLUMNS.items()
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
        name: getattr(figure, name, None) or None for name, kind in COLUMNS.items() if kind == TEXT
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
        "measured_unit_size": measure.unit_size,
        "measured_arms": [arm for arm in arms if arm is not None],
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
