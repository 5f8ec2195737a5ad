"""What happened when: every series of a small made-up run, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from r8.resources import query_text

if TYPE_CHECKING:
    from collections.abc import Iterator

S = 1_000_000_000
ZERO = 1000 * S
TCP = "netdev.rx_bytes"
_TABLES = """
CREATE TABLE probes (run_id VARCHAR, probe VARCHAR, host VARCHAR, device VARCHAR, counter VARCHAR,
                     text VARCHAR, mono_ns BIGINT, epoch BIGINT, value DOUBLE);
CREATE TABLE phases (run_id VARCHAR, phase VARCHAR, occurrence BIGINT, begin_ns BIGINT,
                     end_ns BIGINT);
CREATE TABLE requests (run_id VARCHAR, phase VARCHAR, sent_ns BIGINT, sent_done_ns BIGINT,
                       first_byte_ns BIGINT, first_content_ns BIGINT, last_content_ns BIGINT,
                       done_ns BIGINT);
"""
# Seconds of the samples; a device that reads 100, 200 and 300 sectors and writes a tenth of it.
AT = (-1, 1, 2, 4)
READ, WRITTEN = (0, 100, 300, 600), (0, 10, 30, 60)


@pytest.fixture(name="made")
def _made() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(_TABLES)
        for run, zero in (("r", ZERO), ("other", 5 * S)):
            rows = [
                *_samples(run, zero, "disk", "loop0", "read_sectors", READ),
                *_samples(run, zero, "disk", "loop0", "write_sectors", WRITTEN),
                *_samples(run, zero, "nic", "ens1", TCP, (0, 1000, 3000, 9000)),
                (run, "gpu", "h", "card0", "gpu_busy_percent", None, zero + S, 0, 42),
            ]
            connection.executemany("INSERT INTO probes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            marks = (run, "measure", 1, zero, zero + 3 * S)
            connection.execute("INSERT INTO phases VALUES (?, ?, ?, ?, ?)", marks)
            # A second burst of that name, and two requests: whole, and one that got no answer.
            again = (run, "measure", 2, zero + 50 * S, zero + 51 * S)
            connection.execute("INSERT INTO phases VALUES (?, ?, ?, ?, ?)", again)
            whole = [zero + at * S for at in (0, 0, 1, 2, 3, 4)]
            lost = [zero + S, zero + S, None, None, None, None]
            for instants in (whole, lost):
                row = (run, "measure", *instants)
                connection.execute("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        # Of network.sql the best counter of each adapter: the rest needs every other file.
        best = duckdb.extract_statements(query_text("network"))[0].query
        for text in (query_text("macros"), query_text("devices"), best, query_text("timelines")):
            connection.execute(text)
        yield connection


def _samples(
    run: str, zero: int, probe: str, device: str, counter: str, values: tuple[int, ...]
) -> list[tuple[Any, ...]]:
    return [
        (run, probe, "h", device, counter, None, zero + at * S, 0, value)
        for at, value in zip(AT, values, strict=True)
    ]


def series(made: duckdb.DuckDBPyConnection, name: str) -> list[tuple[Any, ...]]:
    """Begin and end in seconds from the measured phase's begin, and the value."""
    rows = made.execute(
        "SELECT begin_ns / 1e9, end_ns / 1e9, value FROM timeline "
        "WHERE run_id = 'r' AND series = ? ORDER BY ALL",
        [name],
    )
    return list(rows.fetchall())


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("device_read", [(-1, 1, 25_600), (1, 2, 102_400), (2, 4, 76_800)]),
        ("device_write", [(-1, 1, 2_560), (1, 2, 10_240), (2, 4, 7_680)]),
        ("nic_receive", [(-1, 1, 500), (1, 2, 2000), (2, 4, 3000)]),
        ("gpu_busy", [(1, 1, 42)]),
        # The lost request was sent when one was under way, and ends when its last byte was sent.
        ("in_flight", [(0, 0, 1), (1, 1, 1), (4, 4, 0)]),
        ("first_tokens", [(2, 2, 1)]),
    ],
)
def test_a_series_counts_from_the_first_measured_phase(
    made: duckdb.DuckDBPyConnection, name: str, rows: list[tuple[float, float, float]]
) -> None:
    assert series(made, name) == rows


def test_every_series_is_looked_at_here(made: duckdb.DuckDBPyConnection) -> None:
    assert made.execute("SELECT count(DISTINCT series) FROM timeline").fetchall() == [(6,)]


def test_a_device_gives_its_bytes_and_their_rate(made: duckdb.DuckDBPyConnection) -> None:
    rows = made.execute(
        "SELECT read_bytes, write_bytes, read_bytes_per_s, write_bytes_per_s FROM device_series "
        "WHERE run_id = 'r' ORDER BY begin_ns"
    ).fetchall()
    assert rows == [
        (51_200, 5_120, 25_600, 2_560),
        (102_400, 10_240, 102_400, 10_240),
        (153_600, 15_360, 76_800, 7_680),
    ]


def test_a_counter_that_began_anew_is_not_bridged(made: duckdb.DuckDBPyConnection) -> None:
    made.execute("UPDATE probes SET epoch = 1 WHERE mono_ns >= ?", [ZERO + 2 * S])
    assert [row[:2] for row in series(made, "device_read")] == [(-1, 1), (2, 4)]
    assert [row[:2] for row in series(made, "nic_receive")] == [(-1, 1), (2, 4)]


def columns(
    made: duckdb.DuckDBPyConnection, macro: str, low_s: int, high_s: int, column_s: int
) -> list[tuple[float, float, float]]:
    sql = f"SELECT begin_ns / 1e9, end_ns / 1e9, bytes_per_s FROM {macro} ORDER BY ALL"  # noqa: S608
    return list(made.execute(sql, [low_s * S, high_s * S, column_s * S]).fetchall())


@pytest.mark.parametrize(
    ("macro", "low_s", "high_s", "rows"),
    [
        (
            "device_columns('r', 'loop0', ",
            -1,
            4,
            [(-1, 1, 25_600), (1, 2, 102_400), (2, 4, 76_800)],
        ),
        ("device_columns('r', 'loop0', ", 1, 4, [(1, 2, 102_400), (2, 4, 76_800)]),
        ("device_columns('r', 'loop0', ", -1, 2, [(-1, 1, 25_600), (1, 2, 102_400)]),
        ("nic_columns('r', ", -1, 4, [(-1, 1, 500), (1, 2, 2000), (2, 4, 3000)]),
        ("nic_columns('r', ", 1, 2, [(1, 2, 2000)]),
    ],
)
def test_a_drawing_has_whole_intervals_between_its_ends(
    made: duckdb.DuckDBPyConnection,
    macro: str,
    low_s: int,
    high_s: int,
    rows: list[tuple[float, float, float]],
) -> None:
    assert columns(made, f"{macro}?, ?, ?)", low_s, high_s, 1) == rows


def test_a_column_averages_the_intervals_that_begin_in_it(
    made: duckdb.DuckDBPyConnection,
) -> None:
    ((begin_s, end_s, rate),) = columns(made, "device_columns('r', 'loop0', ?, ?, ?)", 1, 4, 3)
    assert (begin_s, end_s) == (1, 4)
    assert rate == pytest.approx(256_000 / 3)


def test_a_column_adds_adapters_and_averages_each(made: duckdb.DuckDBPyConnection) -> None:
    rows = _samples("r", ZERO, "nic", "ens2", TCP, (0, 500, 1500, 4500))
    made.executemany("INSERT INTO probes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    ((begin_s, end_s, rate),) = columns(made, "nic_columns('r', ?, ?, ?)", 1, 4, 3)
    assert (begin_s, end_s) == (1, 4)
    assert rate == pytest.approx(8000 / 3 + 4000 / 3)
