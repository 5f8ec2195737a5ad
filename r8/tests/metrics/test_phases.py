"""Phases by their marks: which occurrence, from when to when, and what was said at the begin."""

from __future__ import annotations

import duckdb

from r8.resources import query_text

_TABLES = """
CREATE TABLE runs (run_id VARCHAR, campaign_id VARCHAR, scenario VARCHAR, block BIGINT);
INSERT INTO runs VALUES ('r', 'c', 's', 0), ('q', 'c', 's', 0), ('p', 'c', 's', 1);
CREATE TABLE events (run_id VARCHAR, name VARCHAR, mono_ns BIGINT, wall_ns BIGINT, detail VARCHAR);
INSERT INTO events VALUES
    ('r', 'control_begin', 10, 110, 'first'), ('r', 'control_end', 20, 120, 'zz ended'),
    ('r', 'control_begin', 30, 130, 'second'), ('r', 'control_end', 40, 140, 'a ended'),
    ('r', 'measure_begin', 50, 150, NULL), ('q', 'note', 60, 190, 'no phase'),
    ('p', 'run_begin', 5, 300, NULL), ('p', 'run_end', 6, 307, NULL);
"""


def test_each_occurrence_has_its_marks_and_what_its_begin_said() -> None:
    with duckdb.connect() as connection:
        connection.execute(_TABLES)
        connection.execute(query_text("phases"))
        sql = "SELECT * EXCLUDE (run_id) FROM phases WHERE run_id = 'r' ORDER BY begin_ns"
        assert connection.execute(sql).fetchall() == [
            ("control", 1, 10, 20, "first"),
            ("control", 2, 30, 40, "second"),
            ("measure", 1, 50, None, None),
        ]
        found = connection.execute("FROM block_times ORDER BY block").fetchall()
        assert found == [("c", "s", 0, 2, 80), ("c", "s", 1, 1, 7)]
