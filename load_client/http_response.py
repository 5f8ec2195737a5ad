"""An HTTP/1.1 response out of the bytes a connection delivered, after the fact.

The whole stream is at hand, so how it was cut into reads cannot change what is understood; only
instants depend on it. Nothing here raises on bad bytes: `error` says what was wrong, and
everything before that point is kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import add, sub
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: ([^\r\n]*))?")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_HEAD_END = b"\r\n\r\n"
_CRLF, _ENDING = b"\r\n", b"\r\n0\r\n\r\n"
_SIZES = [b"%x" % size for size in range(2048)]  # of most chunks, made once


class _Body(TypedDict):
    body: bytes
    starts: Sequence[int]
    raw_starts: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """Status, headers and decoded body.

    The body came in spans: one begins at the body offset in `starts` and, in the raw stream, at the
    offset at the same place of `raw_starts`; both ascend.
    """

    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    framing: str | None = None  # "chunked", "length", "close" or "none"
    body: bytes = b""
    starts: Sequence[int] = ()
    raw_starts: Sequence[int] = ()
    complete: bool = False  # the body ended as its framing says; a "close" body never says
    error: str | None = None

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case; None when absent."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key == wanted), None)


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each byte of a response's body arrived: `ends` are cumulative raw sizes of the reads."""

    response: HttpResponse
    ends: Sequence[int]
    instants_ns: Sequence[int]

    def body_bytes_ns(self, offsets: Sequence[int]) -> list[int]:
        """Arrivals of the body bytes at `offsets`, which must be some that arrived."""
        starts = self.response.starts
        # The first stands for no span: `bisect_right` counts from one.
        shifts = [0, *map(sub, self.response.raw_starts, starts)]
        spans = map(bisect_right, repeat(starts), offsets)
        raw = map(add, offsets, map(shifts.__getitem__, spans))
        reads = map(bisect_right, repeat(self.ends), raw)
        return list(map(self.instants_ns.__getitem__, reads))


def parse_response(raw: bytes) -> HttpResponse:
    """What `raw` holds, complete or not; informational (1xx) responses are skipped."""
    begin = 0
    while True:
        end = raw.find(_HEAD_END, begin)
        if end < 0:
            damaged = bool(raw[begin:]) and not _may_become_status(raw[begin:])
            return HttpResponse(error="not an HTTP/1.1 response" if damaged else None)
        lines = raw[begin:end].split(b"\r\n")
        match = _STATUS_LINE.fullmatch(lines[0])
        if match is None:
            return HttpResponse(error="not an HTTP/1.1 response")
        status = int(match[1])
        begin = end + len(_HEAD_END)
        if status >= 200:  # noqa: PLR2004 - the first final status of HTTP
            return _with_body(raw, begin, status, _headers(lines[1:]))


def _may_become_status(start: bytes) -> bool:
    prefix = b"HTTP/1."
    return start.startswith(prefix) or prefix.startswith(start)


def _headers(lines: list[bytes]) -> tuple[tuple[str, str], ...]:
    pairs = (line.partition(b":") for line in lines)
    return tuple(
        (name.strip().lower().decode("latin-1"), value.strip().decode("latin-1"))
        for name, _, value in pairs
    )


def _with_body(
    raw: bytes, begin: int, status: int, headers: tuple[tuple[str, str], ...]
) -> HttpResponse:
    bare = HttpResponse(status=status, headers=headers)
    coding = (bare.header("transfer-encoding") or "").lower()
    if coding == "chunked":
        return _chunked(raw, begin, status, headers)
    if coding:
        return HttpResponse(
            status=status, headers=headers, error=f"transfer coding {coding!r} is not understood"
        )
    length = bare.header("content-length")
    size: int | None = None
    if length is not None:
        if not (length.isascii() and length.isdigit() and len(length) <= 15):  # noqa: PLR2004
            reason = f"content-length {length[:40]!r} is no size"
            return HttpResponse(status=status, headers=headers, error=reason)
        size = int(length)
    if status in {204, 304}:
        size = 0
    body = raw[begin:] if size is None else raw[begin : begin + size]
    return HttpResponse(
        status=status,
        headers=headers,
        framing="close" if size is None else "length",
        body=body,
        starts=(0,) if body else (),
        raw_starts=(begin,) if body else (),
        complete=size is not None and len(body) == size,
    )


def _chunked(
    raw: bytes, begin: int, status: int, headers: tuple[tuple[str, str], ...]
) -> HttpResponse:
    plain = _plain_chunks(raw, begin)
    if plain is not None:
        return HttpResponse(
            status=status, headers=headers, framing="chunked", complete=True, **plain
        )
    parts: list[bytes] = []
    starts: list[int] = []
    raw_starts: list[int] = []
    body_size, position, complete, error = 0, begin, False, None
    while True:
        line_end = raw.find(b"\r\n", position)
        if line_end < 0:
            break
        match = _CHUNK_SIZE.fullmatch(raw, position, line_end)
        if match is None:
            error = f"chunk size {raw[position:line_end][:40]!r} is no size"
            break
        size, position = int(match[1], 16), line_end + 2
        if size == 0:
            complete = _trailer_ended(raw, line_end)
            break
        part = raw[position : position + size]
        if part:
            parts.append(part)
            starts.append(body_size)
            raw_starts.append(position)
            body_size += len(part)
        position += size
        closing = raw[position : position + 2]
        if closing != b"\r\n"[: len(closing)]:
            error = f"chunk is longer than its size {size}"
            break
        position += 2
    return HttpResponse(
        status=status,
        headers=headers,
        framing="chunked",
        body=b"".join(parts),
        starts=starts,
        raw_starts=raw_starts,
        complete=complete,
        error=error,
    )


def _plain_chunks(raw: bytes, begin: int) -> _Body | None:
    """The body of whole chunks as nearly all servers send them; None for any other form.

    That form: sizes in lower case without zeros before them or extensions behind, no CRLF inside a
    chunk, no trailer, nothing after it. The step-by-step way finds the same.
    """
    if not raw.endswith(_ENDING, begin - len(_CRLF)):
        return None
    pieces = raw[begin:].split(_CRLF)[:-3]  # without the last chunk and its two ends
    parts = pieces[1::2]
    lengths = list(map(len, parts))
    if max(lengths, default=0) < len(_SIZES):
        sizes = list(map(_SIZES.__getitem__, lengths))
    else:
        sizes = [b"%x" % length for length in lengths]
    if pieces[::2] != sizes or b"" in parts:  # an empty chunk would be the last
        return None
    starts = [0, *accumulate(lengths)]
    # Before a chunk's bytes stand its own size and CRLF; before those two CRLFs and a size a chunk.
    heads = accumulate([len(size) + 2 * len(_CRLF) for size in sizes], initial=begin - len(_CRLF))
    next(heads)
    del starts[-1]
    return {
        "body": b"".join(parts),
        "starts": starts,
        "raw_starts": list(map(add, starts, heads)),
    }


def _trailer_ended(raw: bytes, last_chunk_line_end: int) -> bool:
    """Trailer fields end with an empty line; without any, that line follows the last chunk."""
    return raw.find(_HEAD_END, last_chunk_line_end) >= 0
