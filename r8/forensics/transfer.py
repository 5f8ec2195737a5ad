"""What workers of a job said of a phase: the rows of the view `work`, for the rules that ask.

A worker says when it began and ended and how many bytes it moved; that they came from the device is
proven by block counters only, as for an engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r8.forensics.case import Case

Row = dict[str, Any]
ENGINE = "engine"  # `tool` of a job whose workers are engines that load a model
_NAMES = ("worker", "outcome", "error", "scheduled_ns", "started_ns", "begin_ns", "end_ns", "bytes")
_ROWS = f"""
SELECT {", ".join(_NAMES)}
FROM work WHERE run_id = $run AND phase = $phase ORDER BY worker
"""  # noqa: S608 - names of columns


def rows(case: Case, phase: str = "measure") -> list[Row]:
    """What every worker said of a phase, by worker."""
    return [dict(zip(_NAMES, row, strict=True)) for row in case.rows(_ROWS, phase=phase)]


def moved_bytes(case: Case, phase: str) -> int | None:
    """What all workers together moved in a phase; `None` when one did not say."""
    sizes = [row["bytes"] for row in rows(case, phase)]
    return None if not sizes or None in sizes else sum(sizes)


def writes(case: Case) -> bool:
    """Whether the measured window of this job writes to the device."""
    return case.transfer is not None and case.transfer.moves == "write"


def failures(bad: list[Row]) -> str:
    """Workers that failed, in their own words."""
    return "; ".join(f"{row['worker']} {row['outcome']}: {row.get('error')}" for row in bad)[:300]
