"""E2: the engine's own counters tell the same story as its log, request by request.

An engine that loads a model instead must name in its log the directory and the size it was given,
and what it says its load took must fit into what was seen.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from r8.forensics.rule import Rule
from r8.forensics.transfer import ENGINE
from r8.message import Check, compared, missing, not_applicable
from r8.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from r8.forensics.case import Case, Window

# vLLM's counters; both names are the same before and since its metrics carry `_total`.
EXTERNAL_HITS = "vllm:external_prefix_cache_hits"
PREFIX_HITS = "vllm:prefix_cache_hits"
# An engine prints hundredths of a second, and its line is looked for every few milliseconds.
SAID_ERROR_S = 0.02
# It prints hundredths of a GiB.
SAID_ERROR_GIB = 0.0051
_LOADS = """
SELECT w.worker, w.outcome, w.load_ns / 1e9, w.detail, w.bytes, l.said_s,
       l.said_gib, l.said_directory
FROM work w LEFT JOIN engine_loads l USING (run_id, worker)
WHERE w.run_id = $run AND w.phase = 'measure' ORDER BY w.worker
"""


def counters_agree(case: Case) -> list[Check]:
    """E2: response ids joined to lookup lines, and counters of /metrics to the sum of the lines."""
    window = case.window("measure")
    if window is None:
        return [missing("measure_window", "no-measure-window")]
    checks = [_joined(case)]
    for instance in case.run.processes:
        checks += _instance(case, instance, window)
    return checks


def _joined(case: Case) -> Check:
    rows = case.rows(
        "SELECT count(*), count(DISTINCT server_request_id), "
        "count(*) FILTER (n_lookups > 0) FROM engine_requests "
        "WHERE run_id = $run AND phase = 'measure'"
    )
    total, ids, seen = rows[0]
    # Not one line for all of them: the log speaks in words this R8 does not read.
    known = total and ids == total and seen
    return compared(
        "responses_joined",
        (seen if known else None, "==", total),
        "e2-joined" if seen or not total else "e2-other-words",
        unit="requests",
        facts={"seen": seen, "requests": total, "ids": ids},
    )


def _instance(case: Case, instance: str, window: Window) -> list[Check]:
    external = _grown(case, instance, EXTERNAL_HITS, window)
    prefix = _grown(case, instance, PREFIX_HITS, window)
    if external is None or prefix is None:
        return [missing("engine_counters", "e2-counters-not-read", instance=instance)]
    rows = case.rows(
        "SELECT coalesce(need_tokens, 0), n - n_need FROM engine_sums "
        "WHERE run_id = $run AND phase = 'measure' AND instance = $instance",
        instance=instance,
    )
    logged, silent = rows[0] if rows else (0, 0)
    return [
        compared(
            "external_hits_counted_tokens",
            (external, "==", None if silent else logged),
            "e2-external-hits",
            unit="tokens",
            facts={"instance": instance, "logged": logged, "silent": silent},
        ),
        compared(
            "prefix_hits_counted_tokens",
            (prefix, "==", 0),
            "e2-prefix-hits",
            unit="tokens",
            facts={"instance": instance},
        ),
    ]


def _grown(case: Case, instance: str, counter: str, window: Window) -> int | None:
    rows = case.rows(
        "SELECT grown FROM engine_growth($run, $instance, $counter, $begin_ns, $end_ns)",
        instance=instance,
        counter=counter,
        begin_ns=window.begin_ns,
        end_ns=window.end_ns,
    )
    grown: int | None = rows[0][0]
    return grown


def loads_as_said(case: Case) -> list[Check]:
    """E2 of a job: each engine says that it loaded what it was given, and in no longer a time."""
    if case.transfer is None or case.transfer.tool != ENGINE:
        return [not_applicable("engine_loads", "e2-no-engine-loads")]
    checks = []
    for worker, outcome, seen_s, detail, nbytes, *said in case.rows(_LOADS):
        if outcome != "ok" or None in (seen_s, nbytes, *said):
            checks.append(missing("engine_loads", "e2-load-not-said", worker=worker))
            continue
        given = json.loads(detail).get("path")
        checks += _as_said(worker, given, (seen_s, nbytes / BYTES_PER_GIB), *said)
    return checks or [missing("engine_loads", "e2-no-load")]


def _as_said(
    worker: str,
    given: str | None,
    seen: tuple[float, float],
    said_s: float,
    said_gib: float,
    directory: str,
) -> list[Check]:
    seen_s, seen_gib = seen
    return [
        compared(
            "loaded_directory", (directory, "==", given), "e2-directory", facts={"worker": worker}
        ),
        compared(
            "said_load_s",
            (said_s, "<=", seen_s + SAID_ERROR_S),
            "e2-load-time",
            unit="s",
            facts={"worker": worker, "seen_s": seen_s, "error_s": SAID_ERROR_S},
        ),
        compared(
            "said_load_gib",
            (said_gib, "within", (seen_gib - SAID_ERROR_GIB, seen_gib + SAID_ERROR_GIB)),
            "e2-load-size",
            unit="GiB",
            facts={"worker": worker, "seen_gib": seen_gib},
        ),
    ]


E2 = Rule(
    rule_id="E2",
    checks=counters_agree,
    transfer_checks=loads_as_said,
    thresholds={
        "external": EXTERNAL_HITS,
        "prefix": PREFIX_HITS,
        "error_s": SAID_ERROR_S,
        "error_gib": SAID_ERROR_GIB,
    },
    of_kv=True,
    of_engine=True,
)
