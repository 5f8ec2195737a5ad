"""Answers of strangers' servers, as public reports describe them: each is one row that says so."""

from __future__ import annotations

import pytest

from load_client.record.capture import Capture, Reads
from load_client.record.marks import HELD_GAP_NS, marks_of
from load_client.record.rows import ChunkRows, Row, request_rows
from load_client.stream.finish import COMPLETE, FAILED, MEANING, TRUNCATED, UNKNOWN, meaning_of

from ..support.reports import REPORTS, ROLE, A, Report, counts, used
from ..support.streams import DONE, chunk, completion, head, usage
from .test_rows import LETTERS, capture, reference

SENT_NS = 1_000_000_000
MS = 1_000_000


def answer(reads: list[tuple[int, bytes]], endpoint: str) -> tuple[Row, ChunkRows]:
    """The rows of an answer that arrived in these pieces, each so many ns after the request."""
    came = Reads([SENT_NS + ns for ns, _ in reads], [None] * len(reads), [one for _, one in reads])
    bare = capture([], endpoint, "eof")
    values = {name: getattr(bare, name) for name in Capture.__slots__}
    return request_rows(Capture(**values | {"reads": came, "sent_ns": SENT_NS}), None)


def rows_of(report: Report) -> tuple[Row, ChunkRows]:
    return answer([(ms * MS, piece) for ms, piece in report.reads()], report.endpoint)


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_an_answer_is_what_its_report_says(report: Report) -> None:
    row, chunks = rows_of(report)
    assert row["outcome"] == report.outcome, row["error"]
    assert "".join(LETTERS[kind] for kind in chunks.kinds) == report.kinds
    assert {name: row[name] for name in report.row} == report.row
    assert (row["error"] is None) == (report.outcome == "ok")
    assert (report.error or "") in (row["error"] or "")
    if report.tokens is not None:
        assert tuple(n for n in chunks.tokens if n is not None) == report.tokens
    if report.ttft_ms is not None:
        assert row["first_content_ns"] - SENT_NS == report.ttft_ms * MS
    assert marks_of(row, chunks) == report.marks


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_the_reference_parser_understands_the_same_events(report: Report) -> None:
    if report.kinds and not any(b"tool_calls" in one for _, one in report.reads()):
        expected = reference(b"".join(one for _, one in report.reads()), report.endpoint)
        assert "".join(LETTERS[kind] for kind, _, _ in expected.events) == report.kinds


def test_every_report_names_its_source_and_stands_once() -> None:
    assert all(report.source for report in REPORTS)
    assert len({report.name for report in REPORTS}) == len(REPORTS)


@pytest.mark.parametrize("reason", [*MEANING, "made-up", "STOP"])
def test_a_finish_reason_decides_by_the_table_alone(reason: str) -> None:
    events = (completion("a"), completion("b", finish_reason=reason), usage(), DONE)
    raw = head("200 OK", "Connection: close") + b"".join(events)
    row, _ = answer([(5 * MS, raw)], "completions")
    outcomes = {COMPLETE: "ok", TRUNCATED: "ok", FAILED: "finish_failed", UNKNOWN: "finish_unknown"}
    assert row["outcome"] == outcomes[str(meaning_of(reason))]
    assert row["finish_reason"] == reason


def test_no_finish_reason_has_no_meaning() -> None:
    assert meaning_of(None) is None


def held(gap_ns: int, events: int) -> tuple[str, ...]:
    pieces = [(i * gap_ns, chunk(A)) for i in range(events)]
    first = head("200 OK", "Transfer-Encoding: chunked") + chunk(ROLE)
    last = chunk(counts(used(32, events))) + chunk(DONE) + b"0\r\n\r\n"
    row, chunks = answer([(0, first), *pieces, (events * gap_ns, last)], "chat")
    assert row["outcome"] == "ok"
    return marks_of(row, chunks)


@pytest.mark.parametrize("events", [2, 3, 64])
def test_an_emptied_buffer_is_told_from_a_fast_engine(events: int) -> None:
    assert held(HELD_GAP_NS - 1, events) == ("held",)
    assert held(HELD_GAP_NS, events) == ()
