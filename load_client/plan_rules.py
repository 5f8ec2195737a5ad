"""What each key of a plan may hold, and what keys must hold together."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .plan import Plan

PHASES = ("probe", "populate", "flush", "rewarm", "measure", "warm", "control")
SHAPES = ("burst", "closed", "constant", "poisson", "ramp", "soak", "trace")
# Keys that mean something with these shapes only, and must then be there.
NEEDED_BY = {
    "rate_per_s": ("constant", "poisson"),
    "ramp_s": ("ramp",),
    "duration_s": ("soak",),
    "trace": ("trace",),
}
TURN_SHAPES = ("closed", "ramp", "soak")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_VOCAB_END = 1 << 32  # no vocabulary is near it, and prompts are drawn in 32 bits
_LIMIT = 1e6  # seconds, rates and scales beyond it are slips of the pen
# What the client itself says in a request; an extra_body must not contradict the row it leaves.
RESERVED_BODY_KEYS = frozenset(
    {"model", "prompt", "messages", "stream", "stream_options", "max_tokens", "min_tokens"}
    | {"temperature", "ignore_eos", "return_token_ids", "n"}
)


def _integer(low: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _url(value: Any) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except (ValueError, TypeError, AttributeError):
        return False


def _vocabulary(value: Any) -> bool:
    whole = isinstance(value, list | tuple) and len(value) == 2  # noqa: PLR2004 - [low, high)
    if not (whole and all(_integer(0)(edge) for edge in value)):
        return False
    return bool(value[1] - value[0] > 1 and value[1] < _VOCAB_END)


def _sessions(value: Any) -> bool:
    numbers = isinstance(value, list | tuple) and bool(value) and all(map(_integer(0), value))
    return numbers and max(value) < 1 << 31


def _name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _seconds(value: Any) -> bool:
    return _number(value) and 0 < value < _LIMIT


def _or_none(rule: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or rule(value)


def _proxy(value: Any) -> bool:
    return _url(value) and urlsplit(value).scheme == "http" and "@" not in value


def _instances(value: Any) -> bool:
    return isinstance(value, dict) and all(_name(k) and _url(v) for k, v in value.items())


def _shard(value: Any) -> bool:
    whole = isinstance(value, list | tuple) and len(value) == 2  # noqa: PLR2004 - [index, count]
    return whole and all(map(_integer(0), value)) and value[0] < value[1]


RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "phase": (lambda value: value in PHASES, f"one of {', '.join(PHASES)}"),
    "instance": (_name, "a name of letters, digits, . _ -"),
    "base_url": (_url, "http://host:port or https://host:port"),
    "model": (_text, "the served model's name"),
    "sessions": (_sessions, "a list of session numbers, 0 or more, below 2147483648"),
    "prompt_tokens": (_integer(1), "a whole number, 1 or more"),
    "output_tokens": (_integer(1), "a whole number, 1 or more"),
    "concurrency": (_integer(1), "a whole number, 1 or more"),
    "seed": (_integer(0), "a whole number, 0 or more"),
    "endpoint": (lambda value: value in {"completions", "chat"}, "completions or chat"),
    "shape": (lambda value: value in SHAPES, f"one of {', '.join(SHAPES)}"),
    "vocab": (_vocabulary, "[low, high) token ids with at least two between them"),
    "timeout_s": (_seconds, "seconds above 0"),
    "temperature": (lambda value: _number(value) and value >= 0, "a number, 0 or more"),
    "ignore_eos": (_flag, "true or false"),
    "return_token_ids": (_flag, "true or false"),
    "extra_body": (lambda value: isinstance(value, dict), "a JSON object"),
    "api_key_env": (_or_none(_text), "an environment variable's name"),
    "api_key_file": (_or_none(_text), "a file that holds nothing but the key"),
    "more_instances": (_instances, '{"name": "http://host:port", ..}'),
    "proxy": (_or_none(_proxy), "http://host:port of a proxy"),
    "ca_file": (_or_none(_text), "a PEM file of certificate authorities"),
    "connect": (lambda value: value in {"before", "inside"}, "before or inside (the burst)"),
    "rate_per_s": (_or_none(_seconds), "requests a second, above 0"),
    "ramp_s": (_or_none(_seconds), "seconds above 0"),
    "duration_s": (_or_none(_seconds), "seconds above 0"),
    "slice_s": (_seconds, "seconds above 0"),
    "trace": (_or_none(_text), "a JSONL file of timestamp, input_length, output_length, hash_ids"),
    "time_scale": (_seconds, "a number above 0; 0.5 replays twice as fast"),
    "trace_block_tokens": (_integer(1), "tokens that one hash id stands for"),
    "turns": (_integer(1), "a whole number, 1 or more"),
    "turn_tokens": (_or_none(_integer(1)), "new tokens of each further turn"),
    "shared_prefix_ratio": (lambda value: _number(value) and 0 <= value < 1, "0 or more, below 1"),
    "shared_prefix_groups": (_integer(1), "a whole number, 1 or more"),
    "processes": (_integer(1), "a whole number, 1 or more"),
    "shard": (_shard, "[index, count] with index below count"),
}


def check_together(plan: Plan, where: str) -> None:
    """Raises ClientError for keys that contradict one another, and for a key that is not there."""
    for complaint in (_of_sessions, _of_shape, _of_prompts, _of_key, _of_instances):
        found = complaint(plan)
        if found is not None:
            raise ClientError(found[0], where=where, next_step=found[1])


def _of_sessions(plan: Plan) -> tuple[str, str] | None:
    twice = {session for session, times in Counter(plan.sessions).items() if times > 1}
    if twice:
        advice = "list each session once; read a session again in a phase of its own"
        return f"session {min(twice)} is listed twice", advice
    count, size = len(plan.sessions), plan.concurrency
    if plan.shape == "burst" and count % size:
        return (
            f"{count} sessions do not make bursts of exactly {size}",
            f"list a multiple of {size} sessions, or use --shape closed",
        )
    parts = max(plan.processes, plan.shard[1])
    if min(size, count) < parts:
        return f"{parts} processes cannot share {min(size, count)} requests", "use fewer processes"
    return None


def _of_shape(plan: Plan) -> tuple[str, str] | None:
    for key, shapes in NEEDED_BY.items():
        given = getattr(plan, key) is not None
        if plan.shape in shapes and not given:
            flag = key.replace("_", "-")
            return f"shape {plan.shape} needs {key!r}", f"add it, or --{flag}: {RULES[key][1]}"
        if plan.shape not in shapes and given:
            return f"{key!r} has no meaning with shape {plan.shape}", f"use --shape {shapes[0]}"
    if plan.shape == "trace" and plan.endpoint != "completions":
        return "a trace is replayed as token ids", "use --endpoint completions"
    return None


def _of_prompts(plan: Plan) -> tuple[str, str] | None:
    clash = sorted(RESERVED_BODY_KEYS & plan.extra_body.keys())
    if clash:
        return f"extra_body may not set {clash[0]!r}", "use the plan's own keys for it"
    if plan.turns > 1 and plan.turn_tokens is None:
        return "several turns need 'turn_tokens'", "add --turn-tokens: new tokens of each turn"
    if plan.turns > 1 and plan.shape not in TURN_SHAPES:
        return f"shape {plan.shape} has no turns", f"use --shape {TURN_SHAPES[0]}"
    if plan.turns > 1 and plan.endpoint == "completions" and not plan.return_token_ids:
        return "a next turn repeats the answer's token ids", "use --return-token-ids"
    if plan.shape == "trace" and plan.shared_prefix_ratio:
        return "a trace says itself what is shared", "leave shared_prefix_ratio out"
    return None


def _of_key(plan: Plan) -> tuple[str, str] | None:
    name = plan.api_key_env
    if name is not None and plan.api_key_file is not None:
        return "two places for the API key", "give api_key_env or api_key_file"
    if name is not None and not os.environ.get(name):
        return f"environment variable {name} is empty", (
            f"export {name}=<key>, or leave api_key_env out"
        )
    if plan.api_key_file is not None:
        try:
            key = Path(plan.api_key_file).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as refusal:
            return f"cannot read api_key_file: {refusal}", "give a readable file of one ASCII key"
        if not key or len(key.split()) != 1:
            return f"{plan.api_key_file} holds no single key", "write the key alone into it"
    return None


def _of_instances(plan: Plan) -> tuple[str, str] | None:
    if plan.instance in plan.more_instances:
        return f"instance {plan.instance!r} is named twice", "give each instance a name of its own"
    return None
