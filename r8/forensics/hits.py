"""C6: every measured request hit exactly its whole chunks, and they came from the device."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.forensics.balance import BALANCE_TOLERANCE
from r8.forensics.rule import Rule
from r8.message import Check, Fact, compared, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

REQUESTS = """
SELECT request_id, prompt_tokens, n_lookups, hit_tokens, computed_tokens
FROM engine_requests WHERE run_id = $run AND phase = 'measure' ORDER BY request_id
"""


def hits_exact(case: Case) -> list[Check]:
    """C6: hit tokens by request, the running server's own settings, and no DRAM tier."""
    rows = case.rows(REQUESTS)
    if not rows:
        return [missing("measured_requests", "no-measured-request")]
    checks = [_hit_tokens(case, rows), _prefix_cache_hits(rows), _retrieved(case)]
    checks += [check for instance in case.run.processes for check in _settings(case, instance)]
    return [*checks, _no_dram_tier(case)]


def _hit_tokens(case: Case, rows: list[tuple[Any, ...]]) -> Check:
    chunk = case.kv_run.expectation.chunk_tokens
    seen = [
        (request_id, hit, chunk * ((prompt - 1) // chunk))
        for request_id, prompt, _, hit, *_ in rows
        if prompt is not None and hit is not None
    ]
    wrong = [one for one in seen if one[1] != one[2]]
    first, hit, want = wrong[0] if wrong else ("", None, None)
    return compared(
        "requests_not_hitting_their_chunks",
        (len(wrong) if wrong or len(seen) == len(rows) else None, "==", 0),
        "c6-wrong-hit-tokens" if wrong else "c6-hit-tokens",
        unit="requests",
        facts={
            "exact": len(seen) - len(wrong),
            "requests": len(rows),
            "chunk": chunk,
            "planned": case.kv_run.expectation.hit_tokens_per_session,
            "unseen": len(rows) - len(seen),
            "first": first,
            "hit": hit,
            "want": want,
        },
    )


def _prefix_cache_hits(rows: list[tuple[Any, ...]]) -> Check:
    computed = [row[4] for row in rows if row[4] is not None]
    worst = max(computed, default=None)
    return compared(
        "prefix_cache_tokens",
        (worst if worst or len(computed) == len(rows) else None, "==", 0),
        "c6-prefix-cache",
        unit="tokens",
        facts={"known": len(computed), "requests": len(rows)},
    )


def _retrieved(case: Case) -> Check:
    """A hit that was not loaded is recomputed, and looks like a slow read."""
    rows = case.rows(
        "SELECT n, retrieved_tokens, n_retrieved FROM engine_sums "
        "WHERE run_id = $run AND phase = 'measure' AND instance IS NULL"
    )
    requests, loaded, known = rows[0]
    return compared(
        "retrieved_tokens",
        (loaded, "==", requests * case.kv_run.expectation.hit_tokens_per_session),
        "c6-retrieved",
        unit="tokens",
        facts={"requests": known},
    )


def _settings(case: Case, instance: str) -> list[Check]:
    config, expectation = case.server_config(instance), case.kv_run.expectation
    if config is None:
        return [missing("server_config", "c6-config-not-read", instance=instance)]
    wanted: dict[str, Fact] = {
        "enable_prefix_caching": False,
        "chunk_tokens": expectation.chunk_tokens,
        "cpu_tier_bytes": expectation.cpu_tier_bytes,
    }
    return [_setting(instance, key, config.get(key), want) for key, want in wanted.items()]


def _setting(instance: str, key: str, found: object, want: Fact) -> Check:
    shown = found if found is None or isinstance(found, str | int | float) else json.dumps(found)
    return compared(
        f"server_config.{key}",
        (shown, "==", want),
        "c6-setting",
        facts={"instance": instance, "key": key},
    )


def _no_dram_tier(case: Case) -> Check:
    hits, served = case.metric("engine_hit_bytes"), case.balance("uncovered_hit_bytes")
    if hits is None or served is None:
        return missing("dram_hit_bytes", "c6-dram-unknown")
    if not hits:
        return compared("engine_hit_bytes", (hits, ">", 0), "c6-nothing-hit", unit="bytes")
    return compared(
        "dram_hit_bytes", (served, "<=", BALANCE_TOLERANCE * hits), "c6-dram-hits", unit="bytes"
    )


C6 = Rule(
    rule_id="C6",
    checks=hits_exact,
    thresholds={"most_share": BALANCE_TOLERANCE},
    of_device=True,
    of_kv=True,
    of_engine=True,
)
