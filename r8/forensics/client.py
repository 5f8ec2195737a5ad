"""C10: the load client was not the bottleneck and did not colour what it timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Check, missing
from r8.units import ms_from_ns

if TYPE_CHECKING:
    from r8.forensics.case import Case

# The whole burst must be on its way within the tolerance of any claim, seen against what is timed.
SEND_LAG_SHARE_MAX = 0.05
# What the client adds to a TTFT at its median may cost a fifth of that tolerance, no more.
TTFT_ERROR_SHARE_MAX = 0.01


def client_kept_up(case: Case) -> list[Check]:
    """C10: send lag in the measurement, and the client's own error against a null server."""
    median_ns = case.metric("ttft", "p50")
    if median_ns is None:
        return [missing("no TTFT to compare with", "The measured phase has no finite TTFT p50.")]
    return [_send_lag(case, median_ns), *_calibration(case, median_ns)]


def _send_lag(case: Case, median_ns: int) -> Check:
    rows = case.rows(
        "SELECT count(*), count(sent_ns - scheduled_ns), max(sent_ns - scheduled_ns) "
        "FROM requests WHERE run_id = $run AND phase = 'measure'"
    )
    total, known, lag_ns = rows[0]
    if known < total:
        return missing(
            f"send lag known for {known} of {total} requests",
            "A request has no scheduled or no sent instant.",
        )
    limit_ns = SEND_LAG_SHARE_MAX * median_ns
    return Check(
        arithmetic=f"largest send lag {ms_from_ns(lag_ns):.3f} ms <= {ms_from_ns(limit_ns):.3f} ms "
        f"({SEND_LAG_SHARE_MAX:.0%} of the TTFT p50)",
        held=lag_ns <= limit_ns,
        otherwise="The client could not send its burst in time: the offered load was lower.",
    )


def _calibration(case: Case, median_ns: int) -> list[Check]:
    rows = case.rows(
        "SELECT n, send_lag_p99_ns, ttft_error_p50_ns, ttft_error_max_ns FROM calibration "
        "WHERE run_id = $run AND name = 'client' ORDER BY mono_ns DESC LIMIT 1"
    )
    if not rows:
        return [missing("no null-server calibration of the client", "Run `load_client calibrate`.")]
    n, lag_ns, error_ns, worst_ns = rows[0]
    return [
        _enough_streams(n, case.run.concurrency),
        _within("calibrated send lag p99", lag_ns, SEND_LAG_SHARE_MAX, median_ns),
        _within("calibrated TTFT error p50", error_ns, TTFT_ERROR_SHARE_MAX, median_ns),
        _within("calibrated TTFT error max", worst_ns, SEND_LAG_SHARE_MAX, median_ns),
    ]


def _enough_streams(n: int | None, concurrency: int) -> Check:
    return Check(
        arithmetic=f"calibrated with {n} requests >= concurrency {concurrency}",
        held=None if n is None else n >= concurrency,
        otherwise="The client was calibrated at a smaller load than it offered.",
    )


def _within(name: str, size_ns: int | None, share: float, median_ns: int) -> Check:
    if size_ns is None:
        return missing(f"{name} not known", "The calibration row lacks it.")
    limit_ns = share * median_ns
    return Check(
        arithmetic=f"{name} {ms_from_ns(size_ns):.3f} ms <= {ms_from_ns(limit_ns):.3f} ms "
        f"({share:.0%} of the TTFT p50)",
        held=abs(size_ns) <= limit_ns,
        otherwise="The client's own error is too large beside what it timed.",
    )
