"""Rows of requests.jsonl and chunks.jsonl out of captures: the only place that judges an outcome.

`done_ns` is the arrival of [DONE]; where it never came, of the clean or unclean end of the
connection; None after a timeout. `first_byte_ns` is the first byte of any response, an error's too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any, TypeVar

from .capture import Capture, arrivals, kernel_instants_ns, untrusted_kernel_clock
from .chunk_rows import TOKEN_KINDS, ChunkRows, event_tokens
from .deltas import Columns, no_columns, read_delta
from .http_response import HttpResponse, Timeline, parse_response
from .sse import PLAIN_OVERHEAD_BYTES, plain_events, split_events
from .template import read_deltas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .clock import ClockMap

Row = dict[str, Any]
_Value = TypeVar("_Value")
HTTP_OK = 200
# Enough of an error body to act on; the whole of it stays in the raw stream.
_BODY_EXCERPT_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class _Stream:
    """A parsed response: the events up to [DONE], what each says and when it arrived."""

    response: HttpResponse
    said: Columns = field(default_factory=no_columns)
    sizes: Sequence[int] = ()  # bytes of each event
    instants_ns: Sequence[int] = ()
    surplus: int = 0  # data events after [DONE]

    def first_ns(self, *kinds: str) -> int | None:
        """Arrival of the first event of one of these kinds."""
        said = self.said.kinds
        at = min((said.index(kind) for kind in kinds if kind in said), default=None)
        return None if at is None else self.instants_ns[at]

    def last_ns(self, *kinds: str) -> int | None:
        """Arrival of the last event of one of these kinds."""
        pairs = zip(reversed(self.said.kinds), reversed(self.instants_ns), strict=True)
        return next((ns for kind, ns in pairs if kind in kinds), None)


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
    """One request row and its chunk rows; user stamps without those of the kernel."""
    stamp, instants_ns = arrivals(capture, kernel_ns)
    stream = _read_stream(capture, instants_ns)
    outcome, error = _outcome(capture, stream)
    said = stream.said
    ids = [some for some in said.token_ids if some is not None]
    row: Row = {
        "request_id": capture.request_id,
        "instance": capture.instance,
        "phase": capture.phase,
        "session": capture.session,
        "endpoint": capture.endpoint,
        "outcome": outcome,
        "error": error,
        "http_status": stream.response.status,
        "prompt_tokens_planned": capture.prompt_tokens_planned,
        "prompt_tokens": _last(said.prompt_tokens),
        "output_tokens": _last(said.completion_tokens),
        "finish_reason": _last(said.finish_reasons),
        "server_request_id": _last(said.server_request_ids),
        "output_text": _whole_text(said),
        "output_token_ids": [token for some in ids for token in some] if ids else None,
        "request_bytes": capture.request_bytes,
        "scheduled_ns": capture.scheduled_ns,
        "connected_ns": capture.connected_ns,
        "sent_ns": capture.sent_ns,
        "sent_done_ns": capture.sent_done_ns,
        "first_byte_ns": instants_ns[0] if instants_ns else None,
        "first_content_ns": stream.first_ns(*TOKEN_KINDS),
        "first_answer_ns": stream.first_ns("content"),
        "last_content_ns": stream.last_ns(*TOKEN_KINDS),
        "done_ns": _done_ns(capture, stream, instants_ns),
        "stamp": stamp,
    }
    chunks = (stream.instants_ns, said.kinds, event_tokens(said), stream.sizes)
    return row, ChunkRows(capture.request_id, *chunks)


def _read_stream(capture: Capture, instants_ns: Sequence[int]) -> _Stream:
    response = parse_response(b"".join(capture.reads.data))
    if response.status != HTTP_OK or _not_event_stream(response) is not None:
        return _Stream(response)
    ends, sizes, said = _events(response.body, capture.endpoint)
    surplus = 0
    if "done" in said.kinds and (over := said.kinds.index("done") + 1) < len(ends):
        surplus = sum(kind != "comment" for kind in said.kinds[over:])
        said, ends, sizes = said.up_to(over), ends[:over], sizes[:over]
    read_ends = list(accumulate(map(len, capture.reads.data)))
    timeline = Timeline(response, read_ends, instants_ns)
    arrivals_ns = timeline.body_bytes_ns([end - 1 for end in ends])
    return _Stream(response, said, sizes, arrivals_ns, surplus)


def _events(body: bytes, endpoint: str) -> tuple[list[int], list[int], Columns]:
    """Of each event: where in the body it ends, its size, and what it says."""
    plain = plain_events(body)
    if plain is not None:
        sizes = [len(data) + PLAIN_OVERHEAD_BYTES for data in plain]
        return list(accumulate(sizes)), sizes, read_deltas(plain, endpoint)
    events = split_events(body)
    said = no_columns()
    for event in events:
        said.add(read_delta(event, endpoint))
    return [one.end for one in events], [one.end - one.start for one in events], said


def _not_event_stream(response: HttpResponse) -> str | None:
    coding = (response.header("content-encoding") or "identity").lower()
    if coding != "identity":
        return f"the server compressed the stream ({coding}) although only identity was accepted"
    kind = response.header("content-type")
    if kind is not None and not kind.lower().startswith("text/event-stream"):
        return f"the response is {kind}, not text/event-stream: {_excerpt(response.body)}"
    return None


def _outcome(capture: Capture, stream: _Stream) -> tuple[str, str | None]:
    """`r8.model.RequestOutcome` as text, and the reason; the first rule that applies decides."""
    response = stream.response
    broken = _before_the_stream(capture, response)
    if broken is not None:
        return broken
    if "error" in stream.said.kinds:
        return "stream_error", stream.said.errors[stream.said.kinds.index("error")]
    if stream.last_ns("done") is None:
        return _unfinished(capture, response)
    return _finished(stream)


def _finished(stream: _Stream) -> tuple[str, str | None]:
    """What a stream with its [DONE] came to."""
    if stream.surplus:
        return "stream_error", f"{stream.surplus} data events came after [DONE]"
    if stream.first_ns(*TOKEN_KINDS) is None:
        return "stream_error", "the stream is complete and holds no content"
    if _last(stream.said.completion_tokens) is None:
        return "no_usage", "the stream is complete, but the server sent no usage"
    return "ok", None


def _before_the_stream(capture: Capture, response: HttpResponse) -> tuple[str, str] | None:
    """What went wrong before an event stream began; None when one did."""
    if capture.ended == "connect":
        return "connect_error", capture.ended_detail or "not connected"
    if response.status is None:
        if response.error is not None:
            return "stream_error", f"{response.error}: {_excerpt(_raw_start(capture))}"
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


def _done_ns(capture: Capture, stream: _Stream, instants_ns: Sequence[int]) -> int | None:
    done_ns = stream.first_ns("done")
    if done_ns is not None:
        return done_ns
    if capture.ended == "complete" and instants_ns:
        return instants_ns[-1]
    return capture.ended_ns if capture.ended in {"eof", "reset"} else None


def _whole_text(said: Columns) -> str | None:
    """All text, reasoning first as it came; a half surrogate pair is replaced, being no text."""
    if not any(kind in said.kinds for kind in TOKEN_KINDS):
        return None
    text = "".join(said.texts)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _excerpt(body: bytes) -> str:
    return body.decode("utf-8", "replace")[:_BODY_EXCERPT_CHARACTERS]


def _raw_start(capture: Capture) -> bytes:
    return b"".join(capture.reads.data[:2])


def _last(column: Sequence[_Value | None]) -> _Value | None:
    """The last value that is not None."""
    return next((value for value in reversed(column) if value is not None), None)
