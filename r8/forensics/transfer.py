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
_NAMES = ("worker", "outcome", "error", "begin_ns", "end_ns", "load_ns", "start_lag_ns", "bytes")
SUMS = ("bytes", "known_bytes", "file_bytes", "files", "synced_files", "wall_ns", "shared_ns")
_ROWS = f"""
SELECT {", ".join(_NAMES)}
FROM work WHERE run_id = $run AND phase = $phase ORDER BY worker
"""  # noqa: S608 - names of columns


def rows(case: Case, phase: str = "measure") -> list[Row]:
    """What every worker said of a phase, by worker."""
    return [dict(zip(_NAMES, row, strict=True)) for row in case.rows(_ROWS, phase=phase)]


def together(case: Case, phase: str) -> Row:
    """All workers of a phase together, as the view `work_sums` has them; `None` where unknown."""
    named = ", ".join(SUMS)
    found = case.rows(
        f"SELECT {named} FROM work_sums WHERE run_id = $run AND phase = $phase",  # noqa: S608
        phase=phase,
    )
    return dict(zip(SUMS, found[0] if found else (None,) * len(SUMS), strict=True))


def moved_bytes(case: Case, phase: str) -> int | None:
    """What all workers together moved in a phase; `None` when one did not say."""
    moved: int | None = together(case, phase)["bytes"]
    return moved


def writes(case: Case) -> bool:
    """Whether the measured window of this job writes to the device."""
    return case.transfer is not None and case.transfer.moves == "write"


def failures(bad: list[Row]) -> str:
    """Workers that failed, in their own words."""
    return "; ".join(f"{row['worker']} {row['outcome']}: {row.get('error')}" for row in bad)[:300]
