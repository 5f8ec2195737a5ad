"""Templates read what the JSON parser reads: nothing more, nothing less, nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load_client.stream.deltas import Delta, read_delta
from load_client.stream.events import Events, Template, make_template, read_events
from load_client.stream.sse import next_event

PIECES = ("a", " b", "12", "\u00e9", "\U0001f600", '"', "\\", "\n", "text", "}", "~probe~", "\x7f")
TEXTS = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)


def slowly(body: bytes, endpoint: str) -> Events:
    """Every event by the JSON parser."""
    found, at = Events([], [], []), 0
    while (event := next_event(body, at)) is not None:
        at = event.end
        found.ends.append(at)
        found.sizes.append(at - event.start)
        found.deltas.append(read_delta(event, endpoint))
    return found


def block(data: bytes, end: bytes = b"\n") -> bytes:
    return b"data: " + data + 2 * end


def said(event: bytes, endpoint: str = "completions") -> Delta:
    (delta,) = slowly(event, endpoint).deltas
    return delta


def template_of(event: bytes) -> Template:
    template = make_template(event, said(event), "completions")
    assert template is not None
    return template


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


@settings(max_examples=300, derandomize=True)
@given(
    data=st.tuples(FEW, st.lists(st.integers(0, 2), max_size=20)).map(
        lambda pair: [pair[0][i % len(pair[0])] for i in [0, *pair[1]]]
    ),
    line_end=st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"]),
    edits=st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 200), st.binary(max_size=2)), max_size=4
    ),
    endpoint=st.sampled_from(["completions", "chat"]),
)
def test_templates_read_every_event_as_the_json_parser_does(
    data: list[bytes], line_end: bytes, edits: list[tuple[int, int, bytes]], endpoint: str
) -> None:
    blocks = [block(one, line_end) for one in data]
    for which, at, insert in edits:
        damaged = blocks[which % len(blocks)]
        place = at % (len(damaged) + 1)
        blocks[which % len(blocks)] = damaged[:place] + insert + damaged[place + len(insert) :]
    body = b"".join(blocks)
    assert read_events(body, endpoint) == slowly(body, endpoint)


def test_a_line_feed_behind_a_block_that_ends_with_cr_belongs_to_it() -> None:
    event = block(completion("a", None), b"\r")
    assert make_template(event, said(event), "completions") is None
    body = event + event + b"\n" + event
    assert read_events(body, "completions") == slowly(body, "completions")


@pytest.mark.parametrize("ids", [None, [7]])
def test_a_template_is_used_at_all(ids: list[int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes | None] = []

    def counted(event: Any, endpoint: str) -> Delta:
        parsed.append(event.data)
        return read_delta(event, endpoint)

    monkeypatch.setattr("load_client.stream.events.read_delta", counted)
    data = [completion(f" {i}" if i % 100 else "\n", ids and [i + 5]) for i in range(300)]
    body = b"".join(map(block, data))
    assert read_events(body, "completions") == slowly(body, "completions")
    # The first, which needs unescaping, the second with its probe, and the two with a line end.
    assert len(parsed) == 5


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
    event = block(data)
    assert make_template(event, said(event), "completions") is None


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
    first = block(completion("a", [7]))
    nothing = Events([], [], [])
    assert template_of(first).read(block(odd), 0, nothing) == 0
    assert nothing == Events([], [], [])
    body = first + block(odd) + first
    assert read_events(body, "completions") == slowly(body, "completions")


def test_a_template_that_took_escapes_as_they_stand_would_be_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the comparisons above are worth."""
    monkeypatch.setattr("load_client.stream.events._PLAIN", re.compile(rb'[^\x00-\x1f"]+'))
    body = block(completion("a", [1])) + block(completion("\n", [2]))
    assert read_events(body, "completions") != slowly(body, "completions")
