"""What the instants of one request give, by hand; every instant is another second."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from r8.resources import query_text

S = 1_000_000_000
_TABLE = """
CREATE TABLE requests (run_id VARCHAR, phase VARCHAR, request_id VARCHAR, instance VARCHAR,
    session VARCHAR, outcome VARCHAR, error VARCHAR, output_tokens BIGINT, scheduled_ns BIGINT,
    sent_ns BIGINT, first_byte_ns BIGINT, first_content_ns BIGINT, first_answer_ns BIGINT,
    last_content_ns BIGINT)
"""
_ROW = "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSTANTS_S = {"scheduled": 1, "sent": 3, "byte": 10, "content": 20, "answer": 32, "last": 60}


def times(outcome: str, tokens: int | None) -> dict[str, Any]:
    """The row of a request whose instants are known, in seconds."""
    view = next(
        one.query
        for one in duckdb.extract_statements(query_text("request_times"))
        if "VIEW request_times" in one.query
    )
    row = ["r", "measure", "q", "i", "s", outcome, None, tokens]
    row += [at * S for at in INSTANTS_S.values()]
    with duckdb.connect() as connection:
        connection.execute(_TABLE)
        connection.execute(_ROW, row)
        connection.execute(view)
        found = connection.execute("SELECT * FROM request_times")
        names = [column[0] for column in found.description]
        (values,) = found.fetchall()
    named = dict(zip(names, values, strict=True))
    return {
        name: None if value is None else value / S
        for name, value in named.items()
        if name.endswith("_ns") and name not in {"sent_ns", "last_content_ns"}
    }


def test_each_time_has_its_two_instants() -> None:
    assert times("ok", 5) == {
        "ttft_ns": 17,
        "tpot_ns": pytest.approx(40 / 4),
        "e2e_ns": 57,
        "first_byte_after_ns": 7,
        "first_answer_after_ns": 29,
        "send_lag_ns": 2,
    }


def test_a_failed_request_has_no_times_of_an_answer() -> None:
    failed = times("cut", 5)
    assert [failed[name] for name in ("ttft_ns", "tpot_ns", "e2e_ns")] == [None] * 3
    assert (failed["first_byte_after_ns"], failed["send_lag_ns"]) == (7, 2)


@pytest.mark.parametrize(("tokens", "tpot_s"), [(None, None), (1, None), (2, 40)])
def test_a_time_per_token_needs_two_tokens(tokens: int | None, tpot_s: float | None) -> None:
    assert times("ok", tokens)["tpot_ns"] == tpot_s
