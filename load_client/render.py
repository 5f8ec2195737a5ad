"""Requests as the bytes that go over the wire, made before the burst."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .draws import IdText, id_text

if TYPE_CHECKING:
    from .plan import Plan

Message = dict[str, str]
# For completions token ids, as numbers or written; for chat a text, or a conversation whose last
# message is the user's.
Prompt = Sequence[int] | IdText | str | list[Message]

_NO_PROMPT = b'"prompt":[]'
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode

# A request of its own per connection: the end of the response is then never ambiguous.
_HEAD = (
    "POST {path} HTTP/1.1\r\n"
    "Host: {host}\r\n"
    "User-Agent: load_client/1\r\n"
    "Content-Type: application/json\r\n"
    "Accept: text/event-stream\r\n"
    "Accept-Encoding: identity\r\n"
    "Connection: close\r\n"
    "X-Request-Id: {request_id}\r\n"
    "{authorization}"
    "Content-Length: {length}\r\n"
    "\r\n"
)


def request_body(plan: Plan, prompt: Prompt) -> dict[str, Any]:
    """The JSON object of one request: token ids for completions, messages for chat."""
    body: dict[str, Any] = {"model": plan.model}
    if plan.endpoint == "completions":
        body["prompt"] = prompt
    elif isinstance(prompt, str):
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        body["messages"] = prompt
    body |= {
        "max_tokens": plan.output_tokens,
        "min_tokens": plan.output_tokens,
        "temperature": plan.temperature,
        "ignore_eos": plan.ignore_eos,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if plan.return_token_ids:
        body["return_token_ids"] = True
    return body | dict(plan.extra_body)


def render_request(plan: Plan, prompt: Prompt, request_id: str) -> bytes:
    """Head and body of one request."""
    body = render_body(plan, prompt)
    _, _, prefix = plan.url()
    verb = "completions" if plan.endpoint == "completions" else "chat/completions"
    host = host_header(plan)
    # A proxy is told the whole address; inside a tunnel there is no proxy to tell.
    whole = f"http://{host}" if plan.proxy is not None and not plan.tls else ""
    head = _HEAD.format(
        path=f"{whole}{prefix}/v1/{verb}",
        host=host,
        request_id=request_id,
        authorization="".join(f"{k}: {v}\r\n" for k, v in authorization(plan).items()),
        length=len(body),
    )
    return head.encode("ascii") + body


def render_body(plan: Plan, prompt: Prompt) -> bytes:
    """`request_body` as compact JSON; thousands of token ids are written at once."""
    if isinstance(prompt, str) or plan.endpoint != "completions" or "prompt" in plan.extra_body:
        return _ENCODE(request_body(plan, prompt)).encode("ascii")
    bare = _ENCODE(request_body(plan, [])).encode("ascii")
    before, listed, after = bare.partition(_NO_PROMPT)
    ids = prompt if isinstance(prompt, IdText) else id_text(cast("Sequence[int]", prompt))
    return b"".join((before, listed[:-1], ids, listed[-1:], after))


def host_header(plan: Plan) -> str:
    """Host and port as the plan writes them, without anybody's name and password."""
    return plan.base_url.split("://", 1)[1].split("/", 1)[0].rpartition("@")[2]


def authorization(plan: Plan) -> dict[str, str]:
    """The header that carries the API key."""
    key = api_key(plan)
    return {} if key is None else {"Authorization": f"Bearer {key}"}


def api_key(plan: Plan) -> str | None:
    """The key, read from the environment or its file at the last moment."""
    if plan.api_key_file is not None:
        return Path(plan.api_key_file).read_text(encoding="ascii").strip()
    return None if plan.api_key_env is None else os.environ[plan.api_key_env]
