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
_DATA = b"data: "
DONE = b"[DONE]"
PLAIN_OVERHEAD_BYTES = len(_DATA) + 2


class SseEvent(NamedTuple):
    """One block: body offsets [start, end), its data lines joined, None without any."""

    start: int
    end: int
    data: bytes | None
    name: str  # the `event:` field, "" when absent


def split_events(body: bytes) -> list[SseEvent]:
    """Every terminated block that holds at least one line, in order."""
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


def plain_events(body: bytes) -> list[bytes] | None:
    """The data of each event of a body in the form nearly all servers send; None for other bodies.

    That form: LF only, every event one `data: ` line and an empty one, nothing after the last. An
    event then takes eight bytes more than its data. `split_events` finds the same.
    """
    if not (body.startswith(_DATA) and body.endswith(b"\n\n")) or b"\r" in body:
        return None
    events = body[len(_DATA) : -2].split(b"\n\n" + _DATA)
    # Two line ends an event, and all of them outside its data.
    return events if body.count(b"\n") == 2 * len(events) else None


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
