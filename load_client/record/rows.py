"""Rows of requests.jsonl and chunks.jsonl, derived from captures; outcomes are decided here only.

`done_ns` is the arrival of [DONE]; where it never came, of the clean or unclean end of the
connection; None after a timeout. `first_byte_ns` is the first byte of any response, an error's too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any, TypeVar

from ..stream.deltas import TOKEN_KINDS, Delta
from ..stream.events import read_events
from ..stream.finish import FAILED, UNKNOWN, meaning_of
from ..stream.http_response import HTTP_OK, HttpResponse, parse_response
from .capture import Capture, arrivals, kernel_instants_ns, untrusted_kernel_clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..clock import ClockMap

Row = dict[str, Any]
_Value = TypeVar("_Value")
# Enough of an error body to act on; the whole of it stays in the raw stream.
_BODY_EXCERPT_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """The rows of chunks.jsonl of one request, as columns: one object instead of one a chunk."""

    request_id: str
    arrivals_ns: Sequence[int] = ()
    kinds: Sequence[str] = ()
    tokens: Sequence[int | None] = ()  # None where the server did not say
    event_bytes: Sequence[int] = ()

    def __iter__(self) -> Iterator[Row]:
        """Row by row."""
        columns = zip(self.arrivals_ns, self.kinds, self.tokens, self.event_bytes, strict=True)
        for seq, (arrival_ns, kind, tokens, event_bytes) in enumerate(columns):
            yield {
                "request_id": self.request_id,
                "seq": seq,
                "arrival_ns": arrival_ns,
                "kind": kind,
                "tokens": tokens,
                "event_bytes": event_bytes,
            }

    def lines(self) -> str:
        """The same rows as JSON lines, in a sixth of the time a JSON encoder takes for them."""
        begin = f'{{"request_id":{json.dumps(self.request_id)},"seq":'
        columns = zip(self.arrivals_ns, self.kinds, self.tokens, self.event_bytes, strict=True)
        return "".join(
            [
                f'{begin}{seq},"arrival_ns":{arrival_ns},"kind":"{kind}","tokens":'
                f'{"null" if tokens is None else tokens},"event_bytes":{event_bytes}}}\n'
                for seq, (arrival_ns, kind, tokens, event_bytes) in enumerate(columns)
            ]
        )

    def first_ns(self, *kinds: str) -> int | None:
        """Arrival of the first event of one of these kinds."""
        at = min((self.kinds.index(kind) for kind in kinds if kind in self.kinds), default=None)
        return None if at is None else self.arrivals_ns[at]

    def last_ns(self, *kinds: str) -> int | None:
        """Arrival of the last event of one of these kinds."""
        pairs = zip(reversed(self.kinds), reversed(self.arrivals_ns), strict=True)
        return next((ns for kind, ns in pairs if kind in kinds), None)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A parsed response: what its events say up to [DONE], and their chunk rows."""

    response: HttpResponse
    chunks: ChunkRows
    deltas: Sequence[Delta] = ()
    surplus: int = 0  # data events after [DONE]
    finish_reason: str | None = None  # the last that was given


def burst_rows(
    captures: Sequence[Capture], clock: ClockMap
) -> tuple[list[Row], list[ChunkRows], str | None]:
    """Request rows, their chunk rows, and why kernel stamps were not used (None when they were)."""
    kernel_ns = [kernel_instants_ns(capture, clock) for capture in captures]
    distrust = untrusted_kernel_clock(captures, clock, kernel_ns)
    trusted_ns = repeat(None) if distrust is not None else kernel_ns
    pairs = list(map(request_rows, captures, trusted_ns))
    return [row for row, _ in pairs], [chunks for _, chunks in pairs], distrust


def request_rows(capture: Capture, kernel_ns: list[int] | None) -> tuple[Row, ChunkRows]:
    """One request row and its chunk rows; `kernel_ns` are trusted instants, else user stamps."""
    stamp, instants_ns = arrivals(capture, kernel_ns)
    answer = _read_answer(capture, instants_ns)
    chunks, deltas = answer.chunks, answer.deltas
    outcome, error = _outcome(capture, answer)
    ids = [one.token_ids for one in deltas if one.token_ids is not None]
    backwards = deltas[::-1]
    row: Row = {
        "request_id": capture.request_id,
        "instance": capture.instance,
        "phase": capture.phase,
        "session": capture.session,
        "endpoint": capture.endpoint,
        "outcome": outcome,
        "error": error,
        "http_status": answer.response.status,
        "prompt_tokens_planned": capture.prompt_tokens_planned,
        "prompt_tokens": _known(one.prompt_tokens for one in backwards),
        "output_tokens": _known(one.completion_tokens for one in backwards),
        "finish_reason": answer.finish_reason,
        "server_request_id": _known(one.server_request_id for one in backwards),
        "output_text": _whole_text(answer),
        "output_token_ids": [token for some in ids for token in some] if ids else None,
        "request_bytes": capture.request_bytes,
        "scheduled_ns": capture.scheduled_ns,
        "connected_ns": capture.connected_ns,
        "sent_ns": capture.sent_ns,
        "sent_done_ns": capture.sent_done_ns,
        "first_byte_ns": instants_ns[0] if instants_ns else None,
        "first_content_ns": chunks.first_ns(*TOKEN_KINDS),
        "first_answer_ns": chunks.first_ns("content"),
        "last_content_ns": chunks.last_ns(*TOKEN_KINDS),
        "done_ns": _done_ns(capture, chunks, instants_ns),
        "stamp": stamp,
    }
    return row, chunks


def _read_answer(capture: Capture, instants_ns: Sequence[int]) -> _Answer:
    data = capture.reads.data
    response = parse_response(b"".join(data))
    if response.status != HTTP_OK or _not_event_stream(response) is not None:
        return _Answer(response, ChunkRows(capture.request_id))
    ends, sizes, deltas = read_events(response.body, capture.endpoint)
    kinds, surplus = [one.kind for one in deltas], 0
    if "done" in kinds and (over := kinds.index("done") + 1) < len(kinds):
        # Gateways add a second [DONE] to that of the engine.
        surplus = sum(kind not in {"comment", "done"} for kind in kinds[over:])
        del ends[over:], sizes[over:], deltas[over:], kinds[over:]
    read_ends = list(accumulate(map(len, data)))
    arrivals_ns = response.arrivals_ns([end - 1 for end in ends], read_ends, instants_ns)
    rows = ChunkRows(capture.request_id, arrivals_ns, kinds, _tokens(deltas), sizes)
    finish_reason = _known(one.finish_reason for one in reversed(deltas))
    return _Answer(response, rows, deltas, surplus, finish_reason)


def _tokens(deltas: Iterable[Delta]) -> list[int | None]:
    """Tokens of each event: from its ids, else from how far its running usage has grown."""
    tokens: list[int | None] = []
    counted = 0
    for delta in deltas:
        new: int | None = None
        if delta.token_ids is not None:
            new = len(delta.token_ids)
        elif delta.completion_tokens is not None and delta.kind != "usage":
            new = max(0, delta.completion_tokens - counted)
        if delta.completion_tokens is not None:
            counted = delta.completion_tokens
        tokens.append(new)
    return tokens


def _not_event_stream(response: HttpResponse) -> str | None:
    coding = (response.header("content-encoding") or "identity").lower()
    if coding != "identity":
        return f"the server compressed the stream ({coding}) although only identity was accepted"
    kind = response.header("content-type")
    if kind is not None and not kind.lower().startswith("text/event-stream"):
        return f"the response is {kind}, not text/event-stream: {_excerpt(response.body)}"
    return None


def _outcome(capture: Capture, answer: _Answer) -> tuple[str, str | None]:
    """The request's outcome and the reason; the first rule that applies decides."""
    response = answer.response
    broken = _before_the_stream(capture, response)
    if broken is not None:
        return broken
    error = next((one.error for one in answer.deltas if one.kind == "error"), None)
    if error is not None:
        return "stream_error", error
    if "done" not in answer.chunks.kinds:
        return _unfinished(capture, response)
    return _finished(answer)


def _finished(answer: _Answer) -> tuple[str, str | None]:
    """The outcome of a stream that holds its [DONE]."""
    if answer.surplus:
        return "stream_error", f"{answer.surplus} data events came after [DONE]"
    reason = answer.finish_reason
    meaning = meaning_of(reason)
    if meaning == FAILED:
        return "finish_failed", f"the server gave the answer up: finish_reason {reason!r}"
    if meaning == UNKNOWN:
        return "finish_unknown", f"finish_reason {reason!r} is no word of a known server"
    if answer.chunks.first_ns(*TOKEN_KINDS) is None:
        return "stream_error", "the stream is complete and holds no content"
    if all(one.completion_tokens is None for one in answer.deltas):
        return "no_usage", "the stream is complete, but the server sent no usage"
    return "ok", None


def _before_the_stream(capture: Capture, response: HttpResponse) -> tuple[str, str] | None:
    """What went wrong before an event stream began; None when one did."""
    if capture.ended == "connect":
        return "connect_error", capture.ended_detail or "not connected"
    if response.status is None:
        if response.error is not None:
            return "stream_error", f"{response.error}: {_excerpt(b''.join(capture.reads.data[:2]))}"
        return _unfinished(capture, response)
    if response.status != HTTP_OK:
        return "http_error", _http_error(response)
    wrong = _not_event_stream(response)
    return None if wrong is None else ("stream_error", wrong)


def _unfinished(capture: Capture, response: HttpResponse) -> tuple[str, str]:
    seen = f"after {len(response.body)} body bytes" if response.status else _nothing(capture)
    if response.error is not None:
        return "stream_error", f"{response.error} ({seen})"
    if response.complete or capture.ended == "complete":
        return "cut", f"the body ended cleanly without [DONE], {seen}"
    detail = f": {capture.ended_detail}" if capture.ended_detail else ""
    if capture.ended == "timeout":
        return "timeout", f"no [DONE] in time, {seen}{detail}"
    if capture.ended == "interrupted":
        return "cut", f"the client was stopped, {seen}{detail}"
    verb = "closed" if capture.ended == "eof" else "reset"
    return "cut", f"the server {verb} the connection without [DONE], {seen}{detail}"


def _nothing(capture: Capture) -> str:
    return "inside the response head" if capture.reads.data else "before any response byte"


def _http_error(response: HttpResponse) -> str:
    retry = response.header("retry-after")
    wait = f", Retry-After: {retry}" if retry is not None else ""
    return f"HTTP {response.status}{wait}: {_excerpt(response.body)}"


def _done_ns(capture: Capture, chunks: ChunkRows, instants_ns: Sequence[int]) -> int | None:
    done_ns = chunks.first_ns("done")
    if done_ns is not None:
        return done_ns
    if capture.ended == "complete" and instants_ns:
        return instants_ns[-1]
    return capture.ended_ns if capture.ended in {"eof", "reset"} else None


def _whole_text(answer: _Answer) -> str | None:
    """All text, reasoning first as it came; a half surrogate pair is replaced, being no text."""
    if answer.chunks.first_ns(*TOKEN_KINDS) is None:
        return None
    text = "".join([one.text for one in answer.deltas])
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _excerpt(body: bytes) -> str:
    return body.decode("utf-8", "replace")[:_BODY_EXCERPT_CHARACTERS]


def _known(values: Iterable[_Value | None]) -> _Value | None:
    """The first value that is not None."""
    return next((value for value in values if value is not None), None)
