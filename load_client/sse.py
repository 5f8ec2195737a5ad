"""Server-sent events out of a response body, after the fact.

A line ends with CRLF, LF or CR. A block of lines ends with an empty line, and is complete when the
last byte of that empty line has arrived; that byte's arrival is the event's. A block that the body
leaves unterminated is no event, as the standard says, with one exception: `data: [DONE]` carries no
token, so a server that forgets the empty line after it is believed.
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


def split_events(body: bytes) -> list[SseEvent]:
    """Every terminated block that holds at least one line, in order."""
    plain = _plain_events(body)
    if plain is not None:
        return plain
    events: list[SseEvent] = []
    lines: list[bytes] = []
    line_start = len(_BYTE_ORDER_MARK) if body.startswith(_BYTE_ORDER_MARK) else 0
    block_start = line_start
    for match in _LINE_END.finditer(body, line_start):
        line = body[line_start : match.start()]
        line_start = match.end()
        if line:
            lines.append(line)
            continue
        if lines:
            events.append(_event(block_start, line_start, lines))
            lines = []
        block_start = line_start
    rest = body[line_start:]
    unterminated = _event(block_start, len(body), [*lines, rest] if rest else lines)
    if unterminated.data == DONE:
        events.append(unterminated)
    return events


def _plain_events(body: bytes) -> list[SseEvent] | None:
    """The events of a body in the form nearly all servers send; None for every other body.

    That form: LF only, every block one `data: ` line and an empty one, nothing after the last.
    """
    if b"\r" in body or not body.endswith(b"\n\n"):
        return None
    events: list[SseEvent] = []
    start = 0
    for block in body[:-2].split(b"\n\n"):
        if not block.startswith(b"data: ") or b"\n" in block:
            return None
        end = start + len(block) + 2
        events.append(SseEvent(start, end, block[6:], ""))
        start = end
    return events


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
