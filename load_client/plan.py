"""The plan of one load phase: read from JSON and flags, checked once, then immutable."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections import Counter
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PHASES = ("probe", "populate", "flush", "rewarm", "measure", "warm", "control")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
# What the client itself says in a request; an extra_body must not contradict the row it leaves.
RESERVED_BODY_KEYS = frozenset(
    {"model", "prompt", "messages", "stream", "stream_options", "max_tokens", "min_tokens"}
    | {"temperature", "ignore_eos", "return_token_ids", "n"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One phase against one instance. Token counts are exact; `vocab` is [low, high)."""

    phase: str
    instance: str
    base_url: str
    model: str
    sessions: tuple[int, ...]
    prompt_tokens: int
    output_tokens: int
    concurrency: int
    seed: int = 0
    endpoint: str = "completions"
    shape: str = "burst"
    vocab: tuple[int, int] = (1000, 2000)
    timeout_s: float = 1800.0  # whole request, from its first byte sent
    temperature: float = 0.0
    ignore_eos: bool = True
    return_token_ids: bool = True
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    api_key_env: str | None = None  # name of the variable; the key itself is stored nowhere

    @property
    def bursts(self) -> list[tuple[int, ...]]:
        """The sessions, cut into consecutive bursts of exactly `concurrency`."""
        size = self.concurrency
        return [self.sessions[i : i + size] for i in range(0, len(self.sessions), size)]

    def url(self) -> tuple[str, int, str]:
        """Host, port and path prefix of the server; a trailing /v1 of `base_url` is dropped."""
        parts = urlsplit(self.base_url)
        prefix = parts.path.rstrip("/").removesuffix("/v1")
        return parts.hostname or "", parts.port or 80, prefix


def _integer(low: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _url(value: Any) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme == "http" and bool(parts.hostname) and parts.port != 0
    except (ValueError, TypeError, AttributeError):
        return False


def _vocabulary(value: Any) -> bool:
    whole = isinstance(value, list | tuple) and len(value) == 2  # noqa: PLR2004 - [low, high)
    return whole and all(_integer(0)(edge) for edge in value) and value[1] - value[0] > 1


def _sessions(value: Any) -> bool:
    numbers = isinstance(value, list | tuple) and bool(value) and all(map(_integer(0), value))
    return numbers and max(value) < 1 << 31


def _name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "phase": (lambda value: value in PHASES, f"one of {', '.join(PHASES)}"),
    "instance": (_name, "a name of letters, digits, . _ -"),
    "base_url": (_url, "http://host:port (TLS is not supported yet)"),
    "model": (_text, "the served model's name"),
    "sessions": (_sessions, "a list of session numbers, 0 or more, below 2147483648"),
    "prompt_tokens": (_integer(1), "a whole number, 1 or more"),
    "output_tokens": (_integer(1), "a whole number, 1 or more"),
    "concurrency": (_integer(1), "a whole number, 1 or more"),
    "seed": (_integer(0), "a whole number, 0 or more"),
    "endpoint": (lambda value: value in {"completions", "chat"}, "completions or chat"),
    "shape": (lambda value: value in {"burst", "closed"}, "burst or closed"),
    "vocab": (_vocabulary, "[low, high) token ids with at least two between them"),
    "timeout_s": (lambda value: _number(value) and 0 < value < 1e6, "seconds above 0"),  # noqa: PLR2004
    "temperature": (lambda value: _number(value) and value >= 0, "a number, 0 or more"),
    "ignore_eos": (lambda value: isinstance(value, bool), "true or false"),
    "return_token_ids": (lambda value: isinstance(value, bool), "true or false"),
    "extra_body": (lambda value: isinstance(value, dict), "a JSON object"),
    "api_key_env": (lambda value: value is None or _text(value), "an environment variable's name"),
}


def read_plan(path: Path) -> dict[str, Any]:
    """The plan file's object, unchecked; raises ClientError when it is none."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as refusal:
        raise ClientError(
            f"cannot read the plan: {refusal.strerror}",
            where=str(path),
            next_step="give --plan a readable JSON file",
        ) from refusal
    except ValueError as damage:
        raise ClientError(
            f"the plan is not JSON: {damage}", where=str(path), next_step="correct that place"
        ) from damage
    if not isinstance(values, dict):
        raise ClientError(
            "the plan is not a JSON object", where=str(path), next_step='write {"phase": ...}'
        )
    return values


def make_plan(values: Mapping[str, Any], where: str) -> Plan:
    """A checked plan; raises ClientError that names the key, what it held and what to type."""
    names = [item.name for item in fields(Plan)]
    for key in values:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(names)}"
            raise ClientError(f"unknown plan key {key!r}", where=where, next_step=hint)
    for item in fields(Plan):
        required = item.default is MISSING and item.default_factory is MISSING
        if required and item.name not in values:
            raise ClientError(
                f"plan key {item.name!r} is missing",
                where=where,
                next_step=f"add it, or --{item.name.replace('_', '-')}: {_RULES[item.name][1]}",
            )
    for key, value in values.items():
        holds, wanted = _RULES[key]
        if not holds(value):
            shown = json.dumps(value, default=str)[:80]
            raise ClientError(
                f"plan key {key!r} is {shown}", where=where, next_step=f"give {wanted}"
            )
    checked: Any = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    plan = Plan(**checked)
    _check_together(plan, where)
    return plan


def _check_together(plan: Plan, where: str) -> None:
    twice = {session for session, times in Counter(plan.sessions).items() if times > 1}
    if twice:
        raise ClientError(
            f"session {min(twice)} is listed twice",
            where=where,
            next_step="list each session once; read a session again in a phase of its own",
        )
    count, size = len(plan.sessions), plan.concurrency
    if plan.shape == "burst" and count % size:
        raise ClientError(
            f"{count} sessions do not make bursts of exactly {size}",
            where=where,
            next_step=f"list a multiple of {size} sessions, or use --shape closed",
        )
    clash = sorted(RESERVED_BODY_KEYS & plan.extra_body.keys())
    if clash:
        raise ClientError(
            f"extra_body may not set {clash[0]!r}",
            where=where,
            next_step="use the plan's own keys for it",
        )
    if plan.api_key_env is not None and not os.environ.get(plan.api_key_env):
        raise ClientError(
            f"environment variable {plan.api_key_env} is empty",
            where=where,
            next_step=f"export {plan.api_key_env}=<key>, or leave api_key_env out",
        )
