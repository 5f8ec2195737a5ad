"""An HTTP/1.1 response out of the bytes a connection delivered, after the fact.

The whole stream is at hand, so how it was cut into reads cannot change what is understood; only
instants depend on it. Nothing here raises on bad bytes: `error` says what was wrong, and
everything before that point is kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate, repeat
from operator import add, sub
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HTTP_OK = 200
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: ([^\r\n]*))?")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*?)?\r\n", re.DOTALL)
_LENGTH = re.compile("[0-9]{1,15}")
_CRLF, _HEAD_END = b"\r\n", b"\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """Status, headers and decoded body.

    The body came in spans: one begins at the body offset in `starts` and, in the raw stream, at the
    offset at the same place of `raw_starts`; both ascend.
    """

    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    starts: Sequence[int] = ()
    raw_starts: Sequence[int] = ()
    complete: bool = False  # the body ended as its framing says; one that ends by closing never is
    error: str | None = None

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case; None when absent."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key == wanted), None)

    def arrivals_ns(
        self, offsets: Sequence[int], read_ends: Sequence[int], instants_ns: Sequence[int]
    ) -> list[int]:
        """When the body bytes at `offsets` arrived, which must be some that did.

        `read_ends` are the cumulative raw sizes of the reads, `instants_ns` their arrivals.
        """
        # The first stands for no span: `bisect_right` counts from one.
        shifts = [0, *map(sub, self.raw_starts, self.starts)]
        spans = map(bisect_right, repeat(self.starts), offsets)
        raw = map(add, offsets, map(shifts.__getitem__, spans))
        reads = map(bisect_right, repeat(read_ends), raw)
        return list(map(instants_ns.__getitem__, reads))


def parse_response(raw: bytes) -> HttpResponse:
    """What `raw` holds, complete or not; informational (1xx) responses are skipped."""
    begin = 0
    while True:
        end = raw.find(_HEAD_END, begin)
        if end < 0:
            damaged = bool(raw[begin:]) and not _may_become_status(raw[begin:])
            return HttpResponse(error="not an HTTP/1.1 response" if damaged else None)
        lines = raw[begin:end].split(_CRLF)
        match = _STATUS_LINE.fullmatch(lines[0])
        if match is None:
            return HttpResponse(error="not an HTTP/1.1 response")
        status = int(match[1])
        begin = end + len(_HEAD_END)
        if status >= HTTP_OK:  # the first final status of HTTP
            return _with_body(raw, begin, HttpResponse(status=status, headers=_headers(lines[1:])))


def _may_become_status(start: bytes) -> bool:
    prefix = b"HTTP/1."
    return start.startswith(prefix) or prefix.startswith(start)


def _headers(lines: list[bytes]) -> tuple[tuple[str, str], ...]:
    pairs = (line.partition(b":") for line in lines)
    return tuple(
        (name.strip().lower().decode("latin-1"), value.strip().decode("latin-1"))
        for name, _, value in pairs
    )


def _with_body(raw: bytes, begin: int, bare: HttpResponse) -> HttpResponse:
    """The response with the body that begins at `begin`, framed as its headers say."""
    coding = (bare.header("transfer-encoding") or "").lower()
    if coding == "chunked":
        return _chunked(raw, begin, bare)
    if coding:
        return replace(bare, error=f"transfer coding {coding!r} is not understood")
    length = "0" if bare.status in {204, 304} else bare.header("content-length")
    if length is not None and not _LENGTH.fullmatch(length):
        return replace(bare, error=f"content-length {length[:40]!r} is not a size")
    body = raw[begin:] if length is None else raw[begin : begin + int(length)]
    return replace(
        bare,
        body=body,
        starts=(0,) if body else (),
        raw_starts=(begin,) if body else (),
        complete=length is not None and len(body) == int(length),
    )


def _chunked(raw: bytes, begin: int, bare: HttpResponse) -> HttpResponse:
    parts: list[bytes] = []
    raw_starts: list[int] = []
    position, complete, error = begin, False, None
    while (line := _CHUNK_SIZE.match(raw, position)) is not None:
        size, position = int(line[1], 16), line.end()
        if size == 0:
            # Trailer fields end with an empty line; without any, it follows the last chunk.
            complete = raw.find(_HEAD_END, position - len(_CRLF)) >= 0
            break
        part = raw[position : position + size]
        if part:
            parts.append(part)
            raw_starts.append(position)
        position += size
        if not raw.startswith(_CRLF, position):
            if not _CRLF.startswith(raw[position : position + 2]):
                error = f"chunk is longer than its size {size}"
            break
        position += len(_CRLF)
    else:
        text, ended, _ = raw[position:].partition(_CRLF)
        if ended:
            error = f"chunk size {text[:40]!r} is not a size"
    return replace(
        bare,
        body=b"".join(parts),
        starts=list(accumulate(map(len, parts), initial=0))[:-1],
        raw_starts=raw_starts,
        complete=complete,
        error=error,
    )
