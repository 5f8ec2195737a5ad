"""Requests as the bytes that go over the wire, made before the burst."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .profiles import NVEXT, PROFILES

if TYPE_CHECKING:
    from .plan import LoadPlan

ChatMessage = dict[str, str]
# For completions token ids as JSON writes them, with commas between; for chat a text, or a
# conversation whose last message is the user's.
Prompt = bytes | str | list[ChatMessage]

_NO_PROMPT = b'"prompt":[]'
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode

# A connection of its own per request: the end of the response is then never ambiguous.
_HEAD = (
    "POST {path} HTTP/1.1\r\n"
    "Host: {host}\r\n"
    "User-Agent: load_client/1\r\n"
    "Content-Type: application/json\r\n"
    "Accept: {accept}\r\n"
    "Accept-Encoding: identity\r\n"
    "Connection: close\r\n"
    "{more}"
    "Content-Length: {length}\r\n"
    "\r\n"
)


def render_request(plan: LoadPlan, prompt: Prompt, request_id: str) -> bytes:
    """Head and body of one request for a stream."""
    verb = "completions" if plan.endpoint == "completions" else "chat/completions"
    headers = {"X-Request-Id": request_id}
    return render_post(plan, f"v1/{verb}", "text/event-stream", render_body(plan, prompt), headers)


def render_body(plan: LoadPlan, prompt: Prompt) -> bytes:
    """The JSON of one request: token ids for completions, messages for chat."""
    body: dict[str, Any] = {"model": plan.model}
    if isinstance(prompt, bytes):
        body["prompt"] = []
    elif isinstance(prompt, str):
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        body["messages"] = prompt
    body |= {
        "max_tokens": plan.output_tokens,
        "temperature": plan.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    bare = compact_json(body | _extra_keys(plan) | dict(plan.extra_body))
    if not isinstance(prompt, bytes):
        return bare
    before, _, after = bare.partition(_NO_PROMPT)
    return b"".join((before, _NO_PROMPT[:-1], prompt, _NO_PROMPT[-1:], after))


def _extra_keys(plan: LoadPlan) -> dict[str, Any]:
    """The keys that the profile adds to a request, with the values of the plan's switches."""
    values: dict[str, Any] = {
        "ignore_eos": plan.ignore_eos,
        "min_tokens": plan.output_tokens,
        NVEXT: {"ignore_eos": plan.ignore_eos},
    }
    if plan.return_token_ids:
        values["return_token_ids"] = True
    return {key: values[key] for key in PROFILES[plan.profile] if key in values}


def compact_json(value: Any) -> bytes:
    """JSON without spaces."""
    return _ENCODE(value).encode("ascii")


def render_post(
    plan: LoadPlan, path: str, accept: str, body: bytes, headers: dict[str, str]
) -> bytes:
    """Head and body of a request to a path of the plan's server, with its API key."""
    host = _host_header(plan)
    # A proxy is given the whole address; a tunnel leads to the server itself.
    whole = f"http://{host}" if plan.proxy is not None and not plan.tls else ""
    key = api_key(plan)
    if key is not None:
        headers = headers | {"Authorization": f"Bearer {key}"}
    head = _HEAD.format(
        path=f"{whole}{plan.path_prefix}/{path}",
        host=host,
        accept=accept,
        more="".join(f"{name}: {value}\r\n" for name, value in headers.items()),
        length=len(body),
    )
    return head.encode("ascii") + body


def _host_header(plan: LoadPlan) -> str:
    """Host and port as the plan writes them, without a user's name and password."""
    return plan.base_url.split("://", 1)[1].split("/", 1)[0].rpartition("@")[2]


def api_key(plan: LoadPlan) -> str | None:
    """The key, read from the environment or its file at the last moment."""
    if plan.api_key_file is not None:
        return Path(plan.api_key_file).read_text(encoding="ascii").strip()
    return None if plan.api_key_env is None else os.environ[plan.api_key_env]
