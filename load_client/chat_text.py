"""Chat text of an exact token count, found with the server's own `/tokenize`.

The template's tokens count too, and only the server knows them. The text is built from a session's
words: the largest number of whole words that fits, then short fillers until the count is exact.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .errors import ClientError
from .prompts import prompt_words
from .render import Message, authorization, host_header
from .target import tls_context

if TYPE_CHECKING:
    import http.client
    from collections.abc import Sequence

    from .plan import Plan

# One of these adds exactly one token with every byte-level tokenizer tried.
_FILLERS = (" a", " the", "\n", ".", "!", " 1", "x")
# Parts of a request that change how the server renders the conversation.
_TEMPLATE_KEYS = ("chat_template", "chat_template_kwargs", "tools")
_TOKENIZE_TIMEOUT_S = 60.0
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


def server_counter(plan: Plan, history: Sequence[Message] = ()) -> TokenCounter:
    """A counter that asks the plan's server; it raises ClientError when the server cannot say.

    It counts the conversation of `history` and one more message of the user.
    """
    from http.client import HTTPException  # noqa: PLC0415 - half of the start-up, chat only

    host, port, prefix = plan.url()
    extra = {key: plan.extra_body[key] for key in _TEMPLATE_KEYS if key in plan.extra_body}
    where = f"{plan.base_url.split('://')[0]}://{host}:{port}{prefix}/tokenize"

    def count(text: str) -> int:
        messages = [*history, {"role": "user", "content": text}]
        body = json.dumps({"model": plan.model, "messages": messages, **extra})
        headers = {"Content-Type": "application/json", **authorization(plan)}
        connection, path = _connection(plan, f"{prefix}/tokenize")
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse().read()
            return int(json.loads(answer)["count"])
        except (OSError, HTTPException) as refusal:
            raise _no_count(str(refusal), where) from refusal
        except (ValueError, KeyError, TypeError) as damage:
            raise _no_count(answer[:_EXCERPT].decode("utf-8", "replace"), where) from damage
        finally:
            connection.close()

    return count


def _connection(plan: Plan, path: str) -> tuple[http.client.HTTPConnection, str]:
    """The plan's way to its server, and what to ask for on it."""
    from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - as above

    host, port, _ = plan.url()
    context = tls_context(plan)
    if plan.proxy is None:
        if context is None:
            return HTTPConnection(host, port, timeout=_TOKENIZE_TIMEOUT_S), path
        secure = HTTPSConnection(host, port, timeout=_TOKENIZE_TIMEOUT_S, context=context)
        return secure, path
    proxy = urlsplit(plan.proxy)
    via, via_port = proxy.hostname or "", proxy.port or 80
    if context is None:
        plain = HTTPConnection(via, via_port, timeout=_TOKENIZE_TIMEOUT_S)
        return plain, f"http://{host_header(plan)}{path}"
    tunnel = HTTPSConnection(via, via_port, timeout=_TOKENIZE_TIMEOUT_S, context=context)
    tunnel.set_tunnel(host, port)
    return tunnel, path


def _no_count(seen: str, where: str) -> ClientError:
    return ClientError(
        f"the server does not count tokens: {seen}",
        where=where,
        next_step="serve /tokenize, or use endpoint completions with token ids",
    )
