"""The plan of one load phase: read from JSON and flags, checked once, then immutable."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .errors import ClientError
from .plan_rules import RULES, check_together
from .trace import read_trace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One phase of load. Token counts are exact; `vocab` is [low, high).

    Shapes: `burst` (barriers of exactly `concurrency`), `closed` (at most `concurrency` at once),
    `ramp` (closed, its limit rising to `concurrency` over `ramp_s`), `soak` (closed for
    `duration_s`, new sessions after the listed ones), `constant` and `poisson` (open loops at
    `rate_per_s`), `trace` (open loop; `sessions` are line numbers from 0, all by default).
    """

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
    api_key_file: str | None = None  # path; the same holds
    more_instances: Mapping[str, str] = field(default_factory=dict)  # name -> base_url, in turn
    proxy: str | None = None  # never taken from the environment: a run must say it
    ca_file: str | None = None
    connect: str = "before"  # or "inside": as a user's first request does it
    rate_per_s: float | None = None
    ramp_s: float | None = None
    duration_s: float | None = None
    slice_s: float = 60.0
    trace: str | None = None
    time_scale: float = 1.0
    trace_block_tokens: int = 512  # as Mooncake's published traces count
    turns: int = 1
    turn_tokens: int | None = None
    shared_prefix_ratio: float = 0.0  # of prompt_tokens, equal in all sessions of a group
    shared_prefix_groups: int = 1
    processes: int = 1
    shard: tuple[int, int] = (0, 1)  # which part of the plan this process sends

    @property
    def bursts(self) -> list[tuple[int, ...]]:
        """The sessions, cut into consecutive bursts of exactly `concurrency`."""
        size = self.concurrency
        return [self.sessions[i : i + size] for i in range(0, len(self.sessions), size)]

    def url(self) -> tuple[str, int, str]:
        """Host, port and path prefix of the server; a trailing /v1 of `base_url` is dropped."""
        parts = urlsplit(self.base_url)
        prefix = parts.path.rstrip("/").removesuffix("/v1")
        return parts.hostname or "", parts.port or (443 if self.tls else 80), prefix

    @property
    def tls(self) -> bool:
        """Requests go over TLS."""
        return self.base_url.startswith("https:")

    def instances(self) -> list[Plan]:
        """This plan for each instance; sessions take them in turn."""
        others = self.more_instances.items()
        return [self, *(replace(self, instance=name, base_url=url) for name, url in others)]


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
    """A checked plan; raises ClientError that names the key, what it held and what to type.

    A trace brings its own lengths: `sessions`, `prompt_tokens` and `output_tokens` become all of
    its lines and its largest lengths where they are not given.
    """
    if values.get("shape") == "trace" and isinstance(values.get("trace"), str):
        lines = read_trace(values["trace"])
        values = {
            "sessions": list(range(len(lines))),
            "prompt_tokens": max(line.input_length for line in lines),
            "output_tokens": max(line.output_length for line in lines),
            "concurrency": 1,
            **values,
        }
    names = [item.name for item in fields(Plan)]
    for key in values:
        if key not in names:
            import difflib  # noqa: PLC0415 - for the hint of an error only

            near = difflib.get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(names)}"
            raise ClientError(f"unknown plan key {key!r}", where=where, next_step=hint)
    for item in fields(Plan):
        required = item.default is MISSING and item.default_factory is MISSING
        if required and item.name not in values:
            raise ClientError(
                f"plan key {item.name!r} is missing",
                where=where,
                next_step=f"add it, or --{item.name.replace('_', '-')}: {RULES[item.name][1]}",
            )
    for key, value in values.items():
        holds, wanted = RULES[key]
        if not holds(value):
            shown = json.dumps(value, default=str)[:80]
            raise ClientError(
                f"plan key {key!r} is {shown}", where=where, next_step=f"give {wanted}"
            )
    checked: Any = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    plan = Plan(**checked)
    check_together(plan, where)
    return plan
