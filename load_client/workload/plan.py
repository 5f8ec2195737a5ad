"""The plan of one load phase: read from JSON and flags, checked once, then immutable.

A key's field names its rule; the words of the rule are also the help of the key's flag.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
from collections import Counter
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ClientError
from . import rules
from .profiles import PROFILES
from .trace import Trace, read_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

# Keys that mean something with these shapes only, and must then be there.
NEEDED_BY = {
    "rate_per_s": ("constant", "poisson"),
    "ramp_s": ("ramp",),
    "duration_s": ("soak",),
    "trace": ("trace",),
}
# What the client itself says in a request; an extra_body must not contradict the row it leaves.
RESERVED_BODY_KEYS = frozenset(
    {"model", "prompt", "messages", "stream", "stream_options", "max_tokens", "min_tokens"}
    | {"temperature", "ignore_eos", "return_token_ids", "n"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """One phase of load. Token counts are exact.

    Shapes: `burst` (barriers of exactly `concurrency`), `closed` (at most `concurrency` at once),
    `ramp` (closed, its limit rising to `concurrency` over `ramp_s`), `soak` (closed for
    `duration_s`, new sessions after the listed ones), `constant` and `poisson` (open loops at
    `rate_per_s`), `trace` (open loop; `sessions` are line numbers from 0, all that ask for an
    answer by default).
    """

    phase: str = field(metadata=rules.PHASE)
    instance: str = field(metadata=rules.INSTANCE)
    base_url: str = field(metadata=rules.BASE_URL)
    model: str = field(metadata=rules.MODEL)
    sessions: tuple[int, ...] = field(metadata=rules.SESSIONS)
    prompt_tokens: int = field(metadata=rules.POSITIVE_WHOLE)
    output_tokens: int = field(metadata=rules.POSITIVE_WHOLE)
    concurrency: int = field(metadata=rules.POSITIVE_WHOLE)
    seed: int = field(default=0, metadata=rules.WHOLE)
    endpoint: str = field(default="completions", metadata=rules.ENDPOINT)
    shape: str = field(default="burst", metadata=rules.SHAPE)
    vocab: tuple[int, int] = field(default=(1000, 2000), metadata=rules.VOCAB)
    timeout_s: float = field(default=1800.0, metadata=rules.TIMEOUT)
    temperature: float = field(default=0.0, metadata=rules.NOT_NEGATIVE)
    # Which of the keys behind these switches are sent at all.
    profile: str = field(default="vllm", metadata=rules.PROFILE)
    ignore_eos: bool = field(default=True, metadata=rules.SWITCH)
    return_token_ids: bool = field(default=True, metadata=rules.SWITCH)
    extra_body: Mapping[str, Any] = field(default_factory=dict, metadata=rules.EXTRA_BODY)
    # Where the API key is; the key itself is stored nowhere.
    api_key_env: str | None = field(default=None, metadata=rules.API_KEY_ENV)
    api_key_file: str | None = field(default=None, metadata=rules.API_KEY_FILE)
    # Name -> base_url; sessions take the instances in turn.
    more_instances: Mapping[str, str] = field(default_factory=dict, metadata=rules.MORE_INSTANCES)
    # Never taken from the environment: the plan of a run must name it.
    proxy: str | None = field(default=None, metadata=rules.PROXY)
    ca_file: str | None = field(default=None, metadata=rules.CA_FILE)
    # Before the burst, or inside it, as the first request of a user does.
    connect: str = field(default="before", metadata=rules.CONNECT)
    rate_per_s: float | None = field(default=None, metadata=rules.RATE)
    ramp_s: float | None = field(default=None, metadata=rules.RAMP)
    duration_s: float | None = field(default=None, metadata=rules.DURATION)
    slice_s: float = field(default=60.0, metadata=rules.SLICE)
    trace: str | None = field(default=None, metadata=rules.TRACE)
    trace_format: str | None = field(default=None, metadata=rules.TRACE_FORMAT)
    trace_block_tokens: int | None = field(default=None, metadata=rules.BLOCK_TOKENS)
    time_scale: float = field(default=1.0, metadata=rules.TIME_SCALE)
    turns: int = field(default=1, metadata=rules.POSITIVE_WHOLE)
    turn_tokens: int | None = field(default=None, metadata=rules.TURN_TOKENS)
    # The part of prompt_tokens that all sessions of a group begin with.
    shared_prefix_ratio: float = field(default=0.0, metadata=rules.RATIO)
    shared_prefix_groups: int = field(default=1, metadata=rules.POSITIVE_WHOLE)
    processes: int = field(default=1, metadata=rules.POSITIVE_WHOLE)
    # The part of the plan that this process sends.
    shard: tuple[int, int] = field(default=(0, 1), metadata=rules.SHARD)

    @property
    def tls(self) -> bool:
        """Requests go over TLS."""
        return self.base_url.startswith("https:")

    @property
    def path_prefix(self) -> str:
        """What stands before /v1 in the server's paths; a trailing /v1 of `base_url` is dropped."""
        return urlsplit(self.base_url).path.rstrip("/").removesuffix("/v1")

    def instances(self) -> list[LoadPlan]:
        """This plan for each instance; sessions take them in turn."""
        others = self.more_instances.items()
        return [self, *(replace(self, instance=name, base_url=url) for name, url in others)]


KEYS = {item.name: item for item in fields(LoadPlan)}


def wanted(key: str) -> str:
    """What a key of a plan may be, in words."""
    return str(KEYS[key].metadata["wanted"])


def flag_of(key: str) -> str:
    """The command-line option of a key."""
    return f"--{key.replace('_', '-')}"


def read_plan(path: Path) -> dict[str, Any]:
    """The plan file's object, unchecked; raises ClientError when it holds no JSON object."""
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


def make_plan(values: Mapping[str, Any], where: str) -> LoadPlan:
    """A checked plan; raises ClientError that names the key, what it held and what to type.

    A trace brings its own lengths: where they are not given, `sessions` are all of its lines that
    ask for an answer, and `prompt_tokens` and `output_tokens` its largest lengths.
    """
    trace: Trace | None = None
    fault = _fault_of_values(values)
    if fault is None and values.get("shape") == "trace" and values.get("trace") is not None:
        trace = read_trace(
            values["trace"], values.get("trace_format"), values.get("trace_block_tokens")
        )
        values = {
            "sessions": list(trace.answered),
            "prompt_tokens": max(line.input_length for line in trace.lines),
            "output_tokens": max(line.output_length for line in trace.lines),
            "concurrency": 1,
            **values,
        }
    fault = fault or _fault_of_absence(values)
    if fault is None:
        checked: Any = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        plan = LoadPlan(**checked)
        complaints = (_of_sessions, _of_shape, _of_prompts, _of_key, _of_instances)
        fault = next((found for one in complaints if (found := one(plan)) is not None), None)
        fault = fault or _of_trace(plan, trace)
        if fault is None:
            return plan
    raise ClientError(fault[0], where=where, next_step=fault[1])


_Fault = tuple[str, str] | None  # what is wrong, and what to do about it


def _fault_of_values(values: Mapping[str, Any]) -> _Fault:
    for key in values:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(KEYS)}"
            return f"unknown plan key {key!r}", hint
    for key, value in values.items():
        if not KEYS[key].metadata["holds"](value):
            shown = json.dumps(value, default=str)[:80]
            return f"plan key {key!r} is {shown}", f"give {wanted(key)}"
    return None


def _fault_of_absence(values: Mapping[str, Any]) -> _Fault:
    for key, item in KEYS.items():
        required = item.default is MISSING and item.default_factory is MISSING
        if required and key not in values:
            return f"plan key {key!r} is missing", f"add it, or {flag_of(key)}: {wanted(key)}"
    return None


def _of_sessions(plan: LoadPlan) -> _Fault:
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


def _of_shape(plan: LoadPlan) -> _Fault:
    for key, shapes in NEEDED_BY.items():
        given = getattr(plan, key) is not None
        if plan.shape in shapes and not given:
            advice = f"add it, or {flag_of(key)}: {wanted(key)}"
            return f"shape {plan.shape} needs {key!r}", advice
        if plan.shape not in shapes and given:
            return f"{key!r} has no meaning with shape {plan.shape}", f"use --shape {shapes[0]}"
    return None


def _of_trace(plan: LoadPlan, trace: Trace | None) -> _Fault:
    if trace is None:
        given = plan.trace_format is not None or plan.trace_block_tokens is not None
        return ("there is no trace to read so", "use --shape trace") if given else None
    if plan.endpoint != "completions":
        return "a trace is replayed as token ids", "use --endpoint completions"
    wrong = sorted({*plan.sessions} - {*trace.answered})
    if wrong:
        return f"session {wrong[0]} is no line of the trace that asks for an answer", (
            f"list lines from 0 to {len(trace.lines) - 1} whose output length is not 0"
        )
    return None


def _of_prompts(plan: LoadPlan) -> _Fault:
    own_keys = RESERVED_BODY_KEYS.union(PROFILES[plan.profile])
    clash = sorted(own_keys & plan.extra_body.keys())
    if clash:
        return f"extra_body may not set {clash[0]!r}", "use the plan's own keys for it"
    if plan.turns > 1 and plan.turn_tokens is None:
        return "several turns need 'turn_tokens'", "add --turn-tokens: new tokens of each turn"
    if plan.turns > 1 and plan.shape not in rules.TURN_SHAPES:
        return f"shape {plan.shape} has no turns", f"use --shape {rules.TURN_SHAPES[0]}"
    returned = plan.return_token_ids and "return_token_ids" in PROFILES[plan.profile]
    if plan.turns > 1 and plan.endpoint == "completions" and not returned:
        return "a further turn needs the token ids of the answer", (
            "use --return-token-ids with --profile vllm or sglang, or --endpoint chat"
        )
    if plan.shape == "trace" and plan.shared_prefix_ratio:
        return "a trace has shared prefixes of its own", "leave shared_prefix_ratio out"
    return None


def _of_key(plan: LoadPlan) -> _Fault:
    name = plan.api_key_env
    if name is not None and plan.api_key_file is not None:
        return "api_key_env and api_key_file are both given", "give one of them"
    if name is not None and not os.environ.get(name):
        return f"environment variable {name} is empty", (
            f"export {name}=<key>, or leave api_key_env out"
        )
    if plan.api_key_file is not None:
        try:
            if Path(plan.api_key_file).stat().st_mode & 0o077:
                return f"group or others have rights to {plan.api_key_file}", (
                    f"chmod 600 {shlex.quote(plan.api_key_file)}"
                )
            key = Path(plan.api_key_file).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as refusal:
            return f"cannot read api_key_file: {refusal}", "give a readable file of one ASCII key"
        if not key or len(key.split()) != 1:
            return f"{plan.api_key_file} does not hold one key", "write the key alone into it"
    return None


def _of_instances(plan: LoadPlan) -> _Fault:
    if plan.instance in plan.more_instances:
        return f"instance {plan.instance!r} is named twice", "give each instance a name of its own"
    return None
