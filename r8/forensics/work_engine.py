"""What C10 and E2 ask of engines that load models: their own words against the clock and the files.

An engine begins to load when it is ready to, not at the barrier it was started at. So its log must
name the directory and the size it was given, what it says its load took must fit into what was
seen, and engines started together must have loaded together for a stated share of the time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.forensics.rule import Check, missing, not_applicable
from r8.units import s_from_ns

if TYPE_CHECKING:
    from r8.forensics.case import Case

TOOL = "engine"
# A load that was alone for more than half of its time is no concurrent one.
OVERLAP_SHARE_MIN = 0.5
# The engine prints hundredths of a second, and its line is looked for every few milliseconds.
SAID_ERROR_S = 0.02
# It prints hundredths of a GiB.
SAID_ERROR_GIB = 0.0051
_GIB = 1 << 30


def loads_overlap(case: Case, rows: list[dict[str, Any]]) -> list[Check]:
    """C10: engines let go at one instant loaded at the same time."""
    work = case.run.work
    if work is None or work.tool != TOOL or work.job != "load" or len(rows) < 2:  # noqa: PLR2004
        return []
    shared_ns = min(row["end_ns"] for row in rows) - max(row["begin_ns"] for row in rows)
    longest_ns = max(row["end_ns"] - row["begin_ns"] for row in rows)
    least_ns = OVERLAP_SHARE_MIN * longest_ns
    return [
        Check(
            arithmetic=f"{len(rows)} engines loaded together for {s_from_ns(shared_ns):.3f} s >= "
            f"{s_from_ns(least_ns):.3f} s ({OVERLAP_SHARE_MIN:.0%} of the longest load)",
            held=shared_ns >= least_ns,
            otherwise="The engines did not load at the same time: each had the device to itself.",
        )
    ]


def words_agree(case: Case) -> list[Check]:
    """E2: each engine says that it loaded the directory it was given, and in no longer a time."""
    work = case.run.work
    if work is None or work.tool != TOOL:
        return [not_applicable("no engine loads here", "The workers are no engines.")]
    rows = case.rows(
        "SELECT w.worker, w.outcome, (w.end_ns - w.begin_ns) / 1e9, w.detail, w.bytes, l.said_s, "
        "l.said_gib, l.said_directory FROM work w LEFT JOIN engine_loads l USING (run_id, worker) "
        "WHERE w.run_id = $run AND w.phase = 'measure' ORDER BY w.worker"
    )
    if not rows:
        return [missing("no engine loaded", "The run holds no event `work` of phase measure.")]
    checks = []
    for worker, outcome, seen_s, detail, nbytes, *said in rows:
        if outcome != "ok" or None in (seen_s, nbytes, *said):
            line = f"{worker}: the engine's words about its load are not all there"
            checks.append(missing(line, "Its log lacks a line, or it did not load; see raw/."))
            continue
        path = json.loads(detail).get("path")
        checks += _agree(worker, path, (seen_s, nbytes / _GIB), *said)
    return checks


def _agree(
    worker: str,
    path: str | None,
    seen: tuple[float, float],
    said_s: float,
    said_gib: float,
    directory: str,
) -> list[Check]:
    seen_s, gib = seen
    return [
        Check(
            arithmetic=f"{worker}: engine loaded {directory} = {path} it was given",
            held=directory == path,
            otherwise="The engine loaded another model than the one whose bytes are counted.",
        ),
        Check(
            arithmetic=f"{worker}: engine says {said_s:.2f} s <= {seen_s:.3f} s seen "
            f"and {SAID_ERROR_S:g} s",
            held=said_s <= seen_s + SAID_ERROR_S,
            otherwise="The time that was seen is not that of its load.",
        ),
        Check(
            arithmetic=f"{worker}: engine says {said_gib:.2f} GiB, tensors have {gib:.4f} GiB",
            held=abs(said_gib - gib) <= SAID_ERROR_GIB,
            otherwise="The engine loaded something of another size.",
        ),
    ]
