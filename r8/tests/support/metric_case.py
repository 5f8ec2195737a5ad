"""One metric of one synthetic run, for the tests of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.metrics.measure import measure, pick
from r8.tests.support.run_factory import Row, SyntheticRun, build_partial, edit_rows
from r8.tests.support.run_factory_rows import HOST, WALL_OFFSET_NS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.model import Measurement

S = 1_000_000_000
# About a megabyte in whole sectors, and a device that gives a hundred of them a second.
MB_SECTORS = 15_625 // 8
CEILING = 100 * 8 * MB_SECTORS * 512 // 8


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


def sample(at: int, value: int | None, **other: Any) -> Row:
    """One reading of the KV device's read counter, in sectors."""
    row: Row = {"probe": "disk", "host": HOST, "device": "loop0", "counter": "read_sectors"}
    row |= {"value": value, "mono_ns": at, "wall_ns": at + WALL_OFFSET_NS, "epoch": 0}
    return {**row, **other}


def only(*samples: Row) -> Callable[[list[Row]], list[Row]]:
    """All disk readings replaced by these."""
    return lambda rows: [row for row in rows if row["probe"] != "disk"] + list(samples)
