"""Server-sent events out of a response body, after the fact.

A line ends with CRLF, LF or CR. A block of lines ends with an empty line, and is complete when the
last byte of that empty line has arrived; the event arrives with that byte. A block that the body
leaves unterminated is no event, as the standard says, with one exception: `data: [DONE]` carries no
token, so it counts even from a server that forgets the empty line after it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DONE = b"[DONE]"


class SseEvent(NamedTuple):
    """One block: body offsets [start, end), its data lines joined, None without any."""

    start: int
    end: int
    data: bytes | None
    name: str  # the `event:` field, "" when absent


def next_event(body: bytes, at: int) -> SseEvent | None:
    """The first terminated block that begins at `at` or later; `at` is 0 or the end of a block."""
    start = len(_BYTE_ORDER_MARK) if not at and body.startswith(_BYTE_ORDER_MARK) else at
    line_start = start
    lines: list[bytes] = []
    for match in _LINE_END.finditer(body, start):
        line = body[line_start : match.start()]
        line_start = match.end()
        if line:
            lines.append(line)
        elif lines:
            return _event(start, line_start, lines)
        else:
            start = line_start
    rest = body[line_start:]
    unterminated = _event(start, len(body), [*lines, rest] if rest else lines)
    return unterminated if unterminated.data == DONE else None


def _event(start: int, end: int, lines: list[bytes]) -> SseEvent:
    data: list[bytes] = []
    name = ""
    for line in lines:
        key, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if key == b"data":
            data.append(value)
        elif key == b"event":
            name = value.decode("utf-8", "replace")
    return SseEvent(start, end, b"\n".join(data) if data else None, name)
