"""E3: no load of KV failed, timed out, or stood still for want of a buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Check, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

# A full tier refuses once a chunk, evicts and grants. An engine that waits asks fifty times a
# second (our patch) or ten times (LMCache), so a wait of seconds is far above four a chunk.
REFUSALS_A_CHUNK = 4
_TROUBLE = """
SELECT count(*), count(*) FILTER (kind = 'trouble'), min(line) FILTER (kind = 'trouble'),
       arg_min(text, line) FILTER (kind = 'trouble')
FROM engine_log WHERE run_id = $run AND instance = $instance
"""
# The longest row of refusals between two loads or stores, of one worker process: the ranks of an
# engine write into one log, each with its pid.
_REFUSED = r"""
WITH lines AS (
    SELECT line, kind, regexp_extract(text, 'pid=(\d+)', 1) AS worker FROM engine_log
    WHERE run_id = $run AND instance = $instance
      AND kind IN ('retrieved', 'stored', 'patch_read', 'alloc_failed')
),
stretches AS (
    SELECT worker, kind, line,
           count(*) FILTER (kind <> 'alloc_failed') OVER (PARTITION BY worker ORDER BY line) AS part
    FROM lines
)
SELECT count(*), min(line) FROM stretches WHERE kind = 'alloc_failed'
GROUP BY worker, part ORDER BY count(*) DESC, min(line) LIMIT 1
"""


def no_load_failed(case: Case) -> list[Check]:
    """E3: what the whole log of the engine's life says, the cells before this one included."""
    checks = [check for name in case.run.instances for check in _of_instance(case, name)]
    return checks or [missing("the run names no instance", "run.json lists no engine instance.")]


def _of_instance(case: Case, instance: str) -> list[Check]:
    lines, trouble, first, text = case.rows(_TROUBLE, instance=instance)[0]
    if not lines:
        return [missing(f"{instance}: no engine log", f"See raw/server-{instance}.log.")]
    where = f", first in line {first}: {text[:160]}" if trouble else ""
    failed = Check(
        arithmetic=f"{instance}: {trouble} lines of failed or timed-out loads{where}",
        held=trouble == 0,
        otherwise="A request waited in vain or computed what it should have loaded; is the DRAM "
        "tier smaller than what is loaded at once?",
    )
    return [failed, _refusals(case, instance)]


def _refusals(case: Case, instance: str) -> Check:
    expectation = case.run.expectation
    chunks = expectation.hit_tokens_per_session // expectation.chunk_tokens
    rows = case.rows(_REFUSED, instance=instance)
    if not rows:
        return missing(
            f"{instance}: no refused buffer in the whole log",
            "A tier that flushing has filled refuses before it evicts: either it was never full, "
            "or the log, or the R8 that read it, leaves such lines out.",
        )
    longest, line = rows[0]
    limit = REFUSALS_A_CHUNK * chunks
    return Check(
        arithmetic=f"{instance}: at most {longest} buffers refused in a row from line {line} on "
        f"<= {limit} "
        f"({REFUSALS_A_CHUNK} x {chunks} chunks of a session)",
        held=longest <= limit,
        otherwise="The engine stood and waited for buffers of its DRAM tier.",
    )
