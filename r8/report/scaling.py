"""The part of a report about several engines on one device; empty where a run has no such thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.report.tables import markdown, number
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
FROM instance_reads i JOIN runs r USING (run_id)
WHERE r.scenario = 'r1-scaling'
ORDER BY r.campaign_id, r.block, len(r.instances), r.arm, i.instance
"""


def scaling_section(session: Session) -> str:
    """Aggregate bandwidth against the prediction, then every engine by itself; "" when not run."""
    runs = session.connection.execute(_RUNS).fetchall()
    if not runs:
        return ""
    rows = [
        [block, arm, engines, _shown(speed, mb_per_s), *(number(one) for one in rest)]
        for block, arm, engines, speed, *rest in runs
    ]
    headers = ["block", "arm", "engines", "aggregate MB/s", "of ceiling", "speedup"]
    headers += ["speedup predicted", "measured / predicted", "efficiency", "Jain fairness"]
    return (
        "## Engines on one device\n\n"
        "Speedup: aggregate read bandwidth over that of one engine in the same block. Prediction: "
        "n times one engine, at most what fio read from the device.\n\n"
        + markdown(rows, headers)
        + "\n\n"
        + _instances(session)
    )


def _instances(session: Session) -> str:
    found = session.connection.execute(_INSTANCES).fetchall()
    rows = [
        [
            block,
            arm,
            instance,
            n,
            _shown(p50, s_from_ns),
            _shown(most, s_from_ns),
            _shown(speed, mb_per_s),
            _shown(hit, gb_per_s),
            _shown(read, gb_per_s),
        ]
        for block, arm, instance, n, p50, most, speed, hit, read in found
    ]
    headers = ["block", "arm", "engine", "requests", "TTFT p50 s", "TTFT max s", "KV MB/s"]
    return markdown(rows, [*headers, "KV hit GB", "process read GB"])


def _shown(value: float | None, convert: Callable[[float], float]) -> str:
    return number(None if value is None else convert(value))
