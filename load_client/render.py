"""Requests as the bytes that go over the wire, made before the burst."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .plan import Plan

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


def request_body(plan: Plan, prompt: list[int] | str) -> dict[str, Any]:
    """The JSON object of one request: token ids for completions, text for chat."""
    body: dict[str, Any] = {"model": plan.model}
    if plan.endpoint == "completions":
        body["prompt"] = prompt
    else:
        body["messages"] = [{"role": "user", "content": prompt}]
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


def render_request(plan: Plan, prompt: list[int] | str, request_id: str) -> bytes:
    """Head and body of one request."""
    body = json.dumps(request_body(plan, prompt), separators=(",", ":")).encode("ascii")
    _, _, prefix = plan.url()
    verb = "completions" if plan.endpoint == "completions" else "chat/completions"
    head = _HEAD.format(
        path=f"{prefix}/v1/{verb}",
        host=plan.base_url.split("://", 1)[1].split("/", 1)[0].rpartition("@")[2],
        request_id=request_id,
        authorization="".join(f"{k}: {v}\r\n" for k, v in authorization(plan).items()),
        length=len(body),
    )
    return head.encode("ascii") + body


def authorization(plan: Plan) -> dict[str, str]:
    """The header that carries the API key, read from the environment at the last moment."""
    if plan.api_key_env is None:
        return {}
    return {"Authorization": f"Bearer {os.environ[plan.api_key_env]}"}
