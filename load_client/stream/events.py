"""Every event of a response body: where it ends, its size, and what it says.

Most events of one stream differ in nothing but a text and a token id. A template is made from an
event that the JSON parser has read: the bytes of its text are exchanged for others, the result is
parsed again, and only if nothing but the text (and the token id) came out different is the template
used. Its bytes then stand around a whole JSON string (and a whole number), and any other string in
that place that needs no unescaping gives the same event with that text. Everything else is left to
the parser, which would take four times as long for all of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .deltas import TOKEN_KINDS, Delta, read_delta
from .sse import next_event

# What a JSON string holds without escapes; bytes from 0x80 on are checked as UTF-8 afterwards.
_PLAIN = re.compile(rb'[^\x00-\x1f"\\]+')
_ID = re.compile(rb"[1-9][0-9]{0,17}")  # below 2**63, whatever the digits
# A stream has few frames (reasoning, answer, end); one whose every event differs is left to JSON.
_MAKES = 8
_PROBE_TEXT, _PROBE_ID = "~probe~", 987654321


class Events(NamedTuple):
    """The events of one body in order, as columns."""

    ends: list[int]  # offset in the body behind each
    sizes: list[int]  # bytes
    deltas: list[Delta]


class Template(NamedTuple):
    """The bytes around an event's text; with `middle`, a token id stands between that and `end`."""

    begin: bytes
    middle: bytes
    end: bytes
    sample: Delta  # what such an event says, apart from text and id

    def read(self, body: bytes, at: int, events: Events) -> int:
        """Append the events from `at` on that fit; returns the offset behind the last of them."""
        begin, middle, end, sample = self
        ends, sizes, deltas = events
        kind, ids, rest = sample.kind, sample.token_ids, sample[3:]
        while body.startswith(begin, at):
            text = _PLAIN.match(body, at + len(begin))
            if text is None:
                break
            behind = text.end()
            if middle:
                number = _ID.match(body, behind + len(middle))
                if number is None or not body.startswith(middle, behind):
                    break
                behind, ids = number.end(), (int(number[0]),)
            if not body.startswith(end, behind):
                break
            try:
                deltas.append(Delta(kind, text[0].decode(), ids, *rest))
            except UnicodeDecodeError:
                break
            behind += len(end)
            ends.append(behind)
            sizes.append(behind - at)
            at = behind
        return at


def read_events(body: bytes, endpoint: str) -> Events:
    """The events of a `completions` or `chat` stream, as the parser alone would find them."""
    events = Events([], [], [])
    template: Template | None = None
    at, makes_left = 0, _MAKES
    while True:
        if template is not None:
            at = template.read(body, at, events)
        event = next_event(body, at)
        if event is None:
            return events
        at, delta = event.end, read_delta(event, endpoint)
        events.ends.append(at)
        events.sizes.append(at - event.start)
        events.deltas.append(delta)
        if makes_left and delta.kind in TOKEN_KINDS:
            made = make_template(body[event.start : at], delta, endpoint)
            if made is not None:
                template, makes_left = made, makes_left - 1


def make_template(event: bytes, delta: Delta, endpoint: str) -> Template | None:
    """The template of an event that says `delta`; None where its text cannot be told apart."""
    text = delta.text.encode("utf-8", "surrogatepass")
    begin, quoted, end = event.partition(b'"%s"' % text)
    # After a CR that ends a block, an LF may still belong to it.
    if not (quoted and _PLAIN.fullmatch(text)) or quoted in end or event.endswith(b"\r"):
        return None
    begin, middle, end = begin + b'"', b"", b'"' + end
    probe = begin + _PROBE_TEXT.encode()
    if delta.token_ids is not None:
        if len(delta.token_ids) != 1:
            return None
        middle, number, end = end.partition(b"[%d]" % delta.token_ids[0])
        if not number:
            return None
        middle, end = middle + b"[", b"]" + end
        probe += middle + str(_PROBE_ID).encode()
    probed = next_event(probe + end, 0)
    wanted = delta._replace(text=_PROBE_TEXT, token_ids=(_PROBE_ID,) if middle else None)
    if probed is None or probed.end != len(probe + end) or read_delta(probed, endpoint) != wanted:
        return None
    return Template(begin, middle, end, delta)
