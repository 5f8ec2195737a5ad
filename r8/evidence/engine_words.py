"""What engines say that something is wrong, and what R8 takes each form to mean.

A form is known by its words, on whichever rank, request or tier it is printed. A line that an
engine itself calls a warning or an error and that has no form here is kept as that: nobody judged
it, and the certificate says how many there are. Sources name the file that prints the words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """Words of an engine, as a regular expression, and the kind of row they make."""

    kind: str
    words: str
    source: str


# fatal: the server recomputes in silence or is about to die; its health check stays green.
# trouble: KV that was to be loaded was not, or not in time. The engine goes on: the request waited
#   for nothing, or its tokens were computed after all.
# alloc_failed: a full tier refused a buffer. One a chunk is usual: refused, evicted, granted.
# weights: an engine that loads a model says what, how large that is, and what the load took.
FORMS = (
    Form("fatal", "Failed to initialize LMCacheManager components", "LMCache manager.py 0.4-0.5"),
    Form("fatal", r"will operate in degraded mode", "LMCache manager.py 0.4-0.5"),
    Form("fatal", r"entering degraded mode", "LMCache health_monitor, vLLM adapter of MP mode"),
    Form("fatal", r"LMCacheEngine marked as init failed", "LMCache cache_engine.py 0.4-0.5"),
    Form("fatal", r"LMCache is unhealthy, skipping", "LMCache cache_engine.py 0.4-0.5"),
    Form("fatal", r"for rank .{1,200}, recreating all sockets", "LMCache zmq_transport.py 0.4-0.5"),
    Form("fatal", r"Bypassing LMCache for request", "LMCache lmcache_mp_connector.py 0.5"),
    Form("fatal", r"Dropping store for request .* server is unhealthy", "LMCache MP adapter 0.5"),
    Form("trouble", r"blocking timeout, trigger cancel", "LMCache remote_backend.py"),
    Form("trouble", r"batched_async_contains timed out", "LMCache remote_backend.py"),
    Form("trouble", r"batched_get_non_blocking timed out", "LMCache remote_backend.py"),
    Form("trouble", r"still waiting for async lookup after", "LMCache async lookup client 0.4-0.5"),
    Form("trouble", r"Lookup results \(number of hit tokens\) differ", "LMCache lookup client"),
    Form("trouble", r"Failed to allocate memory during remote receive", "LMCache connectors"),
    Form("trouble", r"Memory allocation failed during a?sync disk load", "LMCache disk backends"),
    Form("trouble", r"Failed to load chunk from disk", "LMCache local_disk_backend.py 0.5.6"),
    # The buffer it was to be read into is given out all the same.
    Form("trouble", r"File not found on disk:", "LMCache local_disk_backend.py 0.5"),
    Form("trouble", r"No memory for chunk", "R8's patch"),
    Form("trouble", r"is in the storage, but it can't be retrieved", "LMCache cache_engine.py"),
    Form("trouble", r"retrieved tokens is less than the expected number", "LMCache adapter"),
    Form("trouble", r"failed to load \d+ tokens across", "LMCache vllm_v1_adapter.py 0.4-0.5"),
    Form("trouble", r"KV load failure", "vLLM scheduler.py 0.11-0.27: recovered from, or due to"),
    Form("alloc_failed", r"Failed to allocate memory block of size", "LMCache memory_management"),
    Form("alloc_failed", r"Failed to batched allocate \d+ memory blocks", "LMCache 0.4-0.5"),
    Form("alloc_failed", r"No eviction candidates found in local cpu backend", "LMCache"),
    Form("weights", r"Starting to load model", "vLLM gpu_model_runner.py"),
    Form("weights", r"Checkpoint size:", "vLLM weight_utils.py"),
    Form("weights", r"Loading weights took", "vLLM default_loader.py"),
    Form("weights", r"Model loading took", "vLLM gpu_model_runner.py"),
)
KINDS = tuple(dict.fromkeys(form.kind for form in FORMS))
# What nobody judged, by the level the engine gave it.
UNJUDGED = {"WARNING": "warning", "ERROR": "error", "CRITICAL": "error"}

# One pass over a line: a group a kind, the first kind of the list first.
_KNOWN = re.compile(
    "|".join(
        f"(?P<{kind}>{'|'.join(form.words for form in FORMS if form.kind == kind)})"
        for kind in KINDS
    )
)
# `[2026-11-30 03:14:15,926] LMCache WARNING: ` of LMCache, `WARNING 11-30 03:14:15 [file.py:1] ` of
# vLLM (0.9-0.2x; a process in brackets may stand before it), `ERROR:    ` of uvicorn.
_LEVEL = re.compile(
    r"LMCache (?P<lmcache>WARNING|ERROR|CRITICAL): "
    r"|\b(?P<vllm>WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \["
    r"|^(?P<uvicorn>WARNING|ERROR|CRITICAL): "
)


def kind_of(text: str) -> str | None:
    """The kind of row a line makes by its words; None when they are none of the forms."""
    known = _KNOWN.search(text)
    return None if known is None else known.lastgroup


def unjudged(text: str) -> str | None:
    """`warning` or `error` where the engine calls its line that; None for any other line."""
    level = _LEVEL.search(text)
    return None if level is None else UNJUDGED[str(level[str(level.lastgroup)])]
