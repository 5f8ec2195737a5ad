"""The server log of a synthetic run, in the words of the real engine and of the patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.tests.support.run_factory import SyntheticRun

_HEAD = "\x1b[32;20m[2026-11-30 03:14:15,000] LMCache INFO:\x1b[0m"
_TAIL = "\x1b[3m(vllm_v1_adapter.py:1461:lmcache)\x1b[0m"


def log_lines(spec: SyntheticRun) -> Iterator[str]:
    """Lines of raw/server-a.log in the order of the phases."""
    yield "INFO 11-30 03:14:10 [api_server.py:1] synthetic server"
    if spec.mode is not None:
        yield (
            f"{_HEAD} R8-PATCH loaded module_sha256={spec.patch_sha256} mode={spec.mode} "
            f"threads=32 segment_bytes=1048576 odirect=1 path=/kv {_TAIL}"
        )
    if spec.fatal_line is not None:
        yield f"{_HEAD} {spec.fatal_line} {_TAIL}"
    sessions = range(len(spec.ttft_s))
    for session in sessions:
        yield from _request(spec, "populate", session, 0)
    for session in sessions:
        # A tier that is full refuses, evicts and grants.
        yield f"{_HEAD} Failed to allocate memory block of size {spec.chunk_bytes} because {_TAIL}"
        yield from _request(spec, "flush", 100 + session, 0)
    yield from _request(spec, "rewarm", 200, 0)
    yield from _burst(spec, "measure", len(spec.ttft_s) - spec.failures)
    yield from _burst(spec, "warm", len(spec.warm_ttft_s or ()))
    if spec.controls:
        yield from _request(spec, "control", 300, spec.expectation.hit_tokens_per_session)
        yield from _request(spec, "control", 301, spec.random_control_hit_tokens)


def _burst(spec: SyntheticRun, phase: str, n_requests: int) -> Iterator[str]:
    """One step that takes every request of the burst and then loads one after the other."""
    for session in range(n_requests):
        yield _lookup(spec, phase, session, spec.session_hit_tokens)
    for session in range(n_requests):
        yield from _rest(spec, phase, session, spec.session_hit_tokens)


def _request(spec: SyntheticRun, phase: str, session: int, hit: int | None) -> Iterator[str]:
    yield _lookup(spec, phase, session, hit)
    yield from _rest(spec, phase, session, hit)


def _engine_id(phase: str, session: int) -> str:
    # The engine adds the prompt's number and eight random characters to the response's id.
    return f"cmpl-{phase}-{session}-0-a1b2c3d4"


def _need(spec: SyntheticRun, hit: int | None) -> int:
    return max((hit or 0) - spec.computed_tokens, 0)


def _lookup(spec: SyntheticRun, phase: str, session: int, hit: int | None) -> str:
    hit_part = "None." if hit is None else f"{hit}, need to load: {_need(spec, hit)}"
    return (
        f"{_HEAD} Reqid: {_engine_id(phase, session)}, Total tokens {spec.prompt_tokens}, "
        f"Inference Engine computed tokens: {spec.computed_tokens}, LMCache hit tokens: "
        f"{hit_part} {_TAIL}"
    )


def _rest(spec: SyntheticRun, phase: str, session: int, hit: int | None) -> Iterator[str]:
    request, need, total = _engine_id(phase, session), _need(spec, hit), spec.prompt_tokens
    if hit:
        yield from _read(spec, hit)
        yield (
            f"{_HEAD} [req_id={request}] Retrieved {need} out of {need} required tokens "
            f"(from {total} total tokens). size: 0.1 gb, cost 1.0 ms, throughput: 0.1 GB/s; {_TAIL}"
        )
    elif phase != "rewarm":
        yield f"{_HEAD} [req_id={request}] Stored {total} out of total {total} tokens. {_TAIL}"


def _read(spec: SyntheticRun, hit_tokens: int) -> Iterator[str]:
    if spec.mode is None or not spec.patch_reads:
        return
    keys = hit_tokens // spec.chunk_tokens
    segments = keys * -(-spec.chunk_bytes // (1 << 20)) if spec.mode == "parallel" else keys
    yield (
        f"{_HEAD} R8-PATCH read id=1 path=sync keys={keys} segments={segments} "
        f"bytes={keys * spec.chunk_bytes} misses={spec.patch_misses} {_TAIL}"
    )
