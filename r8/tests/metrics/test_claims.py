"""Published figures beside what runs measured, on a page of three figures and two arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from r8.resources import query_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TABLES = """
CREATE TABLE runs (run_id VARCHAR, arm VARCHAR, role VARCHAR, basis VARCHAR);
INSERT INTO runs VALUES ('a', 'patched', 'array', 'measured'), ('b', 'mine', 'local', 'measured');
CREATE TABLE metrics (run_id VARCHAR, campaign_id VARCHAR, scenario VARCHAR, arm VARCHAR,
                      level VARCHAR, block BIGINT, phase VARCHAR, metric VARCHAR,
                      statistic VARCHAR, value DOUBLE);
INSERT INTO metrics
SELECT run_id, 'c', 'r1', arm, 'c16', 0, phase, metric, statistic, value
FROM (VALUES ('a', 'patched', 6.0), ('b', 'mine', 12.0)) v(run_id, arm, value)
CROSS JOIN (VALUES ('measure', 'ttft', 'p50'), ('warm', 'ttft', 'p50'), ('measure', 'ttft', 'max'),
                   ('measure', 'itl', 'p50')) w(phase, metric, statistic);
CREATE TABLE arm_ratio AS
SELECT 'c' AS campaign_id, 'r1' AS scenario, 'c16' AS level, 0 AS block, phase, 'ttft' AS metric,
       statistic, x.arm AS numerator_arm, y.arm AS denominator_arm, x.run_id AS numerator_run_id,
       y.run_id AS denominator_run_id, ln(if(x.arm = 'mine', 2.0, 0.5)) AS ln_ratio
FROM runs x JOIN runs y ON x.arm <> y.arm
CROSS JOIN (VALUES ('measure', 'p50'), ('warm', 'p50'), ('measure', 'max')) w(phase, statistic);
CREATE TABLE page AS
SELECT * FROM (VALUES
    ('one', 's', 3.0, 2.0, 'value', ['patched'], NULL),
    ('of.a.role', 's', 24.0, 1.0, 'value', ['role:local'], 'c16'),
    ('other.level', 's', 1.0, 1.0, 'value', ['patched'], 'c32'),
    ('other.kind', 's', 1.0, 1.0, 'share', ['patched'], 'c16'),
    ('ratio', 'x', 4.0, 1.0, 'ratio', ['role:local', 'patched'], NULL),
    ('ratio.other.level', 'x', 4.0, 1.0, 'ratio', ['mine', 'patched'], 'c32'),
    ('no.ratio', 's', 4.0, 1.0, 'value', ['mine', 'patched'], 'c16'))
    f(figure_id, unit, value, measured_unit_size, measured_kind, measured_arms, level)
CROSS JOIN (VALUES ('r1', 'ttft', 'p50')) w(measured_by, measured_metric, measured_statistic);
ALTER TABLE page ADD COLUMN as_printed VARCHAR DEFAULT 'as printed';
"""


@pytest.fixture(name="made")
def _made(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(_TABLES)
        connection.execute(f"COPY page TO '{tmp_path / 'figures.parquet'}' (FORMAT parquet)")
        connection.execute(f"SET VARIABLE r8_figures = '{tmp_path / 'figures.parquet'}'")
        connection.execute(query_text("claims"))
        yield connection


def test_a_figure_stands_beside_the_runs_of_its_arm_at_its_level(
    made: duckdb.DuckDBPyConnection,
) -> None:
    sql = "SELECT figure_id, run_id, published, measured, measured_by_published FROM figure_runs"
    assert made.execute(f"{sql} ORDER BY ALL").fetchall() == [
        ("of.a.role", "b", 24.0, 12.0, 0.5),
        ("one", "a", 3.0, 3.0, 1.0),
    ]


def test_a_ratio_stands_beside_the_same_two_arms_in_the_same_order(
    made: duckdb.DuckDBPyConnection,
) -> None:
    rows = made.execute(
        "SELECT figure_id, numerator_arm, denominator_arm, measured, measured_by_published "
        "FROM figure_ratios"
    ).fetchall()
    assert rows == [("ratio", "mine", "patched", pytest.approx(2.0), pytest.approx(0.5))]
