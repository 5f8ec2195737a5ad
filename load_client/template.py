"""Events of one stream that differ in nothing but a text and a token id, read without JSON.

A template is made from an event that was parsed as JSON. The bytes of its text are exchanged for
others, the result is parsed again, and only if nothing but the text (and the token id) came out
different is the template believed: those bytes are then a whole JSON string (and a whole number),
and any other string in the same place, if it needs no unescaping, gives the same event with that
text. Everything else is left to the parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .deltas import Columns, Delta, no_columns, read_delta
from .sse import SseEvent

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a JSON string holds without escapes; bytes from 0x80 on are checked as UTF-8 afterwards.
_PLAIN = bytes(byte for byte in range(0x20, 0x100) if byte not in b'"\\')
_PLAIN_LINES = _PLAIN + b"\n"
# Events looked at in one stroke. One that takes fewer than the second figure costs more than taking
# event by event, which the next so many then are.
_STROKE, _WORTH_IT = 256, 16
# A stream has few frames (reasoning, answer, end); one whose every event differs is left to JSON.
_MAKES = 8
_PROBE_TEXT, _PROBE_ID = "~probe~", 987654321
_ID_DIGITS = 18  # below 2**63, whatever the digits
_TEXT_KINDS = {"content", "reasoning"}


class Template(NamedTuple):
    """The bytes around a text; with `middle`, a token id stands between that and `end`."""

    begin: bytes
    middle: bytes
    end: bytes
    sample: Delta

    def fill(self, data: bytes) -> Delta | None:
        """What `data` says; None where this template does not fit."""
        begin, middle, end, sample = self
        if not self._frames(data):
            return None
        text = data[len(begin) : -len(end)]
        ids = sample.token_ids
        if middle:
            text, _, number = text.partition(middle)
            if not number.isdigit() or number[0] == _ZERO or len(number) > _ID_DIGITS:
                return None
            ids = (int(number),)
        if not text or text.translate(None, _PLAIN):
            return None
        try:
            return Delta(sample.kind, text.decode(), ids, *sample[3:])
        except UnicodeDecodeError:
            return None

    def _frames(self, data: bytes) -> bool:
        return data.startswith(self.begin) and data.endswith(self.end)

    def texts(self, events: Sequence[bytes]) -> list[str]:
        """The texts of the first of `events`, as many as fit and are found at one stroke."""
        begin, middle, end, _ = self
        if middle:
            return []  # `fill` is as fast
        count = len(events)
        while count and not self._frames(events[count - 1]):
            count -= 1  # what follows the texts: usage and [DONE]
        if not count:
            return []
        texts = [data[len(begin) : -len(end)] for data in events[:count]]
        # No event holds a line end, so that equal wholes have equal parts.
        together = b"\n".join(texts)
        if begin + together.replace(b"\n", end + b"\n" + begin) + end != b"\n".join(events[:count]):
            odd = (i for i, data in enumerate(events) if not self._frames(data))
            texts = texts[: next(odd, count)]
            together = b"\n".join(texts)
        if b"" in texts or together.translate(None, _PLAIN_LINES):
            return []
        try:
            return together.decode().split("\n") if texts else []
        except UnicodeDecodeError:
            return []


_ZERO = ord("0")


def read_deltas(events: Sequence[bytes], endpoint: str) -> Columns:
    """`read_delta` of unnamed events with this data, in order; the same for every input.

    No event may hold a line end.
    """
    said = no_columns()
    template: Template | None = None
    makes_left, stroke_at = _MAKES, 0
    while (at := len(said.kinds)) < len(events):
        if template is not None and at >= stroke_at:
            many = template.texts(events[at : at + _STROKE])
            said.add_alike(template.sample, many)
            stroke_at = at + (len(many) if len(many) >= _WORTH_IT else _STROKE)
            continue
        data = events[at]
        delta = template.fill(data) if template is not None else None
        if delta is None:
            delta = _read(data, endpoint)
            if makes_left and delta.kind in _TEXT_KINDS:
                made = make_template(data, delta, endpoint)
                if made is not None:
                    template, makes_left, stroke_at = made, makes_left - 1, at + 1
        said.add(delta)
    return said


def make_template(data: bytes, delta: Delta, endpoint: str) -> Template | None:
    """The template `data` gives, whose delta is `delta`; None where its text stands twice."""
    text = delta.text.encode("utf-8", "surrogatepass")
    begin, quoted, end = data.partition(b'"%s"' % text)
    if not quoted or not text or text.translate(None, _PLAIN) or b'"%s"' % text in end:
        return None
    begin, end, middle = begin + b'"', b'"' + end, b""
    if delta.token_ids is not None:
        if len(delta.token_ids) != 1:
            return None
        middle, opened, end = end.partition(b"[%d]" % delta.token_ids[0])
        if not opened:
            return None
        middle, end = middle + b"[", b"]" + end
    probe = begin + _PROBE_TEXT.encode()
    probe += middle + str(_PROBE_ID).encode() if middle else b""
    probed = _read(probe + end, endpoint)
    wanted = delta._replace(text=_PROBE_TEXT, token_ids=(_PROBE_ID,) if middle else None)
    return Template(begin, middle, end, delta) if probed == wanted else None


def _read(data: bytes, endpoint: str) -> Delta:
    return read_delta(SseEvent(0, len(data), data, ""), endpoint)
