"""The part of a report about checkpoint writes; empty where a run has no such thing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.model import TransferRun
from r8.report.tables import PARAGRAPHS, number, over_blocks, quotient, shown, table
from r8.report.words import say
from r8.text import Markdown
from r8.units import gb_per_s, mb_per_s, s_from_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.model import Run
    from r8.verdict.session import Session

JOB = "checkpoint"
_COLUMNS: tuple[tuple[str, str, str, Callable[[float], float]], ...] = (
    ("head-save", "save_time", "", s_from_ns),
    ("head-predicted", "predicted_save_time", "", s_from_ns),
    ("head-measured-predicted", "save_over_predicted", "", float),
    ("head-snapshot", "snapshot_bytes", "", gb_per_s),
    ("head-amplification", "write_amplification", "", float),
    ("head-write-mean", "device_write_bandwidth", "mean", mb_per_s),
    ("head-write-busy", "device_write_bandwidth", "busy", mb_per_s),
    ("head-of-write-ceiling", "write_ceiling_fraction", "busy", float),
)
# Saves of one layout in one block: the baseline medium above, the array below.
_PAIRS = """
SELECT above.run_id, below.run_id FROM runs above JOIN runs below
    ON below.campaign_id = above.campaign_id AND below.block = above.block
   AND below.level = above.level AND below.total_bytes = above.total_bytes
WHERE above.role = 'local' AND below.role = 'array' AND above.job = $job
ORDER BY above.total_bytes DESC, above.campaign_id, above.block, above.level
"""


def checkpoints(session: Session, language: str) -> Markdown:
    """Each save beside its prediction, then the arms against each other; "" when none was run."""
    runs = [run for run in session.runs if isinstance(run, TransferRun) and run.job == JOB]
    if not runs:
        return Markdown()
    rows = [
        [
            run.block,
            run.arm,
            run.concurrency,
            *(
                shown(session, run, metric, statistic, convert)
                for _, metric, statistic, convert in _COLUMNS
            ),
        ]
        for run in runs
    ]
    heads = ["head-block", "head-arm", "head-ranks", *(head for head, *_ in _COLUMNS)]
    parts = (say(language, "note-checkpoints"), table(rows, heads, language))
    return PARAGRAPHS.join(filter(None, (*parts, _ratios(session, language))))


def _ratios(session: Session, language: str) -> Markdown:
    """The baseline medium over the array in one block, measured and predicted."""
    rows: list[list[object]] = []
    for name, found in _pairs(session).items():
        rows += [
            [name, block, number(saved), number(expected), number(saved / expected)]
            for block, saved, expected in found
        ]
        if len(found) > 1:
            quotients = [saved / expected for _, saved, expected in found]
            each = ([one[1] for one in found], [one[2] for one in found], quotients)
            blocks = say(language, "word-blocks", n=len(found))
            rows.append([Markdown("**{}**").format(name), blocks, *map(over_blocks, each)])
    heads = ["head-ratio", "head-block", "head-save-ratio", "head-ratio-predicted"]
    return table(rows, [*heads, "head-measured-predicted"], language) if rows else Markdown()


def _pairs(session: Session) -> dict[str, list[tuple[int, float, float]]]:
    by_id = {run.run_id: run for run in session.runs}
    found: dict[str, list[tuple[int, float, float]]] = {}
    for first, second in session.rows(_PAIRS, {"job": JOB}):
        above, below = by_id[first], by_id[second]
        saved = _ratio(session, above, below, "save_time")
        expected = _ratio(session, above, below, "predicted_save_time")
        if saved and expected:
            pair = f"{above.arm} / {below.arm}"
            found.setdefault(pair, []).append((above.block, saved, expected))
    return found


def _ratio(session: Session, above: Run, below: Run, metric: str) -> float | None:
    return quotient(*(session.value(run, metric, "").value for run in (above, below)))
