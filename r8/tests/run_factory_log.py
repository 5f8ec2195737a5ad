"""The server log of a synthetic run, in the words of the real engine and of the patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.tests.run_factory import SyntheticRun

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
    for session in sessions[: len(spec.ttft_s) - spec.failures]:
        yield from _request(spec, "measure", session, spec.session_hit_tokens)
    for session in range(len(spec.warm_ttft_s or ())):
        yield from _request(spec, "warm", session, spec.session_hit_tokens)
    if spec.controls:
        yield from _request(spec, "control", 300, spec.expectation.hit_tokens_per_session)
        yield from _request(spec, "control", 301, spec.random_control_hit_tokens)


def _request(spec: SyntheticRun, phase: str, session: int, hit: int | None) -> Iterator[str]:
    # The engine adds the prompt's number and eight random characters to the response's id.
    request = f"cmpl-{phase}-{session}-0-a1b2c3d4"
    found = hit or 0
    need = max(found - spec.computed_tokens, 0)
    total = spec.prompt_tokens
    hit_part = "None." if hit is None else f"{hit}, need to load: {need}"
    yield (
        f"{_HEAD} Reqid: {request}, Total tokens {total}, Inference Engine computed tokens: "
        f"{spec.computed_tokens}, LMCache hit tokens: {hit_part} {_TAIL}"
    )
    if found:
        yield from _read(spec, found)
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
