"""How exact this client is on this machine: one burst against the null server.

The null server records the true instants of every stream. What is compared:

    send lag    = sent - scheduled, on the client
    TTFT error  = (first content - sent) by the client
                  - (first content handed to the kernel - kernel stamp of the first byte) by truth
    chunk lag   = arrival by the client - hand-over by the server, over all content chunks
    send skew   = last - first kernel stamp of a first byte

The burst runs through the same code as a real phase. What it cannot show: the network between hosts
(both ends are on loopback here), and a client that shares its core with other work later on.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..clock import Clock
from ..errors import ClientError
from ..phase.progress import PhaseProgress
from ..phase.run import run_phase
from ..processes import pin
from ..workload.plan import LoadPlan, make_plan
from ..workload.render import render_body
from ..workload.token_generator import prompt_token_ids, session_digits
from .certificate import make_certificate
from .null_process import calibration_failed, start_null_server
from .null_server import Script

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# As many ids as a model of today has, as long as they get: six digits and a comma a token. A plan's
# default of a thousand is cheaper to write.
_SESSION_VOCAB = (100_000, 150_000)
_TOKEN_BYTES = 7
_SPARE_S = 30.0  # beyond the script, before a stream is given up
# What a row of the calibration table is called, and what it was measured against.
ROW_NAME = "client"
TOOLS = ("null-server", "null-server-tls")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBurst:
    """What to run: `request_bytes` is the exact size of a request's body."""

    concurrency: int
    request_bytes: int
    ttft_ns: int = 500_000_000
    chunks: int = 64
    interval_ns: int = 20_000_000
    client_cpus: Sequence[int] | None = None
    server_cpus: Sequence[int] | None = None
    tls: bool = False
    connect: str = "before"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationResult:
    """A row of calibration.jsonl, and figures for which it has no column."""

    row: dict[str, Any]
    detail: dict[str, Any] = field(default_factory=dict)


def inverted_cdf(values: Sequence[int], q: float) -> int:
    """The smallest value with at least the fraction `q` of the sample at or below it."""
    if not values or not 0 < q <= 1:
        raise ValueError(f"no quantile {q} of {len(values)} values")
    return sorted(values)[math.ceil(q * len(values)) - 1]


def calibrate(asked: CalibrationBurst) -> CalibrationResult:
    """Run the burst; raises ClientError when a stream failed or truth is missing."""
    if asked.tls and asked.connect == "inside":
        raise ClientError(
            "the null server cannot stamp a request that follows its TLS handshake at once",
            where="--tls with --connect inside",
            next_step="calibrate the two apart",
        )
    plan = make_plan(plan_values(asked), "calibrate")
    with tempfile.TemporaryDirectory(prefix="load_client-") as name:
        directory = Path(name)
        served, trusted = make_certificate(directory) if asked.tls else (None, None)
        script = Script(
            requests=asked.concurrency,
            prompt_tokens=plan.prompt_tokens,
            ttft_ns=asked.ttft_ns,
            chunks=asked.chunks,
            interval_ns=asked.interval_ns,
            certificate=served,
        )
        with start_null_server(script) as server:
            if asked.server_cpus is not None:
                pin(server.process.pid, asked.server_cpus, "--server-cpus")
            plan = replace(plan, base_url=server.url, ca_file=trusted)
            requests, chunks, cpu_s = _burst(asked, plan, directory)
            truth = {one["request_id"]: one for one in server.answer()}
    return _compare(asked, requests, chunks, truth, cpu_s)


def _burst(
    asked: CalibrationBurst, plan: LoadPlan, directory: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
    with _pinned(asked.client_cpus):
        begin_s = time.process_time()
        progress = PhaseProgress(sys.stderr, "calibrate", asked.concurrency, quiet=True)
        summary = run_phase(plan, directory, progress, Clock())
        cpu_s = time.process_time() - begin_s
    requests = _rows(directory / "requests.jsonl")
    if not summary.all_ok:
        raise calibration_failed(_what_failed(asked.concurrency, requests))
    return requests, _rows(directory / "chunks.jsonl"), cpu_s


def _what_failed(asked: int, requests: Sequence[dict[str, Any]]) -> str:
    """How many streams failed, how, and the first reason."""
    bad = [row for row in requests if row["outcome"] != "ok"]
    kinds = Counter(row["outcome"] for row in bad)
    if asked > len(requests):
        kinds["not sent"] = asked - len(requests)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    reason = f", first reason: {bad[0]['error']}" if bad else ""
    return f"{kinds.total()} of {asked} streams failed ({counts}){reason}"


def plan_values(asked: CalibrationBurst) -> dict[str, Any]:
    """A completions plan whose bodies have exactly the size asked for; the URL is yet to come."""
    values: dict[str, Any] = {
        "phase": "probe",
        "instance": "null",
        "base_url": "http://127.0.0.1:1",  # the null server chooses its port
        "model": "null",
        "sessions": list(range(asked.concurrency)),
        "prompt_tokens": session_digits(_SESSION_VOCAB),
        "output_tokens": asked.chunks,
        "concurrency": asked.concurrency,
        "vocab": list(_SESSION_VOCAB),
        "connect": asked.connect,
        "timeout_s": (asked.ttft_ns + asked.chunks * asked.interval_ns) / 1e9 + _SPARE_S,
        "extra_body": {"user": ""},
    }
    where = "calibrate"
    spare = asked.request_bytes - _body_bytes(make_plan(values, where))
    if spare < 0:
        raise ClientError(
            f"a request body has at least {asked.request_bytes - spare} bytes",
            where="--request-bytes",
            next_step=f"give {asked.request_bytes - spare} or more",
        )
    values["prompt_tokens"] += spare // _TOKEN_BYTES
    values["extra_body"] = {"user": "x" * (spare % _TOKEN_BYTES)}
    return values


def _body_bytes(plan: LoadPlan) -> int:
    ids = prompt_token_ids(
        seed=plan.seed,
        session=0,
        prompt_tokens=plan.prompt_tokens,
        vocab=plan.vocab,
        group=0,
        shared=0,
    )
    return len(render_body(plan, ids))


def _compare(
    asked: CalibrationBurst,
    requests: list[dict[str, Any]],
    chunks: list[dict[str, Any]],
    truth: dict[str, dict[str, Any]],
    cpu_s: float,
) -> CalibrationResult:
    missing = sum(row["request_id"] not in truth for row in requests)
    if missing:
        raise calibration_failed(
            f"the null server did not serve {missing} of {len(requests)} requests"
        )
    blind = sum(one["first_byte_ns"] is None for one in truth.values())
    if blind:
        seen = f"no kernel stamp of {blind} of {len(truth)} requests"
        raise calibration_failed(
            f"the null server has {seen} (or the wall clock was set meanwhile)"
        )
    send_lags = [row["sent_ns"] - row["scheduled_ns"] for row in requests]
    errors = [_ttft_error_ns(row, truth[row["request_id"]]) for row in requests]
    lags = _chunk_lags(chunks, truth)
    first_bytes = [one["first_byte_ns"] for one in truth.values()]
    # From the barrier: what a user's first request pays, when it connects inside the burst.
    connects = [row["connected_ns"] - row["scheduled_ns"] for row in requests]
    magnitudes = [abs(error) for error in errors]
    row = {
        "name": ROW_NAME,
        "tool": TOOLS[asked.tls],
        "device": "loopback",
        "read_bytes": None,
        "elapsed_ns": max(r["done_ns"] for r in requests) - min(r["sent_ns"] for r in requests),
        "block_bytes": asked.request_bytes,
        "queue_depth": asked.concurrency,
        "direct": None,
        "n": len(requests),
        "send_lag_p99_ns": inverted_cdf(send_lags, 0.99),
        "ttft_error_p50_ns": inverted_cdf(magnitudes, 0.5),
        "ttft_error_max_ns": max(magnitudes),
        "mono_ns": time.monotonic_ns(),
    }
    return CalibrationResult(
        row=row,
        detail={
            "stamps": sorted({str(r["stamp"]) for r in requests}),
            "ttft_error_p95_ns": inverted_cdf(magnitudes, 0.95),
            "ttft_error_least_ns": min(errors),
            "send_skew_ns": max(first_bytes) - min(first_bytes),
            "chunk_lag_p50_ns": inverted_cdf(lags, 0.5),
            "chunk_lag_p99_ns": inverted_cdf(lags, 0.99),
            "chunk_lag_max_ns": max(lags),
            "client_cpu_s": cpu_s,
            "connect": asked.connect,
            "connect_p50_ns": inverted_cdf(connects, 0.5) if asked.connect == "inside" else None,
            "connect_max_ns": max(connects) if asked.connect == "inside" else None,
        },
    )


def _ttft_error_ns(row: dict[str, Any], truth: dict[str, Any]) -> int:
    said_ns = row["first_content_ns"] - row["sent_ns"]
    return int(said_ns - (truth["writes_ns"][0] - truth["first_byte_ns"]))


def _chunk_lags(chunks: list[dict[str, Any]], truth: dict[str, dict[str, Any]]) -> list[int]:
    written = {name: iter(one["writes_ns"]) for name, one in truth.items()}
    return [
        chunk["arrival_ns"] - next(written[chunk["request_id"]])
        for chunk in chunks
        if chunk["kind"] == "content"
    ]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


@contextmanager
def _pinned(cpus: Sequence[int] | None) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    if cpus is not None:
        pin(0, cpus, "--client-cpus")
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
