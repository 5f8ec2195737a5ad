"""The part of a report about checkpoint writes; empty where a run has no such thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.report.tables import markdown, number, over_blocks, shown
from r8.units import gb_per_s, mb_per_s, s_from_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.model import Run
    from r8.verdict.session import Session

JOB = "checkpoint"
# Arms are a device and a layout: `array-full-each`. The local drive stands above the line.
ABOVE, BELOW = "local-", "array-"
_COLUMNS: tuple[tuple[str, str, Callable[[float], float]], ...] = (
    ("save_time", "", s_from_ns),
    ("predicted_save_time", "", s_from_ns),
    ("save_over_predicted", "", float),
    ("snapshot_bytes", "", gb_per_s),
    ("write_amplification", "", float),
    ("device_write_bandwidth", "mean", mb_per_s),
    ("device_write_bandwidth", "busy", mb_per_s),
    ("write_ceiling_fraction", "busy", float),
)


def checkpoint_section(session: Session) -> str:
    """Each save beside its prediction, then the arms against each other; "" when none was run."""
    runs = [run for run in session.runs if run.work is not None and run.work.job == JOB]
    if not runs:
        return ""
    rows = [
        [
            run.block,
            run.arm,
            run.concurrency,
            *(
                shown(session, run, metric, statistic, convert)
                for metric, statistic, convert in _COLUMNS
            ),
        ]
        for run in runs
    ]
    headers = ["block", "arm", "ranks", "save s", "predicted s", "measured / predicted"]
    headers += ["snapshot GB", "device bytes / file bytes", "write MB/s, whole window"]
    headers += ["write MB/s, busy seconds", "of write ceiling"]
    return (
        "## Checkpoint writes\n\n"
        "Time: first rank's begin to last rank's end, with every flush and the commit. Prediction: "
        "bytes of the files over what fio wrote to the device in the same cell. Busy seconds: "
        "1 s windows above 5 % of that. Several blocks: geometric mean of their ratios and its "
        "90 % interval.\n\n" + markdown(rows, headers) + _ratios(session, runs)
    )


def _ratios(session: Session, runs: list[Run]) -> str:
    """Local drive over array of one layout in one block, measured and predicted."""
    rows = []
    for layout in dict.fromkeys(run.arm.partition("-")[2] for run in runs):
        found = list(_pairs(session, runs, layout))
        name = f"{ABOVE}{layout} / {BELOW}{layout}"
        rows += [
            [name, block, number(saved), number(expected), number(saved / expected)]
            for block, saved, expected in found
        ]
        if len(found) > 1:
            quotients = [saved / expected for _, saved, expected in found]
            each = ([one[1] for one in found], [one[2] for one in found], quotients)
            rows.append([f"**{name}**", f"{len(found)} blocks", *map(over_blocks, each)])
    if not rows:
        return ""
    headers = ["ratio", "block", "save time ratio", "ratio predicted", "measured / predicted"]
    return "\n\n" + markdown(rows, headers)


def _pairs(session: Session, runs: list[Run], layout: str) -> Iterator[tuple[int, float, float]]:
    cells = {(run.campaign_id, run.block, run.concurrency, run.arm): run for run in runs}
    for (campaign_id, block, level, arm), above in cells.items():
        below = cells.get((campaign_id, block, level, f"{BELOW}{layout}"))
        if arm != f"{ABOVE}{layout}" or below is None:
            continue
        saved = _ratio(session, above, below, "save_time")
        expected = _ratio(session, above, below, "predicted_save_time")
        if saved is not None and expected is not None:
            yield block, saved, expected


def _ratio(session: Session, above: Run, below: Run, metric: str) -> float | None:
    first, second = (session.value(run, metric, "").value for run in (above, below))
    return first / second if first and second else None
