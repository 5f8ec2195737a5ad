"""What one event of a completion stream says: its kind, text, tokens and usage.

    role       announces who speaks, no text
    empty      no text and no token
    content    text, or token ids where the server returns them (half a UTF-8 character is a token
               without text); tool calls and refusals too
    reasoning  `reasoning_content` or `reasoning`, and no answer text beside it
    usage      token counts and no choice
    done       [DONE]
    comment    a block without data, or with an empty one: keep-alives
    error      an error object, or data that is not what the protocol promises

A role or empty event is never a token.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from .sse import DONE

if TYPE_CHECKING:
    from .sse import SseEvent

# Rows are stored as 64-bit integers; a larger count is damage.
_INT64_END = 1 << 63
_EXCERPT_CHARACTERS = 300
TOKEN_KINDS = ("content", "reasoning")  # events that carry generated tokens


class Delta(NamedTuple):
    """What one event says; `token_ids` and counts are None where the server does not give them.

    Thousands are made after a burst, and a named tuple takes a fifth of a frozen dataclass's time.
    """

    kind: str
    text: str = ""
    token_ids: tuple[int, ...] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None
    server_request_id: str | None = None
    error: str | None = None


_NO_USAGE = (None, None)


class _MalformedError(ValueError):
    pass


def read_delta(event: SseEvent, endpoint: str) -> Delta:
    """What one event of a `completions` or `chat` stream says; bad data gives kind `error`."""
    data = event.data or b""
    bare = data.strip()
    if not bare:
        return Delta(kind="comment")
    if bare == DONE:
        return Delta(kind="done")
    try:
        return _understand(json.loads(data.decode("utf-8")), event, endpoint)
    except (ValueError, RecursionError) as damage:
        excerpt = data[:_EXCERPT_CHARACTERS].decode("utf-8", "replace")
        return Delta(kind="error", error=f"event not understood ({damage}): {excerpt}")


def _understand(message: Any, event: SseEvent, endpoint: str) -> Delta:
    _expect(isinstance(message, dict), "not an object")
    if event.name == "error" or message.get("error") or message.get("object") == "error":
        return Delta(kind="error", error=f"error event: {json.dumps(message)[:2000]}")
    choices = message.get("choices")
    choices = [] if choices is None else choices
    _expect(isinstance(choices, list), "choices is not a list")
    parts = [_choice(choice, endpoint) for choice in choices]
    finish_reason = next((part.finish_reason for part in parts if part.finish_reason), None)
    usage = message.get("usage")
    if usage is None and (finish_reason is not None or not choices):
        usage = _usage_elsewhere(message, choices)
    prompt_tokens, completion_tokens = _usage(usage)
    kinds = {part.kind for part in parts}
    ranked = ("content", "reasoning", "role", "empty")
    fallback = "empty" if prompt_tokens is None and completion_tokens is None else "usage"
    ids = [part.token_ids for part in parts if part.token_ids is not None]
    return Delta(
        kind=next((kind for kind in ranked if kind in kinds), fallback),
        text="".join(part.text for part in parts),
        token_ids=tuple(token for some in ids for token in some) if ids else None,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        finish_reason=finish_reason,
        server_request_id=_text(message.get("id"), "id") or None,
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


def _usage_elsewhere(message: dict[str, Any], choices: list[Any]) -> Any:
    """Where servers put it at the end of an answer: Moonshot in a choice, Groq in `x_groq`."""
    for choice in choices:
        if choice.get("usage") is not None:
            return choice["usage"]
    groq = message.get("x_groq")
    return groq.get("usage") if isinstance(groq, dict) else None


def _usage(usage: Any) -> tuple[int | None, int | None]:
    """Both counts, by OpenAI's older names or its newer; one left out, or null, is absent."""
    if not usage:  # PHP writes an empty object as []
        return _NO_USAGE
    _expect(isinstance(usage, dict), "usage is not an object")
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if prompt is None:
        prompt = usage.get("input_tokens")
    if completion is None:
        completion = usage.get("output_tokens")
    return (
        None if prompt is None else _count(prompt, "count of prompt tokens"),
        None if completion is None else _count(completion, "count of output tokens"),
    )


def _count(value: Any, name: str) -> int:
    number = isinstance(value, int) and not isinstance(value, bool)
    _expect(number and 0 <= value < _INT64_END, f"{name} is no whole number")
    return int(value)


def _token_ids(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    _expect(isinstance(value, list), "token_ids is not a list")
    return tuple(_count(token, "token_ids") for token in value)


def _text(value: Any, name: str) -> str:
    _expect(value is None or isinstance(value, str), f"{name} is not text")
    return value or ""


def _expect(condition: object, what: str) -> None:
    if not condition:
        raise _MalformedError(what)
