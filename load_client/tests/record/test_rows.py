from __future__ import annotations

import json
import random
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load_client.record.capture import Capture, Reads
from load_client.record.rows import Row, request_rows

from ..support.reference_parser import Reference
from ..support.reports import REPORTS
from ..support.streams import CASES, DONE, Case, chat, chunked, completion, event, usage

LETTERS = {
    "role": "R", "empty": "E", "content": "C", "reasoning": "A",
    "usage": "U", "done": "D", "comment": "M", "error": "X",
}  # fmt: skip
FIRST_NS = 1_000
STEP_NS = 1_000


def capture(pieces: list[bytes], endpoint: str, ended: str) -> Capture:
    """A response that arrived in these pieces, a microsecond apart."""
    came = [(FIRST_NS + i * STEP_NS, piece) for i, piece in enumerate(pieces) if piece]
    reads = Reads([ns for ns, _ in came], [None] * len(came), [piece for _, piece in came])
    return Capture(
        request_id="r", instance="i", phase="measure", session=0, endpoint=endpoint,
        prompt_tokens_planned=12, output_tokens_planned=3, request_bytes=9, scheduled_ns=1,
        connected_ns=1, sent_ns=2, sent_done_ns=3, ended=ended, ended_ns=9_999_999,
        ended_detail=None, reads=reads,
    )  # fmt: skip


@lru_cache(maxsize=8)
def reference(raw: bytes, endpoint: str) -> Reference:
    """The events of a response, each with the number of the byte it arrived with."""
    parser = Reference(endpoint)
    for number, byte in enumerate(raw):
        parser.feed(byte, number)
    parser.end()
    return parser


def assert_same(pieces: list[bytes], endpoint: str, ended: str = "eof") -> tuple[Row, list[Row]]:
    """The product and the reference understand the same events at the same instants."""
    row, columns = request_rows(capture(pieces, endpoint, ended), None)
    chunks = list(columns)
    expected = reference(b"".join(pieces), endpoint)
    ends = list(accumulate(map(len, pieces)))
    skipped = row["outcome"] in {"http_error", "stream_error"} and not chunks
    if not skipped:
        said = [(chunk["kind"], chunk["arrival_ns"]) for chunk in chunks]
        assert said == [
            (kind, FIRST_NS + STEP_NS * bisect_right(ends, number))
            for kind, _, number in expected.events
        ]
        text = "".join(t for kind, t, _ in expected.events if kind in {"content", "reasoning"})
        assert (row["output_text"] or "") == text.encode("utf-16", "surrogatepass").decode(
            "utf-16", "replace"
        )
    if row["outcome"] == "ok":
        assert expected.finished
    return row, chunks


def assert_writable(pieces: list[bytes], endpoint: str) -> None:
    """Rows are ASCII, and the lines of chunks are those that a JSON encoder makes."""
    row, columns = request_rows(capture(pieces, endpoint, "eof"), None)
    json.dumps(row).encode("ascii")
    assert columns.lines().encode("ascii").splitlines() == [
        json.dumps(chunk, separators=(",", ":")).encode("ascii") for chunk in columns
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_stream_is_understood_as_its_script_says(case: Case) -> None:
    row, chunks = request_rows(capture([case.raw], case.endpoint, case.ended), None)
    assert "".join(LETTERS[chunk["kind"]] for chunk in chunks) == case.kinds
    assert (row["outcome"], row["output_text"], row["output_tokens"]) == (
        case.outcome,
        case.text,
        case.output_tokens,
    )
    assert (row["error"] is None) == (case.outcome == "ok")


@pytest.mark.parametrize(
    "case", [c for c in CASES if len(c.raw) < 3_000], ids=lambda case: case.name
)
def test_every_split_position_equals_the_reference_parser(case: Case) -> None:
    whole, _ = assert_same([case.raw], case.endpoint, case.ended)
    timeless = {key: value for key, value in whole.items() if not key.endswith("_ns")}
    for cut in range(1, len(case.raw)):
        row, _ = assert_same([case.raw[:cut], case.raw[cut:]], case.endpoint, case.ended)
        assert {key: row[key] for key in timeless} == timeless


@pytest.mark.parametrize(
    "case", [c for c in CASES if len(c.raw) < 3_000], ids=lambda case: case.name
)
def test_a_stream_that_arrives_byte_by_byte_equals_the_reference_parser(case: Case) -> None:
    pieces = [bytes([byte]) for byte in case.raw]
    assert_same(pieces, case.endpoint, case.ended)
    assert_writable(pieces, case.endpoint)


@pytest.mark.parametrize("case", CASES[:22], ids=lambda case: case.name)
def test_a_stream_cut_anywhere_is_never_ok_and_never_gains_a_token(case: Case) -> None:
    _whole, chunks = request_rows(capture([case.raw], case.endpoint, "eof"), None)
    done_at = case.raw.rfind(b"[DONE]")
    for cut in range(0, len(case.raw), 3):
        row, some = assert_same([case.raw[:cut]], case.endpoint)
        if cut < done_at:
            assert row["outcome"] in {"cut", "stream_error"}, (cut, row)
            assert row["error"]
        assert [c["kind"] for c in some] == [c["kind"] for c in chunks][: len(some)]


# The reference parser has no tool calls.
REPORTED = [
    Case(one.name, raw, one.endpoint, one.outcome, one.kinds, None)
    for one in REPORTS
    if b"tool_calls" not in (raw := b"".join(piece for _, piece in one.reads()))
]
DAMAGE = given(
    case=st.sampled_from([c for c in (*CASES, *REPORTED) if len(c.raw) < 3_000]),
    edits=st.lists(
        st.tuples(st.integers(0, 2_999), st.binary(max_size=3), st.integers(0, 3)), max_size=3
    ),
    cuts=st.lists(st.integers(0, 2_999), max_size=4),
)


@settings(max_examples=250, derandomize=True)
@DAMAGE
def test_a_damaged_body_equals_the_reference_parser_and_never_raises(
    case: Case, edits: list[tuple[int, bytes, int]], cuts: list[int]
) -> None:
    check_damage(case, edits, cuts)


@pytest.mark.qualify
@settings(max_examples=10_000, derandomize=True)
@DAMAGE
def test_ten_thousand_damaged_bodies_equal_the_reference_parser(
    case: Case, edits: list[tuple[int, bytes, int]], cuts: list[int]
) -> None:
    check_damage(case, edits, cuts)


def check_damage(case: Case, edits: list[tuple[int, bytes, int]], cuts: list[int]) -> None:
    # Heads are another test's matter: what damage makes of a length is a question of taste.
    begin = case.raw.find(b"\r\n\r\n", max(0, case.raw.find(b"Content-Type"))) + 4
    raw = case.raw
    for at, insert, delete in edits:
        at = begin + at % max(1, len(raw) - begin)  # noqa: PLW2901
        raw = raw[:at] + insert + raw[at + delete :]
    edges = [0, *sorted(cut % (len(raw) + 1) for cut in cuts), len(raw)]
    pieces = [raw[a:b] for a, b in pairwise(edges)]
    assert_same(pieces, case.endpoint)
    assert_writable(pieces, case.endpoint)


def test_damage_anywhere_even_in_the_head_never_raises() -> None:
    dice = random.Random(7)  # noqa: S311 - repeatable damage
    for _ in range(1500):
        case = dice.choice(CASES)
        raw = bytearray(case.raw[:3_000])
        for _ in range(dice.randrange(1, 5)):
            if raw:
                raw[dice.randrange(len(raw))] = dice.randrange(256)
        row, _ = request_rows(capture([bytes(raw)], case.endpoint, "eof"), None)
        assert (row["error"] is None) == (row["outcome"] == "ok")


def test_first_content_is_neither_the_role_nor_an_empty_delta() -> None:
    events = [
        chat(role="assistant", content=""), chat(content=""), chat(reasoning_content="hm"),
        chat(content="4"), chat(content="2"), usage() + DONE,
    ]  # fmt: skip
    raw = chunked(*events)
    pieces, rest = [], raw
    for one in events:
        at = rest.index(one) + len(one)
        pieces.append(rest[:at])
        rest = rest[at:]
    row, _ = assert_same([*pieces, rest], "chat")
    ns = [FIRST_NS + i * STEP_NS for i in range(len(pieces))]
    assert row["first_byte_ns"] == ns[0]
    assert row["first_content_ns"] == ns[2]
    assert row["first_answer_ns"] == ns[3]
    assert row["last_content_ns"] == ns[4]
    assert row["done_ns"] == ns[5]


def test_an_event_arrives_with_its_last_byte() -> None:
    raw = chunked(completion("a"), usage(), DONE)
    cut = raw.index(b"\n\n") + 1
    row, chunks = assert_same([raw[:cut], raw[cut:]], "completions")
    assert row["first_content_ns"] == FIRST_NS + STEP_NS == chunks[0]["arrival_ns"]


def test_tokens_of_an_event_come_from_ids_or_from_running_usage_else_are_absent() -> None:
    def counted(total: int) -> bytes:
        return event(
            {"choices": [{"text": "x"}], "usage": {"prompt_tokens": 1, "completion_tokens": total}}
        )

    for raw, expected in (
        (chunked(completion("ab", token_ids=[1, 2]), completion("c", token_ids=[3])), [2, 1]),
        (chunked(counted(1), counted(4)), [1, 3]),
        (chunked(completion("a"), completion("b")), [None, None]),
    ):
        _, chunks = request_rows(capture([raw], "completions", "eof"), None)
        assert [chunk["tokens"] for chunk in chunks] == expected


def test_token_ids_are_absent_unless_the_server_returns_them() -> None:
    with_ids = chunked(
        completion("a", token_ids=[7]), completion("b", token_ids=[8]), usage(), DONE
    )
    row, _ = request_rows(capture([with_ids], "completions", "eof"), None)
    assert row["output_token_ids"] == [7, 8]
    row, _ = request_rows(capture([chunked(completion("a"))], "completions", "eof"), None)
    assert row["output_token_ids"] is None


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (503, "HTTP 503, Retry-After: 7: busy"),
        (429, 'HTTP 429, Retry-After: 2: {"error": {"code": 1}}'),
    ],
)
def test_an_http_error_keeps_status_wait_and_body(status: int, error: str) -> None:
    case = next(case for case in CASES if case.name.startswith(f"HTTP {status}"))
    row, _ = request_rows(capture([case.raw], "completions", "eof"), None)
    assert (row["http_status"], row["error"]) == (status, error)


def test_half_a_surrogate_pair_is_replaced_so_that_rows_stay_text() -> None:
    raw = chunked(b'data: {"choices": [{"text": "a\\ud83d"}]}\n\n', usage(), DONE)
    row, _ = request_rows(capture([raw], "completions", "eof"), None)
    assert row["output_text"] == "a\ufffd"
