"""C10: what offered the load was not the bottleneck and did not colour what it timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics import transfer
from r8.forensics.rule import Rule
from r8.message import Check, compared, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

# The whole burst must be on its way within the tolerance of any claim, seen against what is timed.
SEND_LAG_SHARE_MAX = 0.05
# What the client adds to a TTFT at its median may cost a fifth of that tolerance, no more.
TTFT_ERROR_SHARE_MAX = 0.01
# Workers let go at one instant must begin within the tolerance of a claim, seen against the time.
BARRIER_LAG_SHARE_MAX = 0.05
# A load that was alone for more than half of its time is no concurrent one.
OVERLAP_SHARE_MIN = 0.5


def client_kept_up(case: Case) -> list[Check]:
    """C10: send lag in the measurement, and the client's own error against a null server."""
    median_ns = case.metric("ttft", "p50")
    if median_ns is None:
        return [missing("ttft_p50_ns", "c10-no-ttft")]
    return [_send_lag(case, median_ns), *_calibration(case, median_ns)]


def _send_lag(case: Case, median_ns: int) -> Check:
    rows = case.rows(
        "SELECT count(*), count(send_lag_ns), max(send_lag_ns) "
        "FROM request_times WHERE run_id = $run AND phase = 'measure'"
    )
    total, known, lag_ns = rows[0]
    if known < total:
        return missing("send_lag_ns", "c10-lag-unknown", known=known, requests=total)
    return compared(
        "send_lag_ns",
        (lag_ns, "<=", SEND_LAG_SHARE_MAX * median_ns),
        "c10-send-lag",
        unit="ns",
        facts={"most_share": SEND_LAG_SHARE_MAX},
    )


def _calibration(case: Case, median_ns: int) -> list[Check]:
    rows = case.rows(
        "SELECT n, send_lag_p99_ns, ttft_error_p50_ns, ttft_error_max_ns FROM calibration "
        "WHERE run_id = $run AND name = 'client' ORDER BY mono_ns DESC LIMIT 1"
    )
    if not rows:
        return [missing("client_calibration", "c10-not-calibrated")]
    n, lag_ns, error_ns, worst_ns = rows[0]
    streams = compared(
        "calibrated_requests",
        (n, ">=", case.run.concurrency),
        "c10-calibrated-requests",
        unit="requests",
    )
    return [
        streams,
        _own_error("calibrated_send_lag_p99_ns", lag_ns, SEND_LAG_SHARE_MAX, median_ns),
        _own_error("calibrated_ttft_error_p50_ns", error_ns, TTFT_ERROR_SHARE_MAX, median_ns),
        _own_error("calibrated_ttft_error_max_ns", worst_ns, SEND_LAG_SHARE_MAX, median_ns),
    ]


def _own_error(quantity: str, size_ns: int | None, share: float, median_ns: int) -> Check:
    limit_ns = share * median_ns
    return compared(
        quantity,
        (size_ns, "within", (-limit_ns, limit_ns)),
        "c10-own-error",
        unit="ns",
        facts={"quantity": quantity, "most_share": share},
    )


def released_together(case: Case) -> list[Check]:
    """C10 of a job: no worker began later than its instant, seen against what is timed."""
    rows = [row for row in transfer.rows(case) if row["outcome"] == "ok"]
    if not rows:
        return [missing("barrier_lag_ns", "c10-no-worker")]
    unknown = sum(row["start_lag_ns"] is None for row in rows)
    if unknown:
        return [missing("barrier_lag_ns", "c10-instants-unknown", workers=unknown)]
    lags_ns = [row["start_lag_ns"] for row in rows]
    shortest_ns = min(row["load_ns"] for row in rows)
    return [
        compared(
            "barrier_lag_ns",
            (max(lags_ns), "<=", BARRIER_LAG_SHARE_MAX * shortest_ns),
            "c10-barrier-lag",
            unit="ns",
            facts={"most_share": BARRIER_LAG_SHARE_MAX},
        ),
        compared(
            "workers_early",
            (sum(lag_ns < 0 for lag_ns in lags_ns), "==", 0),
            "c10-early",
            unit="workers",
            facts={"workers": len(rows)},
        ),
        *_loads_overlap(case, rows),
    ]


def _loads_overlap(case: Case, rows: list[transfer.Row]) -> list[Check]:
    """Engines let go at one instant loaded at the same time."""
    run = case.transfer
    if run is None or run.tool != transfer.ENGINE or run.job != "load" or len(rows) == 1:
        return []
    longest_ns = max(row["load_ns"] for row in rows)
    return [
        compared(
            "loads_overlap_ns",
            (transfer.together(case, "measure")["shared_ns"], ">=", OVERLAP_SHARE_MIN * longest_ns),
            "c10-overlap",
            unit="ns",
            facts={"engines": len(rows), "least_share": OVERLAP_SHARE_MIN},
        )
    ]


C10 = Rule(
    rule_id="C10",
    checks=client_kept_up,
    transfer_checks=released_together,
    thresholds={
        "lag_share": SEND_LAG_SHARE_MAX,
        "error_share": TTFT_ERROR_SHARE_MAX,
        "barrier_share": BARRIER_LAG_SHARE_MAX,
        "overlap_share": OVERLAP_SHARE_MIN,
    },
)
