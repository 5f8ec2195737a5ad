"""Instants of engine log lines: stamps of two makes, a zone nobody names, clocks of two hosts."""

from __future__ import annotations

import calendar
import json

import pytest

from r8.evidence.log_clock import LogClock, Mark

S = 1_000_000_000
# 2026-11-30 12:00:00 UTC.
BEGIN_WALL = calendar.timegm((2026, 11, 30, 12, 0, 0)) * S
BEGIN_MONO = 5_000 * S
HOUR = 3600 * S


def marks(length_s: int = 600, **started: object) -> list[Mark]:
    found = [
        Mark(mono_ns=BEGIN_MONO, wall_ns=BEGIN_WALL, name="run_begin", detail="{}"),
        Mark(
            mono_ns=BEGIN_MONO + length_s * S,
            wall_ns=BEGIN_WALL + length_s * S,
            name="run_end",
            detail=None,
        ),
    ]
    if started:
        offset = {"host": started["host"], "wall_ns": started["ahead_ns"]}
        at = {"mono_ns": BEGIN_MONO + 1, "wall_ns": BEGIN_WALL + 1}
        found += [
            Mark(**at, name="clock_offset", detail=json.dumps(offset)),
            Mark(
                **at,
                name="engine_started",
                detail=json.dumps({"instance": "a", "host": started["host"]}),
            ),
        ]
    return found


def lmcache(stamp: str) -> str:
    return f"(Worker pid=7) [{stamp}] LMCache INFO: Reqid: x (a.py:1:b)"


def clock(first: str, last: str, length_s: int = 600, **started: object) -> LogClock:
    made = LogClock(marks(length_s, **started), "a")
    made.set_zone(first, last)
    return made


@pytest.mark.parametrize(
    ("hours", "minutes"), [(12, 0), (13, 0), (4, 0), (17, 45), (21, 30)]
)  # UTC, Berlin, Los Angeles, Nepal, Adelaide
def test_the_zone_follows_from_the_run(hours: int, minutes: int) -> None:
    first = lmcache(f"2026-11-30 {hours:02d}:{minutes:02d}:10,250")
    found = clock(first, lmcache(f"2026-11-30 {hours:02d}:{minutes + 9:02d}:50,000"))
    assert found.instants(first) == {
        "mono_ns": BEGIN_MONO + 10_250_000_000,
        "wall_ns": BEGIN_WALL + 10_250_000_000,
    }


def test_a_stamp_without_a_year_gets_the_one_of_the_run() -> None:
    line = "(APIServer pid=3) INFO 11-30 12:00:20 [api_server.py:1] started"
    assert clock(line, line, 60).instants(line)["wall_ns"] == BEGIN_WALL + 20 * S


def test_new_years_eve_is_not_a_year_away() -> None:
    begin = calendar.timegm((2026, 12, 31, 23, 59, 50)) * S
    run = [
        Mark(mono_ns=0, wall_ns=begin, name="run_begin", detail=None),
        Mark(mono_ns=20 * S, wall_ns=begin + 20 * S, name="run_end", detail=None),
    ]
    found = LogClock(run, "a")
    old, new = "INFO 12-31 23:59:55 [a.py:1] x", "INFO 01-01 00:00:05 [a.py:1] y"
    found.set_zone(old, new)
    assert [found.instants(one)["mono_ns"] for one in (old, new)] == [5 * S, 15 * S]


NOTHING = {"mono_ns": None, "wall_ns": None}


def test_a_log_that_fits_two_zones_has_no_instants() -> None:
    early, late = lmcache("2026-11-30 12:01:00,000"), lmcache("2026-11-30 12:30:00,000")
    # Half an hour of log in an hour of run may be of two quarters.
    assert clock(early, late, 3600).instants(early) == NOTHING
    # In a run that is hardly longer than it, of one.
    assert clock(early, late, 1805).instants(early)["mono_ns"] == BEGIN_MONO + 60 * S


def test_a_log_of_another_day_has_no_instants() -> None:
    line = lmcache("2026-11-28 12:01:00,000")
    later = lmcache("2026-11-28 13:01:00,000")
    assert clock(line, later).instants(line) == NOTHING


@pytest.mark.parametrize("line", ["Traceback (most recent call last):", "[99-99] LMCache", ""])
def test_a_line_without_a_stamp_has_no_instant(line: str) -> None:
    stamped = lmcache("2026-11-30 12:00:10,000")
    assert clock(stamped, stamped).instants(line) == NOTHING


def test_without_marks_there_are_no_instants() -> None:
    found = LogClock([], "a")
    line = lmcache("2026-11-30 12:00:10,000")
    found.set_zone(line, line)
    assert found.instants(line) == NOTHING


def test_a_line_of_another_host_is_moved_onto_our_clock() -> None:
    line = lmcache("2026-11-30 12:00:12,000")
    moved = clock(line, line, host="node1", ahead_ns=2 * S).instants(line)
    assert moved["wall_ns"] == BEGIN_WALL + 10 * S
    assert clock(line, line).instants(line)["wall_ns"] == BEGIN_WALL + 12 * S


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("engine_started", '"text"'),
        ("engine_started", '{"instance": {}}'),
        ("clock_offset", "[]"),
        ("clock_offset", "{}"),
        ("clock_offset", '{"host": [], "wall_ns": "2"}'),
    ],
)
def test_a_mark_of_another_form_moves_no_line(name: str, detail: str) -> None:
    line = lmcache("2026-11-30 12:00:12,000")
    odd = Mark(mono_ns=BEGIN_MONO + 2, wall_ns=BEGIN_WALL + 2, name=name, detail=detail)
    made = LogClock([*marks(), odd], "a")
    made.set_zone(line, line)
    assert made.instants(line)["wall_ns"] == BEGIN_WALL + 12 * S
