"""The part of a report about several engines on one device; empty where a run has no such thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.report.tables import PARAGRAPHS, converted, number, table
from r8.report.words import say
from r8.text import Markdown
from r8.units import gb_per_s, mb_per_s, s_from_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.verdict.session import Session

_RUNS = """
SELECT r.block, r.arm, s.n_instances, s.bytes_per_s, s.bytes_per_s / s.ceiling_bytes_per_s,
       s.speedup, s.predicted_speedup, s.of_predicted, s.efficiency, f.value
FROM scaling s JOIN runs r USING (run_id) JOIN fairness f USING (run_id)
ORDER BY r.campaign_id, r.block, s.n_instances, r.arm
"""
_INSTANCES = """
SELECT r.block, r.arm, i.instance, i.n, i.ttft_p50_ns, i.ttft_max_ns, i.bytes_per_s, i.hit_bytes,
       i.process_read_bytes
FROM instance_reads i JOIN runs r USING (run_id) SEMI JOIN scaling s USING (run_id)
ORDER BY r.campaign_id, r.block, len(r.instances), r.arm, i.instance
"""
_UNITS: tuple[Callable[[float], float], ...] = (s_from_ns, s_from_ns, mb_per_s, gb_per_s, gb_per_s)


def scaling(session: Session, language: str) -> Markdown:
    """Aggregate bandwidth against the prediction, then every engine by itself; "" when not run."""
    runs = session.connection.execute(_RUNS).fetchall()
    if not runs:
        return Markdown()
    rows = [
        [block, arm, engines, converted(speed, mb_per_s), *(number(one) for one in rest)]
        for block, arm, engines, speed, *rest in runs
    ]
    heads = ["head-block", "head-arm", "head-engines", "head-aggregate", "head-of-ceiling"]
    heads += ["head-speedup", "head-speedup-predicted", "head-measured-predicted"]
    heads += ["head-efficiency", "head-fairness"]
    parts = (say(language, "note-scaling"), table(rows, heads, language))
    return PARAGRAPHS.join((*parts, _instances(session, language)))


def _instances(session: Session, language: str) -> Markdown:
    rows = []
    for block, arm, instance, n, *values in session.connection.execute(_INSTANCES).fetchall():
        shown = [converted(one, unit) for one, unit in zip(values, _UNITS, strict=True)]
        rows.append([block, arm, instance, n, *shown])
    heads = ["head-block", "head-arm", "head-engine", "head-requests", "head-ttft-p50"]
    heads += ["head-ttft-max", "head-kv-rate", "head-kv-hit", "head-process-read"]
    return table(rows, heads, language)
