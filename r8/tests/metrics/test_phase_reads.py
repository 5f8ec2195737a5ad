"""`phase_reads` folds readings into pieces and finds what looking at every reading finds."""

from __future__ import annotations

import random

import duckdb
import pytest

from r8.resources import query_text

S = 1_000_000_000
MINUTE = 60 * S

# The definition, phase by phase and reading by reading: no pieces.
_PLAIN = """
SELECT p.run_id, p.phase, p.occurrence, x.device,
       max(x.mono_ns) FILTER (x.mono_ns <= p.begin_ns) AS before_ns,
       min(x.mono_ns) FILTER (x.mono_ns >= p.end_ns) AS after_ns,
       count(*) FILTER (x.mono_ns > p.begin_ns AND x.mono_ns < p.end_ns)
           + (before_ns IS NOT NULL)::BIGINT + (after_ns IS NOT NULL)::BIGINT AS n,
       512 * (arg_min(x.value, x.mono_ns) FILTER (x.mono_ns >= p.end_ns)
              - arg_max(x.value, x.mono_ns) FILTER (x.mono_ns <= p.begin_ns)) AS read_bytes
FROM phases p JOIN probes x USING (run_id)
WHERE x.value IS NOT NULL GROUP BY p.run_id, p.phase, p.occurrence, x.device, p.begin_ns, p.end_ns
ORDER BY ALL
"""
_FOLDED = """
SELECT run_id, phase, occurrence, device, before_ns, after_ns, n, read_bytes
FROM phase_reads ORDER BY ALL
"""


def _session(chance: random.Random) -> duckdb.DuckDBPyConnection:
    """Hours of readings at uneven instants, and phases that begin and end on some of them."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE events (run_id VARCHAR, name VARCHAR, detail VARCHAR)")
    connection.execute(
        "CREATE TABLE phases (run_id VARCHAR, phase VARCHAR, occurrence BIGINT, begin_ns BIGINT, "
        "end_ns BIGINT)"
    )
    connection.execute(
        "CREATE TABLE probes (run_id VARCHAR, probe VARCHAR, host VARCHAR, device VARCHAR, "
        "counter VARCHAR, text VARCHAR, mono_ns BIGINT, epoch BIGINT, value BIGINT)"
    )
    rows: list[tuple[object, ...]] = []
    for run in ("a", "b"):
        for device in ("d0", "d1"):
            at, value = chance.randrange(MINUTE), 0
            while at < 90 * MINUTE:
                read = None if chance.random() < 0.02 else value
                row = (run, "disk", "h", device, "read_sectors", None, at, 0, read)
                rows.append(row)
                # Whole minutes and equal instants of two devices are among them.
                at = (at // MINUTE + 1) * MINUTE if chance.random() < 0.1 else at + 7 * S
                value += chance.randrange(1000)
    connection.executemany("INSERT INTO probes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    marks = [row[6] for row in rows] + [chance.randrange(90 * MINUTE) for _ in rows]
    for number in range(12):
        # Two in one minute, one over an hour, one of no length, one before every reading.
        begin, end = sorted(int(str(chance.choice(marks))) for _ in range(2))
        end = begin if number == 0 else begin + 3 * S if number < 4 else end
        for run in ("a", "b"):
            phase = (run, f"p{number}", 1, begin, end)
            connection.execute("INSERT INTO phases VALUES (?, ?, ?, ?, ?)", phase)
    connection.execute("INSERT INTO phases VALUES ('a', 'open', 1, 5, NULL), ('b', 'no', 1, 1, 2)")
    return connection


def _phase_reads() -> str:
    """Everything that `phase_reads` is made from, and itself."""
    return "".join(query_text(name) for name in ("macros", "devices")) + str(
        duckdb.extract_statements(query_text("device_reads"))[0].query
    )


@pytest.mark.parametrize("seed", range(5))
def test_folded_readings_say_what_every_reading_says(seed: int) -> None:
    connection = _session(random.Random(seed))  # noqa: S311 - repeatable, no secret
    connection.execute(_phase_reads())
    folded = connection.execute(_FOLDED).fetchall()
    connection.execute("DELETE FROM phases WHERE end_ns IS NULL")
    assert folded == connection.execute(_PLAIN).fetchall()
    assert len(folded) == 2 * (2 * 12 + 1)


def test_readings_that_are_folded_across_a_mark_are_seen() -> None:
    """What holds the cuts: without them a phase takes its last minute's readings for its own."""
    connection = _session(random.Random(0))  # noqa: S311
    uncut = _phase_reads().replace("WHEN c.marks IS NOT NULL", "WHEN false")
    assert uncut != _phase_reads()
    connection.execute(uncut)
    folded = connection.execute(_FOLDED).fetchall()
    connection.execute("DELETE FROM phases WHERE end_ns IS NULL")
    assert folded != connection.execute(_PLAIN).fetchall()
