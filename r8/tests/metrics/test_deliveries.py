"""How answers were handed over: what the view `deliveries` shows of one that came at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.evidence.database import connect
from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.tests.support.run_factory import Row, SyntheticRun, build_partial, edit_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

S = 1_000_000_000
PLAIN = {
    "output_tokens": 5,
    "content_events": 5,
    "content_instants": 5,
    "content_span_ns": 4 * S // 20,
    "packed_events": 0,
    "event_tokens": 5,
}


def delivery(root: Path, **changes: Callable[[list[Row]], list[Row]]) -> dict[str, Any]:
    """The row of the first measured request of a synthetic run, changed before it was sealed."""
    partial = build_partial(root, SyntheticRun())
    for table, change in changes.items():
        edit_rows(partial, table, change)
    evidence = read_run(finalise(partial, complete=True))
    with connect([evidence]) as connection:
        found = connection.execute(
            f"SELECT {', '.join(PLAIN)} FROM deliveries "  # noqa: S608 - names of our own
            "WHERE phase = 'measure' ORDER BY request_id"
        ).fetchall()
    return dict(zip(PLAIN, found[0], strict=True))


def test_a_paced_answer_has_an_instant_for_every_event(tmp_path: Path) -> None:
    assert delivery(tmp_path) == PLAIN


def _at_once(rows: list[Row]) -> list[Row]:
    return [{**row, "arrival_ns": row["arrival_ns"] // S * S} for row in rows]


def test_an_answer_that_came_at_once_has_one_instant(tmp_path: Path) -> None:
    ends = delivery(
        tmp_path,
        chunks=_at_once,
        requests=lambda rows: [{**row, "last_content_ns": row["first_content_ns"]} for row in rows],
    )
    assert ends == PLAIN | {"content_instants": 1, "content_span_ns": 0}


def test_packed_events_and_tokens_beyond_the_usage_are_counted(tmp_path: Path) -> None:
    found = delivery(
        tmp_path,
        chunks=lambda rows: [{**row, "tokens": 1 + row["seq"] % 2} for row in rows],
    )
    # Of the five content events two are packed; the events after them carry tokens, too.
    assert (found["packed_events"], found["event_tokens"]) == (2, 10)
    assert found["event_tokens"] > found["output_tokens"]


def test_where_no_event_says_its_tokens_they_are_absent(tmp_path: Path) -> None:
    found = delivery(tmp_path, chunks=lambda rows: [{**row, "tokens": None} for row in rows])
    assert found == PLAIN | {"event_tokens": None}


def test_a_request_without_events_has_a_row(tmp_path: Path) -> None:
    found = delivery(tmp_path, chunks=lambda _: [])
    assert (found["content_events"], found["content_instants"]) == (0, 0)
