"""Chat text of an exact token count, found with the server's own `/tokenize`.

The template's tokens count too, and only the server knows them. The text is built from a session's
words: the largest number of whole words that fits, then short fillers until the count is exact.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import ClientError
from ..stream.http_response import HTTP_OK
from ..wire.loop import exchange
from .render import ChatMessage, compact_json, render_post
from .token_generator import prompt_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..wire.target import Target
    from .plan import LoadPlan

# One of these adds exactly one token with every byte-level tokenizer tried.
_FILLERS = (" a", " the", "\n", ".", "!", " 1", "x")
# Parts of a request that change how the server renders the conversation.
_TEMPLATE_KEYS = ("chat_template", "chat_template_kwargs", "tools")
_TOKENIZE_TIMEOUT_NS = 60_000_000_000
_EXCERPT = 300

TokenCounter = Callable[[str], int]


def exact_text(
    count: TokenCounter,
    *,
    seed: int,
    session: int,
    prompt_tokens: int,
    turn: int = 0,
    lead: Sequence[str] = (),
) -> str:
    """Text that `count` says is exactly `prompt_tokens` long; raises ClientError if none is found.

    `count` gives the tokens of the whole rendered conversation around a text; `lead` are the words
    it begins with.
    """
    own = prompt_words(seed=seed, session=session, count=prompt_tokens, turn=turn)
    words = [*lead, *own]
    fits = words_that_fit(count, words, prompt_tokens)
    text = " ".join(words[:fits])
    reached = count(text)
    # The session's first word must be in, or two sessions would say the same.
    fits = fits if fits > len(lead) else 0
    while fits and reached < prompt_tokens:
        grown = next(
            (text + filler for filler in _FILLERS if count(text + filler) == reached + 1), None
        )
        if grown is None:
            break
        text, reached = grown, reached + 1
    if not fits or reached != prompt_tokens:
        raise ClientError(
            f"no text of exactly {prompt_tokens} tokens found for session {session}"
            f" (nearest: {reached})",
            where="/tokenize of the server",
            next_step="change prompt_tokens by a few, or use endpoint completions with token ids",
        )
    return text


def words_that_fit(count: TokenCounter, words: Sequence[str], tokens: int) -> int:
    """The largest number of leading words whose text has at most `tokens`."""
    fits, beyond = 0, len(words) + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if count(" ".join(words[:middle])) <= tokens:
            fits = middle
        else:
            beyond = middle
    return fits


def server_counter(
    plan: LoadPlan, target: Target, history: Sequence[ChatMessage] = ()
) -> TokenCounter:
    """A counter that asks the plan's server; it raises ClientError when the server cannot say.

    It counts the conversation of `history` and one more message of the user.
    """
    extra = {key: plan.extra_body[key] for key in _TEMPLATE_KEYS if key in plan.extra_body}

    def count(text: str) -> int:
        messages = [*history, {"role": "user", "content": text}]
        body = compact_json({"model": plan.model, "messages": messages, **extra})
        request = render_post(plan, "tokenize", "application/json", body, {})
        answer = exchange(target, request, _TOKENIZE_TIMEOUT_NS)
        try:
            if answer.status == HTTP_OK:
                return int(json.loads(answer.body)["count"])
        except (ValueError, KeyError, TypeError):
            pass
        said = answer.body[:_EXCERPT].decode("utf-8", "replace")
        raise ClientError(
            f"the server does not count tokens: {answer.error or f'HTTP {answer.status} {said}'}",
            where=f"POST {plan.base_url.removesuffix('/v1')}/tokenize",
            next_step="serve /tokenize, or use endpoint completions with token ids",
        )

    return count
