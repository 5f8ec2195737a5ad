"""The table of figures: what each stands for, and what can measure it or why nothing can."""

from __future__ import annotations

import json
from pathlib import Path

from r8.claims.ledger import load_ledger
from r8.claims.measured import Measure, measure_of
from r8.claims.reports import load_reports
from r8.claims.table import COLUMNS, figures_table
from r8.message import parse_reason

ROOT = Path(__file__).resolve().parents[3]
LEDGER, REPORTS = load_ledger(), load_reports()
TABLE = figures_table(LEDGER, REPORTS)


def test_every_figure_is_a_row_with_what_can_measure_it_or_why_nothing_can() -> None:
    rows = {row["figure_id"]: row for row in TABLE.to_pylist()}
    assert list(rows) == list(LEDGER.figures)
    for name, figure in LEDGER.figures.items():
        row, measure = rows[name], measure_of(LEDGER, REPORTS, figure)
        assert list(row) == list(COLUMNS)
        assert row["value_exact"] == (None if figure.value is None else str(figure.value))
        assert row["as_printed"] == (figure.as_printed or None)
        assert row["value"] == (None if figure.value is None else float(figure.value))
        assert row["printed_low"] == (None if figure.printed is None else float(figure.printed.low))
        if isinstance(measure, Measure):
            assert json.loads(row["comparability"]) == dict(measure.comparability)
            assert row["measured_by"] == measure.scenario
            assert row["measured_statistic"] == (measure.statistic or None)
            assert row["tolerance"] == 0.05
            assert row["not_measured"] is None
        else:
            assert parse_reason(row["not_measured"]) == measure
            assert row["measured_by"] is None


def test_rows_of_the_public_release_carry_its_licence() -> None:
    assert b"CC-BY-4.0" in (TABLE.schema.metadata or {})[b"r8.licence"]
    assert "CC-BY-4.0" in (ROOT / "data/published/README.md").read_text()
    assert "CC-BY-4.0" in (ROOT / "CITATION.cff").read_text()


def test_every_column_says_what_it_means() -> None:
    for name in COLUMNS:
        assert (TABLE.schema.field(name).metadata or {})[b"meaning"], name
