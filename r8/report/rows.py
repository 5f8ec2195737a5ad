"""The last tables of a report: calibration, identical outputs, the rows behind all the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.report.tables import markdown, metrics_of, number
from r8.units import mb_per_s, ms_from_ns

if TYPE_CHECKING:
    from r8.verdict.session import Session


def calibration_table(session: Session) -> str:
    """What the device and the client give by themselves, in the run's own campaign."""
    rows = []
    for run in session.runs:
        ceiling = session.value(run, "ceiling_bandwidth", "", phase="calibration").value
        serial = session.value(run, "serial_bandwidth", "", phase="calibration").value
        client = session.connection.execute(
            "SELECT n, send_lag_p99_ns, ttft_error_p50_ns, ttft_error_max_ns FROM calibration "
            "WHERE run_id = $run AND name = 'client' ORDER BY mono_ns DESC LIMIT 1",
            {"run": run.run_id},
        ).fetchall()
        n, *durations = client[0] if client else (None, None, None, None)
        rows.append(
            [
                run.run_id,
                None if serial is None else number(mb_per_s(serial)),
                None if ceiling is None else number(mb_per_s(ceiling)),
                None if ceiling is None or serial is None else number(ceiling / serial),
                n,
                *(None if one is None else number(ms_from_ns(one)) for one in durations),
            ]
        )
    headers = ["run", "serial MB/s", "ceiling MB/s", "ceiling / serial", "client n"]
    headers += ["send lag p99 ms", "TTFT error p50 ms", "TTFT error max ms"]
    return markdown(rows, headers)


def identity_table(session: Session) -> str:
    """In how many sessions two computations of one block gave the same tokens; "" when none did."""
    found = session.connection.execute(
        "SELECT block, level, arm, phase, other_arm, other_phase, identical, n FROM identity "
        "ORDER BY campaign_id, block, level, phase, arm, other_arm"
    ).fetchall()
    rows = [
        [block, level, f"{arm} {phase}", f"{other} {other_phase}", f"{same} of {n}"]
        for block, level, arm, phase, other, other_phase, same, n in found
    ]
    return markdown(rows, ["block", "level", "this", "against", "same tokens"]) if rows else ""


def raw_metric_table(session: Session) -> str:
    """The rows behind the tables, as the shared SQL gave them, with every digit."""
    rows = []
    for run in session.runs:
        for phase, metric, statistic in metrics_of(run):
            found = session.value(run, metric, statistic, phase=phase)
            if found.value is not None:
                value, unit, n = repr(found.value), found.unit, found.n
                rows.append([run.run_id, phase, metric, statistic, value, unit, n, found.estimator])
    headers = ["run", "phase", "metric", "statistic", "value", "unit", "n", "estimator"]
    return markdown(rows, headers)
