"""Arms of one block against each other: which pairs there are, and which have a ratio."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import duckdb
import pytest

from r8.resources import query_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLE = """
CREATE TABLE metrics (campaign_id VARCHAR, scenario VARCHAR, level VARCHAR, block BIGINT,
                      phase VARCHAR, metric VARCHAR, statistic VARCHAR, arm VARCHAR,
                      run_id VARCHAR, value DOUBLE)
"""


@pytest.fixture(name="made")
def _made() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(_TABLE)
        connection.execute(query_text("arms"))
        yield connection


def put(made: duckdb.DuckDBPyConnection, arm: str, value: float | None, **other: object) -> None:
    row = {"campaign_id": "c", "scenario": "s", "level": "c8", "block": 0, "phase": "measure"}
    row |= {"metric": "ttft", "statistic": "p50", "arm": arm, "run_id": arm, "value": value}
    made.execute(
        "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [*(row | other).values()]
    )


@pytest.mark.parametrize(
    ("above", "below", "ratio"),
    [
        (0.5, 0.25, 2.0),
        (3.0, 6.0, 0.5),
        (0.0, 1.0, None),
        (1.0, 0.0, None),
        (-1.0, -1.0, None),
        (math.inf, 1.0, None),
        (1.0, math.inf, None),
        (math.nan, 1.0, None),
        (None, 1.0, None),
    ],
)
def test_a_ratio_needs_two_positive_finite_values(
    made: duckdb.DuckDBPyConnection, above: float | None, below: float | None, ratio: float | None
) -> None:
    put(made, "a", above)
    put(made, "b", below)
    sql = "SELECT ln_ratio FROM arm_ratio WHERE numerator_arm = 'a' AND denominator_arm = 'b'"
    ((found,),) = made.execute(sql).fetchall()
    assert found == (None if ratio is None else pytest.approx(math.log(ratio)))


@pytest.mark.parametrize(
    "other",
    [
        {"campaign_id": "d"},
        {"scenario": "t"},
        {"level": "c16"},
        {"block": 1},
        {"phase": "warm"},
        {"metric": "itl"},
        {"statistic": "max"},
    ],
)
def test_arms_of_another_place_are_no_pair(
    made: duckdb.DuckDBPyConnection, other: dict[str, object]
) -> None:
    put(made, "a", 1.0)
    put(made, "b", 1.0, **other)
    assert made.execute("SELECT count(*) FROM arm_ratio").fetchall() == [(0,)]
    put(made, "b", 1.0)
    assert made.execute("SELECT count(*) FROM arm_ratio").fetchall() == [(2,)]
