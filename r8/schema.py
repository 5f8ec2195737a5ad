"""The tables of a run directory: every column with its type, unit and meaning.

Version history of the format
    1   first form
    2   run.json: kind, role, treatment, digest of the plan; a transfer is no KV run in disguise.
        Every device and file names its host (run.json, residency, calibration). `probes.value` is
        one column for whole and other numbers. `engine_log` has instants. One alphabet for names.

Journals are JSON lines whose keys are these column names; `run_id` is added at finalisation.

Every column of text also says how it travels in a redacted bundle (`Column.travels`); one that does
not say is left out of it. `r8/seal/redact.py` does what is said here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from r8.model import Phase, RequestOutcome

SCHEMA_VERSION = 2

# Words a column may hold, as the instruments write them: a test holds each list against the
# instrument's own constants, which this module must not import.
STAMPS = (
    *("kernel", "kernel-tls", "kernel-proxy", "kernel-proxy-tls"),
    *("user", "user-tls", "user-proxy", "user-proxy-tls"),
)
CHUNK_KINDS = ("role", "empty", "content", "reasoning", "usage", "done", "comment", "error")
RESIDENCY_METHODS = ("cachestat", "mincore")
ENGINE_LOG_KINDS = (
    *("lookup", "retrieved", "stored", "patch_loaded", "patch_read"),
    *("fatal", "trouble", "alloc_failed", "weights", "warning", "error"),
)
PROBE_NAMES = (
    *("disk", "process", "topology", "nic", "nfs", "nvme", "host", "engine", "gpu"),
    *("iostat", "self"),
)
FINISH_REASONS = (
    *("stop", "eos_token", "stop_sequence", "end_turn", "tool_calls", "function_call", "tool_use"),
    *("length", "max_tokens", "model_length"),
    *("abort", "error", "repetition", "cancelled", "timeout"),
    *("content_filter", "refusal", "insufficient_system_resource", "recover_stop"),
)
CALIBRATION_NAMES = ("ceiling", "serial", "client", "client-limit")
CALIBRATION_TOOLS = (
    *("fio", "own O_DIRECT threads", "own readinto", "null-server", "null-server-tls"),
)


def _words(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


_TYPES: dict[str, pa.DataType] = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "name": pa.string(),  # an id or name: one of `r8.model.NAME`
    "bool": pa.bool_(),
    "list<int64>": pa.list_(pa.int64()),
}


@dataclass(frozen=True, slots=True)
class Public:
    """A text of a closed form, kept as it is; a value of any other form gets a pseudonym."""

    words: tuple[str, ...] = ()
    form: str = r"(?!)"  # a regular expression beside the words

    def has(self, text: str) -> bool:
        """Whether a value has this form."""
        return text in self.words or re.fullmatch(self.form, text) is not None


@dataclass(frozen=True, slots=True)
class Pseudonymised:
    """A text whose names are replaced, each by one pseudonym in the whole bundle.

    `by` says what a name is in it: the `word`s between blanks, commas and slashes (R8's own words
    stay); an `id`, of which the beginning may stand elsewhere; the `whole` text; or the texts in
    the `facts` of a JSON object, of which only declared ones travel.
    """

    kind: str  # of the pseudonym: `host` makes host-1
    by: Literal["word", "id", "whole", "facts"] = "word"

    @property
    def free(self) -> bool:
        """Whether anybody's sentence may stand in it: a secret is looked for when it is written."""
        return self.by != "id"


Travels = Public | Pseudonymised
SHA256 = r"[0-9a-f]{64}"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `unit` is "" for text, names and counts without one."""

    name: str
    type: str  # a key of _TYPES
    unit: str
    meaning: str
    nullable: bool = True
    travels: Travels | None = None  # of a text; None: it is left out of a redacted bundle


@dataclass(frozen=True, slots=True)
class Table:
    """One Parquet file of a run directory, and the journal it is made from."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    def arrow(self) -> pa.Schema:
        """The Arrow schema, with units and meanings in the field metadata."""
        fields = [
            pa.field(
                column.name,
                _TYPES[column.type],
                nullable=column.nullable,
                metadata={"unit": column.unit, "meaning": column.meaning},
            )
            for column in self.columns
        ]
        return pa.schema(
            fields, metadata={"r8.schema_version": str(SCHEMA_VERSION), "r8.table": self.name}
        )


def _text(name: str, travels: Travels, meaning: str, *, nullable: bool = True) -> Column:
    return Column(name, "string", "", meaning, nullable, travels)


def _name(name: str, travels: Travels, meaning: str, *, nullable: bool = True) -> Column:
    return Column(name, "name", "", meaning, nullable, travels)


REQUEST_ID = Pseudonymised("request", "id")
_INSTANCE = Pseudonymised("instance")
_HOST = Pseudonymised("host")
_DEVICE = Pseudonymised("device")
_TEXT = Pseudonymised("text")
_RUN = _name("run_id", Pseudonymised("run"), "the run these rows belong to", nullable=False)
_MONO = "monotonic clock of the recording host"

REQUESTS = Table(
    "requests",
    "one row a request, failed ones included",
    (
        _RUN,
        _name("request_id", REQUEST_ID, "the client's id, unique in the run", nullable=False),
        _name("instance", _INSTANCE, "engine instance it was sent to", nullable=False),
        _name("phase", Public(tuple(Phase)), "r8.model.Phase", nullable=False),
        Column("session", "int64", "", "conversation session, from 0", nullable=False),
        _name("endpoint", Public(("completions", "chat")), "completions or chat", nullable=False),
        _name("outcome", Public(tuple(RequestOutcome)), "r8.model.RequestOutcome", nullable=False),
        _text("error", _TEXT, "why it is not ok"),
        Column("http_status", "int64", "", "status of the response"),
        Column("prompt_tokens_planned", "int64", "tokens", "prompt length asked for"),
        Column("prompt_tokens", "int64", "tokens", "prompt length by the server's usage"),
        Column("output_tokens", "int64", "tokens", "output length by the server's usage"),
        _text("finish_reason", Public(FINISH_REASONS), "as the server gave it"),
        _text("server_request_id", REQUEST_ID, "the response's id; joins the engine log"),
        _text("output_text", Pseudonymised("output", "whole"), "what was generated"),
        Column("output_token_ids", "list<int64>", "", "token ids, where the server returns them"),
        Column("request_bytes", "int64", "bytes", "size of the rendered request"),
        Column("scheduled_ns", "int64", "ns", f"barrier release or schedule slot, {_MONO}"),
        Column("connected_ns", "int64", "ns", f"connection established, {_MONO}"),
        Column("sent_ns", "int64", "ns", f"just before the first request byte, {_MONO}"),
        Column("sent_done_ns", "int64", "ns", f"last request byte handed to the kernel, {_MONO}"),
        Column("first_byte_ns", "int64", "ns", f"arrival of the first response byte, {_MONO}"),
        Column("first_content_ns", "int64", "ns", f"first non-empty content arrived, {_MONO}"),
        Column("first_answer_ns", "int64", "ns", f"first content that is not reasoning, {_MONO}"),
        Column("last_content_ns", "int64", "ns", f"arrival of the last content, {_MONO}"),
        Column("done_ns", "int64", "ns", f"arrival of the end of the stream, {_MONO}"),
        _text("stamp", Public(STAMPS), f"how arrivals were stamped, and the way: {_words(STAMPS)}"),
    ),
)

CHUNKS = Table(
    "chunks",
    "one row an event of a response stream",
    (
        _RUN,
        _name("request_id", REQUEST_ID, "the request", nullable=False),
        Column("seq", "int64", "", "position in the stream, from 0", nullable=False),
        Column("arrival_ns", "int64", "ns", f"arrival, {_MONO}", nullable=False),
        _name("kind", Public(CHUNK_KINDS), _words(CHUNK_KINDS), nullable=False),
        Column("tokens", "int64", "tokens", "tokens in this event, where the server says"),
        Column("event_bytes", "int64", "bytes", "size of the event on the wire"),
    ),
)

PROBES = Table(
    "probes",
    "one row a sample of a raw counter or state",
    (
        _RUN,
        _name(
            "probe", Public(PROBE_NAMES), "disk, process.. as `probes status` lists", nullable=False
        ),
        _name("host", _HOST, "host the sample was taken on", nullable=False),
        _text("device", _DEVICE, "device, pid:starttime, instance or -", nullable=False),
        _text(
            "counter",
            Pseudonymised("counter"),
            "name of the counter, unit as suffix",
            nullable=False,
        ),
        Column("value", "float64", "", "number read, unit by the counter's suffix; whole to 2^53"),
        _text("text", _TEXT, "a word or state, where it is no number"),
        _text("reason", _TEXT, "why there is neither: absent, denied, failed.."),
        Column("mono_ns", "int64", "ns", f"instant after the read, {_MONO}", nullable=False),
        Column("wall_ns", "int64", "ns", "the same by wall clock, joins hosts", nullable=False),
        Column("read_cost_ns", "int64", "ns", "how long the read took"),
        Column("epoch", "int64", "", "grows when a counter regressed or a device was replaced"),
    ),
)

EVENTS = Table(
    "events",
    "phase marks and what the lab did, in order",
    (
        _RUN,
        _name("name", Pseudonymised("event"), "what happened", nullable=False),
        Column("mono_ns", "int64", "ns", f"instant, {_MONO}", nullable=False),
        Column("wall_ns", "int64", "ns", "the same on the wall clock", nullable=False),
        _text("detail", Pseudonymised("text", "facts"), "JSON object with the event's own facts"),
    ),
)

RESIDENCY = Table(
    "residency",
    "page-cache residency of every KV file, at named moments",
    (
        _RUN,
        _name("moment", Pseudonymised("moment"), "after_populate, after_drop..", nullable=False),
        _name("host", _HOST, "host the file lies on", nullable=False),
        _text(
            "path", Pseudonymised("file"), "file name relative to the KV directory", nullable=False
        ),
        Column("size_bytes", "int64", "bytes", "size of the file"),
        Column("resident_bytes", "int64", "bytes", "bytes of it in the page cache"),
        _text("device", _DEVICE, "block device of its st_dev"),
        _name(
            "method", Public(RESIDENCY_METHODS), f"how it was asked: {_words(RESIDENCY_METHODS)}"
        ),
        Column("self_test", "bool", "", "the method saw an evicted temporary file as evicted"),
        _text("reason", _TEXT, "why residency is not known"),
        Column("mono_ns", "int64", "ns", f"instant, {_MONO}", nullable=False),
    ),
)

ENGINE_LOG = Table(
    "engine_log",
    "the engine's own lines that say what LMCache and the patch did",
    (
        _RUN,
        _name("instance", _INSTANCE, "engine instance", nullable=False),
        Column("line", "int64", "", "line number in the raw log, from 1", nullable=False),
        Column("mono_ns", "int64", "ns", f"instant the line gives, {_MONO}; NULL without one"),
        Column("wall_ns", "int64", "ns", "the same on the wall clock of the recording host"),
        _name("kind", Public(ENGINE_LOG_KINDS), _words(ENGINE_LOG_KINDS), nullable=False),
        _text("server_request_id", REQUEST_ID, "vLLM's request id"),
        Column("total_tokens", "int64", "tokens", "prompt tokens of the request"),
        Column("computed_tokens", "int64", "tokens", "found in the engine's own prefix cache"),
        Column("hit_tokens", "int64", "tokens", "found in LMCache, tier not told"),
        Column("need_tokens", "int64", "tokens", "to be loaded"),
        Column("retrieved_tokens", "int64", "tokens", "loaded"),
        Column("required_tokens", "int64", "tokens", "asked to be loaded"),
        Column("stored_tokens", "int64", "tokens", "written to the tiers"),
        Column("keys", "int64", "", "chunk files asked of the patch"),
        Column("segments", "int64", "", "segments read by the patch"),
        Column("misses", "int64", "", "chunks the patch answered as a miss"),
        Column("read_bytes", "int64", "bytes", "bytes read by the patch"),
        _text("digest", Public(form=SHA256), "SHA-256 the patch module gives of itself"),
        _text("mode", Public(("parallel", "serial")), "parallel or serial"),
        _text("text", _TEXT, "the line, colour codes removed", nullable=False),
    ),
)

CALIBRATION = Table(
    "calibration",
    "what the device itself gives, measured in the same campaign",
    (
        _RUN,
        _name("name", Public(CALIBRATION_NAMES), _words(CALIBRATION_NAMES), nullable=False),
        _text("tool", Public(CALIBRATION_TOOLS), _words(CALIBRATION_TOOLS), nullable=False),
        _name("host", _HOST, "host that was measured", nullable=False),
        _text("device", _DEVICE, "device of the site file, or loopback", nullable=False),
        Column("read_bytes", "int64", "bytes", "bytes read"),
        Column("elapsed_ns", "int64", "ns", "first submission to last completion"),
        Column("block_bytes", "int64", "bytes", "size of one request"),
        Column("queue_depth", "int64", "", "requests in flight"),
        Column("direct", "bool", "", "O_DIRECT"),
        Column("n", "int64", "", "samples, for client calibration"),
        Column("send_lag_p99_ns", "int64", "ns", "client calibration: sent less scheduled"),
        Column("ttft_error_p50_ns", "int64", "ns", "client calibration against the server's truth"),
        Column("ttft_error_max_ns", "int64", "ns", "client calibration against the server's truth"),
        Column("mono_ns", "int64", "ns", f"instant, {_MONO}", nullable=False),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (REQUESTS, CHUNKS, PROBES, EVENTS, RESIDENCY, ENGINE_LOG, CALIBRATION)
}
