"""What the engine's log says of requests, and which step of the engine took them, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from r8.resources import query_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLES = """
CREATE TABLE runs (run_id VARCHAR, chunk_tokens BIGINT, chunk_bytes BIGINT);
INSERT INTO runs VALUES ('r', 256, 1000);
CREATE TABLE requests (run_id VARCHAR, phase VARCHAR, request_id VARCHAR, instance VARCHAR,
                       session BIGINT, outcome VARCHAR, server_request_id VARCHAR,
                       prompt_tokens BIGINT);
INSERT INTO requests
SELECT 'r', phase, phase || n, 'a', n, 'ok', 'cmpl-' || phase || n, 1025
FROM (VALUES ('measure'), ('warm')) p(phase) CROSS JOIN range(3) s(n);
CREATE TABLE engine_log (run_id VARCHAR, instance VARCHAR, line BIGINT, kind VARCHAR, text VARCHAR,
                         server_request_id VARCHAR, computed_tokens BIGINT, hit_tokens BIGINT,
                         need_tokens BIGINT, retrieved_tokens BIGINT, required_tokens BIGINT,
                         stored_tokens BIGINT, keys BIGINT, segments BIGINT, misses BIGINT,
                         read_bytes BIGINT);
"""


@pytest.fixture(name="made")
def _made() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(_TABLES)
        yield connection


def say(made: duckdb.DuckDBPyConnection, line: int, kind: str, request: str, **tokens: int) -> None:
    """A line of the log."""
    row = {"run_id": "r", "instance": "a", "line": line, "kind": kind, **tokens}
    row["server_request_id"] = f"cmpl-{request}-0-a1b2"
    names, marks = ", ".join(row), ", ".join(f"${name}" for name in row)
    made.execute(f"INSERT INTO engine_log ({names}) VALUES ({marks})", row)  # noqa: S608


def views(made: duckdb.DuckDBPyConnection) -> None:
    for name in ("macros", "engine_log", "admissions"):
        made.execute(query_text(name))


def rows(made: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return list(made.execute(sql).fetchall())


def test_every_number_of_a_request_is_of_its_own_kind_of_line(
    made: duckdb.DuckDBPyConnection,
) -> None:
    numbers = ("computed", "hit", "need", "retrieved", "required", "stored")
    for line, kind, first in ((3, "lookup", 10), (5, "retrieved", 500), (7, "stored", 900)):
        tokens = {f"{name}_tokens": first + at for at, name in enumerate(numbers)}
        say(made, line, kind, "measure0", **tokens)
    # A lookup that was repeated before, with less; and a line of another request.
    say(made, 2, "lookup", "measure0", computed_tokens=0, hit_tokens=1, need_tokens=2)
    say(made, 4, "lookup", "measure1", computed_tokens=77, hit_tokens=777, need_tokens=7)
    views(made)
    sql = (
        "SELECT n_lookups, computed_tokens, hit_tokens, need_tokens, retrieved_tokens, "
        "required_tokens, stored_tokens, first_line, last_line, hit_bytes FROM engine_requests "
    )
    found = rows(made, f"{sql} WHERE request_id = 'measure0'")
    assert found == [(2, 10, 11, 12, 503, 504, 905, 2, 7, 0)]
    assert rows(made, f"{sql} WHERE request_id = 'measure1'")[0][-1] == 3 * 1000
    assert rows(made, f"{sql} WHERE request_id = 'warm0'") == [(0, *[None] * 9)]


def test_a_request_comes_from_where_its_session_was_populated_in_the_same_run(
    made: duckdb.DuckDBPyConnection,
) -> None:
    made.execute("UPDATE requests SET phase = 'populate', instance = 'b' WHERE phase = 'warm'")
    # As populate requests of another run and of another outcome: neither is an origin.
    made.execute(
        "INSERT INTO requests SELECT * REPLACE ('other' AS run_id, 'c' AS instance) "
        "FROM requests WHERE phase = 'populate'"
    )
    made.execute("UPDATE requests SET outcome = 'cut' WHERE request_id = 'warm2' AND run_id = 'r'")
    say(made, 1, "lookup", "measure1", hit_tokens=512)
    views(made)
    found = rows(
        made,
        "SELECT session, measured_on, populated_on, n_lookups, hit_tokens "
        "FROM request_origin ORDER BY session",
    )
    assert found == [(0, "a", "b", 0, None), (1, "a", "b", 1, 512), (2, "a", None, 0, None)]


def test_a_request_is_taken_with_the_last_lookup_before_its_load(
    made: duckdb.DuckDBPyConnection,
) -> None:
    """Request 1 is looked up first, waits, and is looked up again when another load has ended."""
    say(made, 1, "lookup", "measure0", hit_tokens=1024)
    say(made, 2, "lookup", "measure1", hit_tokens=256)
    say(made, 3, "retrieved", "measure0", retrieved_tokens=1024)
    say(made, 4, "lookup", "measure1", hit_tokens=512)
    say(made, 5, "retrieved", "measure1", retrieved_tokens=512)
    say(made, 6, "lookup", "measure1", hit_tokens=0)
    say(made, 7, "lookup", "measure2", hit_tokens=768)
    views(made)
    found = rows(made, "FROM admissions ORDER BY request_id")
    assert found == [
        ("r", "a", "measure0", 0, 4000, 4000),
        ("r", "a", "measure1", 1, 2000, 6000),
        ("r", "a", "measure2", 2, 3000, 9000),
    ]
    (first,) = rows(made, "SELECT metric, value, n, reason FROM first_steps")
    assert first == ("first_step_requests", 1.0, 3, None)


def test_loads_of_another_engine_come_before_a_request_as_far_as_its_own_do(
    made: duckdb.DuckDBPyConnection,
) -> None:
    """Two engines share a device: in the time of 3 KB of its own, at most 3 KB of the other's."""
    made.execute("UPDATE requests SET instance = 'b' WHERE request_id IN ('measure1', 'measure2')")
    say(made, 1, "lookup", "measure0", hit_tokens=768)
    for line, name, hit in ((2, "measure1", 256), (3, "measure2", 1024)):
        say(made, line, "lookup", name, hit_tokens=hit)
    made.execute("UPDATE engine_log SET instance = 'b' WHERE line > 1")
    views(made)
    found = rows(made, "SELECT request_id, load_bytes FROM admissions ORDER BY request_id")
    assert found == [
        ("measure0", 3000 + 3000),
        ("measure1", 5000 + 3000),
        ("measure2", 5000 + 3000),
    ]


def test_the_rank_that_needs_most_is_what_a_request_requires(
    made: duckdb.DuckDBPyConnection,
) -> None:
    for line, worker, loaded, required in ((1, "TP0", 700, 700), (2, "TP1", 500, 900)):
        say(made, line, "retrieved", "measure0", retrieved_tokens=loaded, required_tokens=required)
        text = f"(Worker_{worker} pid={line}) LMCache INFO"
        made.execute("UPDATE engine_log SET text = ? WHERE line = ?", [text, line])
    views(made)
    sql = "SELECT retrieved_tokens, required_tokens FROM engine_requests "
    assert rows(made, f"{sql} WHERE request_id = 'measure0'") == [(500, 900)]
