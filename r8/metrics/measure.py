"""Metrics of checked runs: rows of the view `metrics` of data/queries, as records.

Formulas, units, needed n and what each metric cannot show stand there and nowhere else; nothing is
computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.errors import MetricError
from r8.evidence.database import connect
from r8.model import Basis, Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

    from r8.evidence.reader import Evidence

_SELECT = """
    SELECT m.run_id, m.phase, m.metric, m.statistic, m.value, m.unit, m.n, m.estimator, r.basis,
           m.reason
    FROM metrics m JOIN runs r USING (run_id)
    ORDER BY m.run_id, m.phase, m.metric, m.statistic
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputLimits:
    """What counts as served well; stated before a run, never found from it. Nanoseconds."""

    ttft_ns: int
    tpot_ns: int


def measure(
    evidences: Iterable[Evidence], limits: GoodputLimits | None = None
) -> list[Measurement]:
    """Every metric of every run, in the order of run, phase, metric and statistic.

    Without `limits` goodput has no value and says so. Raises MetricError for no runs.
    """
    with connect(evidences) as connection:
        return measurements(connection, limits)


def measurements(
    connection: duckdb.DuckDBPyConnection, limits: GoodputLimits | None = None
) -> list[Measurement]:
    """As `measure`, over a connection of `r8.evidence.database.connect`."""
    ttft_ns, tpot_ns = (limits.ttft_ns, limits.tpot_ns) if limits else ("NULL", "NULL")
    connection.execute(f"SET VARIABLE r8_ttft_limit_ns = {ttft_ns}")
    connection.execute(f"SET VARIABLE r8_tpot_limit_ns = {tpot_ns}")
    return [
        Measurement(
            run_id=run_id,
            phase=phase,
            metric=metric,
            statistic=statistic,
            value=value,
            unit=unit,
            n=n,
            estimator=estimator,
            basis=Basis(basis),
            reason=reason,
        )
        for run_id, phase, metric, statistic, value, unit, n, estimator, basis, reason in (
            connection.execute(_SELECT).fetchall()
        )
    ]


def pick(
    found: Iterable[Measurement],
    *,
    run_id: str,
    metric: str,
    statistic: str = "",
    phase: str = "measure",
) -> Measurement:
    """The one measurement of that name; raises MetricError when there is none."""
    for one in found:
        if (one.run_id, one.metric, one.statistic, one.phase) == (
            run_id,
            metric,
            statistic,
            phase,
        ):
            return one
    raise MetricError(
        f"no metric {metric} {statistic} in phase {phase}",
        where=run_id,
        next_step="see data/queries/README.md for the names",
    )
