"""E2: the engine's own counters tell the same story as its log, request by request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Check, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case, Window

# vLLM's counters; both names are the same before and since its metrics carry `_total`.
EXTERNAL_HITS = "vllm:external_prefix_cache_hits"
PREFIX_HITS = "vllm:prefix_cache_hits"
# What one counter grew by over a window: the last page before it, and the first page after it that
# was fetched before the next phase began. Series of one name are summed.
_GROWN = """
WITH pages AS (
  SELECT mono_ns, sum(value) AS total, max(coalesce(epoch, 0)) AS epoch FROM probes
  WHERE run_id = $run AND probe = 'engine' AND device = $instance AND value IS NOT NULL
    AND regexp_extract(counter, '^[^{]*') IN ($counter, $counter || '_total')
  GROUP BY mono_ns
)
SELECT arg_max(total, mono_ns) FILTER (mono_ns BETWEEN $since AND $begin),
       arg_min(total, mono_ns) FILTER (mono_ns BETWEEN $end AND $until),
       arg_max(epoch, mono_ns) FILTER (mono_ns BETWEEN $since AND $begin),
       arg_min(epoch, mono_ns) FILTER (mono_ns BETWEEN $end AND $until)
FROM pages
"""


def counters_agree(case: Case) -> list[Check]:
    """E2: response ids joined to lookup lines, and counters of /metrics to the sum of the lines."""
    window = case.window("measure")
    if window is None:
        return [missing("no measure window", "measure_begin or measure_end is missing.")]
    checks = [_joined(case)]
    for instance in case.run.instances:
        checks += _instance(case, instance, window)
    return checks


def _joined(case: Case) -> Check:
    rows = case.rows(
        "SELECT count(*), count(DISTINCT server_request_id), "
        "count(*) FILTER (n_lookups > 0) FROM engine_requests "
        "WHERE run_id = $run AND phase = 'measure'"
    )
    total, ids, seen = rows[0]
    return Check(
        arithmetic=f"{seen} of {total} responses joined to their lookup line by {ids} ids",
        held=None if not total or ids < total else seen == total,
        otherwise="A response's id is missing, or its engine's log does not know it.",
    )


def _instance(case: Case, instance: str, window: Window) -> list[Check]:
    external = _grown(case, instance, EXTERNAL_HITS, window)
    prefix = _grown(case, instance, PREFIX_HITS, window)
    if external is None or prefix is None:
        return [
            missing(
                f"{instance}: cache counters of /metrics not read around the window",
                "The metrics page was not fetched, or the engine does not publish them.",
            )
        ]
    rows = case.rows(
        "SELECT coalesce(sum(need_tokens), 0)::BIGINT, count(*) FILTER (need_tokens IS NULL) "
        "FROM engine_requests WHERE run_id = $run AND phase = 'measure' AND instance = $instance",
        instance=instance,
    )
    logged, silent = rows[0]
    return [
        Check(
            arithmetic=f"{instance}: counter of external hits grew by {external} = {logged} tokens "
            "by its lookup lines",
            held=None if silent else external == logged,
            otherwise="Log and counters of the same engine disagree about what was loaded.",
        ),
        Check(
            arithmetic=f"{instance}: counter of prefix-cache hits grew by {prefix} = 0",
            held=prefix == 0,
            otherwise="The engine answered from its own prefix cache.",
        ),
    ]


def _grown(case: Case, instance: str, counter: str, window: Window) -> int | None:
    marks = case.rows(
        "SELECT coalesce(max(mono_ns) FILTER (mono_ns < $begin AND ends_with(name, '_end')), 0), "
        "coalesce(min(mono_ns) FILTER (mono_ns > $end AND ends_with(name, '_begin')), $end + $far) "
        "FROM events WHERE run_id = $run",
        begin=window.begin_ns,
        end=window.end_ns,
        far=1 << 60,
    )
    since, until = marks[0]
    (row,) = case.rows(
        _GROWN,
        instance=instance,
        counter=counter,
        since=since,
        begin=window.begin_ns,
        end=window.end_ns,
        until=until,
    )
    before, after, epoch_before, epoch_after = row
    if before is None or after is None or epoch_before != epoch_after:
        return None
    return int(after - before)
