"""C6: every measured request hit exactly its whole chunks, and they came from the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.forensics.balance import BALANCE_TOLERANCE
from r8.forensics.rule import Check, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

REQUESTS = """
SELECT request_id, prompt_tokens, n_lookups, hit_tokens, computed_tokens, retrieved_tokens
FROM engine_requests WHERE run_id = $run AND phase = 'measure' ORDER BY request_id
"""


def hits_exact(case: Case) -> list[Check]:
    """C6: hit tokens by request, the running server's own settings, and no DRAM tier."""
    rows = case.rows(REQUESTS)
    if not rows:
        return [missing("no measured request", "The run holds no request of phase measure.")]
    checks = [_hit_tokens(case, rows), _prefix_cache_hits(rows), _retrieved(case, rows)]
    checks += [check for instance in case.run.instances for check in _settings(case, instance)]
    return [*checks, _no_dram_tier(case)]


def _hit_tokens(case: Case, rows: list[tuple[Any, ...]]) -> Check:
    chunk = case.run.expectation.chunk_tokens
    exact, wrong, unseen = 0, [], 0
    for request_id, prompt, _, hit, _, _ in rows:
        if prompt is None or hit is None:
            unseen += 1
            continue
        want = chunk * ((prompt - 1) // chunk)
        if hit == want:
            exact += 1
        else:
            wrong.append(f"{request_id} hit {hit} of {want}")
    want = case.run.expectation.hit_tokens_per_session
    line = f"{exact} of {len(rows)} requests hit {chunk}*floor((prompt-1)/{chunk}) = {want} tokens"
    line += f", {wrong[0]}" if wrong else ""
    line += f", {unseen} without a lookup line" if unseen else ""
    return Check(
        arithmetic=line,
        held=False if wrong else (None if unseen else True),
        otherwise="A request did not load exactly its populated chunks; "
        "see its lookup line in the engine log.",
    )


def _prefix_cache_hits(rows: list[tuple[Any, ...]]) -> Check:
    computed = [row[4] for row in rows if row[4] is not None]
    worst = max(computed, default=None)
    line = f"most tokens in the engine's own prefix cache: {worst}"
    return Check(
        arithmetic=line,
        held=False if worst else (True if len(computed) == len(rows) else None),
        otherwise="The engine answered from its own prefix cache, or did not say.",
    )


def _retrieved(case: Case, rows: list[tuple[Any, ...]]) -> Check:
    """A hit that was not loaded is recomputed, and looks like a slow read."""
    loaded = [row[5] for row in rows if row[5] is not None]
    want = len(rows) * case.run.expectation.hit_tokens_per_session
    return Check(
        arithmetic=f"{sum(loaded)} tokens retrieved by {len(loaded)} requests = {want}",
        held=sum(loaded) == want if loaded else None,
        otherwise="What was found was not all loaded: the engine recomputed the rest.",
    )


def _settings(case: Case, instance: str) -> list[Check]:
    details = [
        event.detail
        for event in case.events("server_config")
        if event.detail.get("instance") == instance
    ]
    if not details:
        return [
            missing(
                f"{instance}: the running server's configuration was not read",
                "A request for a setting is no proof that it is in force.",
            )
        ]
    config, expectation = details[-1], case.run.expectation
    wanted = {
        "enable_prefix_caching": False,
        "chunk_tokens": expectation.chunk_tokens,
        "cpu_tier_bytes": expectation.cpu_tier_bytes,
    }
    return [_setting(instance, key, config.get(key), want) for key, want in wanted.items()]


def _setting(instance: str, key: str, found: object, want: object) -> Check:
    same = type(found) is type(want) and found == want
    return Check(
        arithmetic=f"{instance}: {key} {found} = {want}",
        held=None if found is None else same,
        otherwise=f"The running server's {key} is not what the plan assumes.",
    )


def _no_dram_tier(case: Case) -> Check:
    hits, device = case.metric("engine_hit_bytes"), case.metric("device_read_bytes")
    if hits is None or device is None:
        return missing(
            "bytes from the DRAM tier not known", "Hit bytes or device bytes are missing."
        )
    served = max(0, hits - device)
    return Check(
        arithmetic=f"hits not covered by the device {served} B <= "
        f"{round(BALANCE_TOLERANCE * hits)} B",
        held=served <= BALANCE_TOLERANCE * hits and hits > 0,
        otherwise="A tier in DRAM served hits: no log line names the tier, the bytes do.",
    )
