"""One metric of one synthetic run, for the tests of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.metrics.measure import measure, pick
from r8.tests.support.run_factory import Row, SyntheticRun, build_partial, edit_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.model import Measurement

S = 1_000_000_000


def metric(
    root: Path,
    spec: SyntheticRun,
    name: str,
    statistic: str = "",
    phase: str = "measure",
    **changes: Callable[[list[Row]], list[Row]],
) -> Measurement:
    """One metric of one synthetic run whose journals were changed before they were sealed."""
    partial = build_partial(root, spec)
    for table, change in changes.items():
        edit_rows(partial, table, change)
    found = measure([read_run(finalise(partial, complete=True))])
    return pick(found, run_id=spec.name, metric=name, statistic=statistic, phase=phase)
