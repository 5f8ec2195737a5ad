"""Templates read what the JSON parser reads: nothing more, nothing less, nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load_client.deltas import Columns, Delta, no_columns, read_delta
from load_client.http_response import parse_response
from load_client.sse import SseEvent, plain_events, split_events
from load_client.template import make_template, read_deltas

from .streams import chunk, chunked, head

PIECES = ("a", " b", "12", "\u00e9", "\U0001f600", '"', "\\", "\n", "text", "}", "~probe~", "\x7f")
TEXTS = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)


def slowly(data: bytes, endpoint: str) -> Delta:
    return read_delta(SseEvent(0, len(data), data, ""), endpoint)


def all_slowly(events: list[bytes], endpoint: str) -> Columns:
    said = no_columns()
    for data in events:
        said.add(slowly(data, endpoint))
    return said


def completion(text: str, ids: list[int] | None, name: str = "cmpl-1", **more: Any) -> bytes:
    choice = {"index": 0, "text": text, "finish_reason": None, **more}
    if ids is not None:
        choice["token_ids"] = ids
    return json.dumps({"id": name, "choices": [choice]}, ensure_ascii=False).encode()


def chat(**delta: Any) -> bytes:
    return json.dumps({"id": "c", "choices": [{"index": 0, "delta": delta}]}).encode()


EVENTS = st.one_of(
    st.builds(completion, TEXTS, st.none()),
    st.builds(completion, TEXTS, st.lists(st.integers(0, 1 << 64), max_size=2)),
    st.builds(completion, TEXTS, st.none(), st.sampled_from(["", "cmpl-2"])),
    st.builds(lambda text: chat(content=text), TEXTS),
    st.builds(lambda text: chat(reasoning_content=text), TEXTS),
    st.builds(lambda text: chat(role="assistant", content=text), TEXTS),
    st.sampled_from([b"[DONE]", b"", b"{}", b"{oops", b'{"choices":[7]}', b'{"error":1}']),
)
FEW = st.lists(EVENTS, min_size=1, max_size=3)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(
    events=st.tuples(FEW, st.lists(st.integers(0, 2), max_size=40)).map(
        lambda pair: [pair[0][i % len(pair[0])] for i in [0, *pair[1]]]
    ),
    edits=st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 200), st.binary(max_size=2)), max_size=4
    ),
    endpoint=st.sampled_from(["completions", "chat"]),
)
def test_templates_read_every_event_as_the_json_parser_does(
    events: list[bytes], edits: list[tuple[int, int, bytes]], endpoint: str
) -> None:
    for which, at, insert in edits:
        data = events[which % len(events)]
        place = at % (len(data) + 1)
        insert = insert.replace(b"\n", b"").replace(b"\r", b"")  # noqa: PLW2901
        events[which % len(events)] = data[:place] + insert + data[place + len(insert) :]
    assert read_deltas(events, endpoint) == all_slowly(events, endpoint)


@pytest.mark.parametrize("ids", [None, [7]])
def test_hundreds_of_events_of_one_frame_are_read_as_the_json_parser_does(
    ids: list[int] | None,
) -> None:
    events = [
        completion(f" {i}" if i % 100 else "\n", ids and [i + 5, *ids][: 1 + (i % 250 == 9)])
        for i in range(700)
    ]
    assert read_deltas(events, "completions") == all_slowly(events, "completions")


def test_a_template_is_used_at_all() -> None:
    first, second = completion("a", [5]), completion("bc", [1234])
    template = make_template(first, slowly(first, "completions"), "completions")
    assert template is not None
    assert template.fill(second) == slowly(second, "completions")
    bare = completion("a", None)
    template = make_template(bare, slowly(bare, "completions"), "completions")
    assert template is not None
    assert len(template.texts([completion(f"x{i}", None) for i in range(20)])) == 20


@pytest.mark.parametrize(
    "data",
    [
        completion("text", None),  # stands twice: it is a key, too
        completion("a", None, name="a"),  # and here the id
        completion('q"', None),  # needs unescaping
        completion("a", [5, 6]),  # more than one id
        completion("ab", None).replace(b"ab", b"\\u0061b"),  # written otherwise than it reads
        b'{"choices":[{"text":"a","x":"\\"a\\""}]}'.replace(b'"text":"a"', b'"text":"\\u0061"'),
    ],
)
def test_where_a_text_cannot_be_told_from_its_frame_there_is_no_template(data: bytes) -> None:
    assert make_template(data, slowly(data, "completions"), "completions") is None


@pytest.mark.parametrize(
    "odd",
    [
        completion('a"b', [5]), completion("a\\b", [5]), completion("", [5]),
        completion("a", [5, 6]), completion("a", []), completion("a", None),
        completion("a", [5], name="cmpl-2"), completion("a", [1 << 63]),
        completion("a", [5]).replace(b"[5]", b"[05]"),
        completion("a", [5]).replace(b"[5]", b"[-5]"),
        completion("a", [5]).replace(b"[5]", b"[5.0]"),
        completion("a\tb", [5]).replace(b"\\t", b"\t"),
        completion("aa", [5]).replace(b"aa", b"\xff"),
    ],
)  # fmt: skip
def test_a_template_leaves_what_is_not_plain_to_the_parser(odd: bytes) -> None:
    first = completion("a", [7])
    template = make_template(first, slowly(first, "completions"), "completions")
    assert template is not None
    assert template.fill(odd) is None
    events = [first, odd, first]
    assert read_deltas(events, "completions") == all_slowly(events, "completions")


def test_a_template_that_took_escapes_as_they_stand_would_be_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the comparisons above are worth."""
    monkeypatch.setattr("load_client.template._PLAIN", bytes(range(0x20, 0x100)))
    events = [completion("a", [1]), completion("\n", [2])]
    assert read_deltas(events, "completions") != all_slowly(events, "completions")


BODIES = st.lists(
    st.sampled_from([b"data: a\n\n", b"data: \n\n", b"data: b", b"\n", b"\r", b"x", b"data: c\n"]),
    max_size=6,
).map(b"".join)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(body=BODIES)
def test_the_plain_form_of_events_is_what_the_line_by_line_way_finds(body: bytes) -> None:
    plain = plain_events(body)
    if plain is not None:
        found = split_events(body)
        assert [one.data for one in found] == plain
        assert [one.end - one.start for one in found] == [len(data) + 8 for data in plain]
        assert all(not one.name for one in found)


CHUNKS = st.lists(
    st.sampled_from([chunk(b"abc"), chunk(b"x" * 300), b"3\r\nabc\r\n", b"03\r\nabc\r\n",
                     b"3;e\r\nabc\r\n", b"5\r\na\r\nbc\r\n", b"0\r\n\r\n", b"\r\n", b"C\r\n"]),
    max_size=5,
).map(b"".join)  # fmt: skip


@settings(max_examples=400, deadline=None, derandomize=True)
@given(coded=CHUNKS, end=st.sampled_from([b"0\r\n\r\n", b"", b"0\r\nT: 1\r\n\r\n"]))
def test_the_plain_form_of_chunks_is_what_the_step_by_step_way_finds(
    coded: bytes, end: bytes
) -> None:
    raw = head("200 OK", "Transfer-Encoding: chunked") + coded + end
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("load_client.http_response._plain_chunks", lambda _raw, _begin: None)
        slow = parse_response(raw)
    assert parse_response(raw) == slow


def test_the_plain_form_of_chunks_is_used_at_all() -> None:
    raw = chunked(b"a" * 3, b"b" * 5000)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("load_client.http_response._CHUNK_SIZE", None)  # the other way would break
        assert parse_response(raw).body == b"aaa" + b"b" * 5000
