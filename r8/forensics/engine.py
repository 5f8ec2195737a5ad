"""E1 and E3: the engine's log says that its KV tier worked, for as long as the engine lived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.evidence.engine_words import UNJUDGED
from r8.forensics.rule import Rule
from r8.message import Check, compared, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

# A full tier refuses once a chunk, evicts and grants. An engine that waits asks fifty times a
# second (our patch) or ten times (LMCache), so a wait of seconds is far above four a chunk.
REFUSALS_A_CHUNK = 4
TEXT_CHARS = 160  # of an engine's line, as evidence
# Of a kind of line: how many lines there are at all, how many of the kind, and the first of them.
_LINES = """
SELECT count(*), count(*) FILTER (kind IN $kinds), min(line) FILTER (kind IN $kinds),
       arg_min(text, line) FILTER (kind IN $kinds)
FROM engine_log WHERE run_id = $run AND instance = $instance
"""
# The longest row of refusals between two loads or stores, of one worker process: the ranks of an
# engine write into one log, each with its pid.
_REFUSED = """
WITH lines AS (
    SELECT line, kind, log_worker(text) AS worker FROM engine_log
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


def engine_sound(case: Case) -> list[Check]:
    """E1: no line of the engine's log says that it fell back to recompute."""
    checks = []
    for name in case.run.processes:
        checks.append(_none_of(case, name, "fatal", "e1-fatal", "e1-sound"))
        checks += _not_judged(case, name)
    return checks or [missing("instances", "no-instance")]


def no_load_failed(case: Case) -> list[Check]:
    """E3: what the whole log of the engine's life says, the cells before this one included."""
    checks = []
    for name in case.run.processes:
        failed = _none_of(case, name, "trouble", "e3-failed-load", "e3-no-failed-load")
        checks += [failed] if failed.measured is None else [failed, _refusals(case, name)]
    return checks or [missing("instances", "no-instance")]


def _none_of(case: Case, instance: str, kind: str, some: str, none: str) -> Check:
    lines, count, first, text = case.rows(_LINES, instance=instance, kinds=[kind])[0]
    if not lines:
        return missing(f"{kind}_lines", "no-engine-log", instance=instance)
    return compared(
        f"{kind}_lines",
        (count, "==", 0),
        some if count else none,
        unit="lines",
        facts={
            "instance": instance,
            "lines": lines,
            "first": first,
            "text": (text or "")[:TEXT_CHARS],
        },
    )


def _not_judged(case: Case, instance: str) -> list[Check]:
    """Warnings and errors of the engine that have no known form: told, and no more than that."""
    kinds = list(dict.fromkeys(UNJUDGED.values()))
    _, count, first, text = case.rows(_LINES, instance=instance, kinds=kinds)[0]
    if not count:
        return []
    facts = {"instance": instance, "first": first, "text": text[:TEXT_CHARS]}
    return [
        compared(
            "lines_not_judged",
            (count, "known", None),
            "e1-not-judged",
            unit="lines",
            facts=facts,
        )
    ]


def _refusals(case: Case, instance: str) -> Check:
    expectation = case.kv_run.expectation
    chunks = expectation.hit_tokens_per_session // expectation.chunk_tokens
    rows = case.rows(_REFUSED, instance=instance)
    if not rows:
        return missing("refusals_in_a_row", "e3-no-refusal", instance=instance)
    longest, line = rows[0]
    return compared(
        "refusals_in_a_row",
        (longest, "<=", REFUSALS_A_CHUNK * chunks),
        "e3-refusals",
        unit="buffers",
        facts={
            "instance": instance,
            "line": line,
            "refusals_a_chunk": REFUSALS_A_CHUNK,
            "chunks": chunks,
        },
    )


E1 = Rule(rule_id="E1", checks=engine_sound, of_kv=True, of_engine=True)
E3 = Rule(
    rule_id="E3",
    checks=no_load_failed,
    thresholds={"refusals_a_chunk": REFUSALS_A_CHUNK},
    of_kv=True,
    of_engine=True,
)
