"""What one event of a completion stream says: its kind, text, tokens and usage.

    role       announces who speaks, no text
    empty      no text and no token
    content    text, or token ids where the server returns them (half a UTF-8 character is a token
               without text); tool calls and refusals too
    reasoning  `reasoning_content` or `reasoning`, and no answer text beside it
    usage      token counts and no choice
    done       [DONE]
    comment    a block without data: keep-alives
    error      an error object, or data that is not what the protocol promises

A role or empty event is never a token.
"""

from __future__ import annotations

import json
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from .sse import DONE, SseEvent

if TYPE_CHECKING:
    from collections.abc import Sequence

# Rows are stored as 64-bit integers; a larger count is damage.
_INT64_END = 1 << 63
_EXCERPT_CHARACTERS = 300


# Thousands of events a second are read after a burst: a named tuple is made five times as fast as
# a frozen dataclass, and a decoder of our own skips the guesses of json.loads about its input.
_DECODER = json.JSONDecoder()


class Delta(NamedTuple):
    """One event, understood. `token_ids` and counts are None where the server does not say."""

    kind: str
    text: str = ""
    token_ids: tuple[int, ...] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None
    server_request_id: str | None = None
    error: str | None = None


class Columns(NamedTuple):
    """Events by what they say: that of one event stands at the same place of every column.

    Whoever looks at one figure of every event then does so at once.
    """

    kinds: list[str]
    texts: list[str]
    token_ids: list[tuple[int, ...] | None]
    prompt_tokens: list[int | None]
    completion_tokens: list[int | None]
    finish_reasons: list[str | None]
    server_request_ids: list[str | None]
    errors: list[str | None]

    def add(self, delta: Delta) -> None:
        """One event more."""
        for column, value in zip(cast("Any", self), delta, strict=True):
            column.append(value)

    def add_alike(self, sample: Delta, texts: Sequence[str]) -> None:
        """Events more, which say what `sample` says, each with its own text."""
        count = len(texts)
        for column, value in zip(cast("Any", self), sample, strict=True):
            column.extend(texts if column is self.texts else repeat(value, count))

    def up_to(self, count: int) -> Columns:
        """The first `count` events."""
        return Columns(*[column[:count] for column in cast("Any", self)])


def no_columns() -> Columns:
    """Columns of no event, to be added to."""
    return Columns([], [], [], [], [], [], [], [])


_NO_USAGE = (None, None)


class _MalformedError(ValueError):
    pass


def read_delta(event: SseEvent, endpoint: str) -> Delta:
    """Understand one event of a `completions` or `chat` stream; never raises on bad data."""
    if event.data is None:
        return Delta(kind="comment")
    if event.data.strip() == DONE:
        return Delta(kind="done")
    try:
        return _understand(_decoded(event.data.decode("utf-8")), event, endpoint)
    except (ValueError, RecursionError) as damage:
        excerpt = event.data[:_EXCERPT_CHARACTERS].decode("utf-8", "replace")
        return Delta(kind="error", error=f"event not understood ({damage}): {excerpt}")


def _decoded(text: str) -> Any:
    """`json.loads`, without its search for white space where there is none."""
    if text.startswith("{") and text.endswith("}"):
        message, end = _DECODER.raw_decode(text)
        if end == len(text):
            return message
    return _DECODER.decode(text)


def _understand(message: Any, event: SseEvent, endpoint: str) -> Delta:
    _expect(isinstance(message, dict), "not an object")
    if event.name == "error" or message.get("error") or message.get("object") == "error":
        return Delta(kind="error", error=f"error event: {json.dumps(message)[:2000]}")
    prompt_tokens, completion_tokens = _usage(message.get("usage"))
    choices = message.get("choices")
    choices = [] if choices is None else choices
    _expect(isinstance(choices, list), "choices is not a list")
    server_request_id = _text(message.get("id"), "id") or None
    if len(choices) == 1:
        only = _choice(choices[0], endpoint)
        return only._replace(
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            server_request_id=server_request_id,
        )
    parts = [_choice(choice, endpoint) for choice in choices]
    kinds = {part.kind for part in parts}
    ranked = ("content", "reasoning", "role", "empty")
    fallback = "usage" if completion_tokens is not None else "empty"
    ids = [part.token_ids for part in parts if part.token_ids is not None]
    return Delta(
        kind=next((kind for kind in ranked if kind in kinds), fallback),
        text="".join(part.text for part in parts),
        token_ids=tuple(token for some in ids for token in some) if ids else None,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        finish_reason=next((p.finish_reason for p in parts if p.finish_reason), None),
        server_request_id=server_request_id,
    )


def _choice(choice: Any, endpoint: str) -> Delta:
    _expect(isinstance(choice, dict), "choice is not an object")
    finish = _text(choice.get("finish_reason"), "finish_reason") or None
    ids = _token_ids(choice.get("token_ids"))
    if endpoint == "completions":
        text = _text(choice.get("text"), "text")
        kind = "content" if text or ids else "empty"
        return Delta(kind=kind, text=text, token_ids=ids, finish_reason=finish)
    delta = choice.get("delta")
    delta = {} if delta is None else delta
    _expect(isinstance(delta, dict), "delta is not an object")
    answer = _text(delta.get("content"), "content") + _text(delta.get("refusal"), "refusal")
    thought = _text(delta.get("reasoning_content"), "reasoning_content") or _text(
        delta.get("reasoning"), "reasoning"
    )
    # A token without text belongs to the answer only where the server put it into `content`; one
    # that opens or closes the reasoning comes in a delta without that key.
    silent_token = bool(ids) and isinstance(delta.get("content"), str)
    if answer or delta.get("tool_calls") or (silent_token and not thought):
        kind = "content"
    elif thought:
        kind = "reasoning"
    else:
        kind = "role" if delta.get("role") else "empty"
    return Delta(kind=kind, text=thought + answer, token_ids=ids, finish_reason=finish)


def _usage(usage: Any) -> tuple[int | None, int | None]:
    if usage is None:
        return _NO_USAGE
    _expect(isinstance(usage, dict), "usage is not an object")
    return (
        _count(usage.get("prompt_tokens"), "prompt_tokens"),
        _count(usage.get("completion_tokens"), "completion_tokens"),
    )


def _count(value: Any, name: str) -> int:
    number = isinstance(value, int) and not isinstance(value, bool)
    _expect(number and 0 <= value < _INT64_END, f"usage.{name} is no count")
    return int(value)


def _token_ids(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    _expect(isinstance(value, list), "token_ids is not a list")
    return tuple(_count(token, "token_ids") for token in value)


def _text(value: Any, name: str) -> str:
    if type(value) is str:
        return value
    _expect(value is None or isinstance(value, str), f"{name} is not text")
    return value or ""


def _expect(condition: object, what: str) -> None:
    if not condition:
        raise _MalformedError(what)
