"""What C4, C10, N1 and Q1 ask of a run without a KV engine: its workers' own words against bytes.

The rows are the events named `work`, one a worker and phase, as the view `work` gives them. A
worker says when it began and ended and how many bytes it moved; that they came from the device is
proven by block counters only, as for an engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.forensics import work_engine
from r8.forensics.balance import BALANCE_TOLERANCE, device_checks
from r8.forensics.coldness import RESIDENT_SHARE_MAX
from r8.forensics.rule import Check, missing, not_applicable
from r8.units import ms_from_ns

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Workers let go at one instant must begin within the tolerance of a claim, seen against the time.
BARRIER_LAG_SHARE_MAX = 0.05
# Names of tensors and their places stand in a file beside the weights: less than a per mille.
HEADER_SHARE_MAX = 0.001

_ROWS = """
SELECT worker, outcome, error, scheduled_ns, started_ns, begin_ns, end_ns, bytes
FROM work WHERE run_id = $run AND phase = $phase ORDER BY worker
"""


def work_rows(case: Case, phase: str = "measure") -> list[dict[str, Any]]:
    """What every worker said of a phase, by worker."""
    instants = ("scheduled_ns", "started_ns", "begin_ns", "end_ns")
    names = ("worker", "outcome", "error", *instants, "bytes")
    return [dict(zip(names, row, strict=True)) for row in case.rows(_ROWS, phase=phase)]


def every_worker_done(case: Case) -> list[Check]:
    """Q1: every planned worker went through once, without error, and moved all its bytes."""
    rows, work = work_rows(case), case.run.work
    if work is None or not rows:
        return [missing("no row of a worker", "The run holds no event `work` of phase measure.")]
    bad = [row for row in rows if row["outcome"] != "ok"]
    why = "; ".join(f"{row['worker']} {row['outcome']}: {row['error']}" for row in bad)[:300]
    names = {row["worker"] for row in rows}
    moved = sum(row["bytes"] or 0 for row in rows)
    return [
        Check(
            arithmetic=f"{len(bad)} of {len(rows)} workers failed{f' ({why})' if why else ''}",
            held=not bad,
            otherwise="A run with a worker that failed is INVALID, not slow; see raw/worker-*.log.",
        ),
        Check(
            arithmetic=f"{len(rows)} rows of {len(names)} workers = {work.workers} planned",
            held=len(rows) == len(names) == work.workers and names == set(case.run.instances),
            otherwise="Each worker works exactly once: a second read would not be cold.",
        ),
        Check(
            arithmetic=f"workers moved {moved} B = {work.total_bytes} B of files less at most "
            f"{HEADER_SHARE_MAX:.1%} of headers",
            held=(1 - HEADER_SHARE_MAX) * work.total_bytes <= moved <= work.total_bytes,
            otherwise="A worker did not move all of what lies in its files.",
        ),
    ]


def released_together(case: Case) -> list[Check]:
    """C10: no worker began later than its instant, seen against what is timed."""
    rows = [row for row in work_rows(case) if row["outcome"] == "ok"]
    if not rows:
        return [missing("no worker to time", "No worker finished the measured phase.")]
    unknown = [row for row in rows if row["started_ns"] is None or row["scheduled_ns"] is None]
    if unknown:
        return [missing(f"{len(unknown)} workers without instants", "Their rows lack them.")]
    lag_ns = max(row["started_ns"] - row["scheduled_ns"] for row in rows)
    early = sum(row["started_ns"] < row["scheduled_ns"] for row in rows)
    shortest_ns = min(row["end_ns"] - row["begin_ns"] for row in rows)
    limit_ns = BARRIER_LAG_SHARE_MAX * shortest_ns
    return [
        Check(
            arithmetic=f"largest lag behind the barrier {ms_from_ns(lag_ns):.3f} ms <= "
            f"{ms_from_ns(limit_ns):.3f} ms ({BARRIER_LAG_SHARE_MAX:.0%} of the shortest), "
            f"{early} workers early",
            held=lag_ns <= limit_ns and not early,
            otherwise="The workers did not work at the same time: the load was less than planned.",
        ),
        *work_engine.loads_overlap(case, rows),
    ]


def bytes_balance(case: Case) -> list[Check]:
    """C4: workers' bytes = device = members; the workers' processes read them."""
    if _writes(case):
        return [not_applicable("the window writes", "W1 balances its writes, W2 what is read.")]
    moved = _moved(case, "measure")
    device = case.metric("device_read_bytes")
    checks = [_moved_against_device(case, moved, device)]
    return checks if device is None else checks + device_checks(case, device)


def _writes(case: Case) -> bool:
    return case.run.work is not None and case.run.work.moves == "write"


def _moved(case: Case, phase: str) -> int | None:
    rows = work_rows(case, phase)
    sizes = [row["bytes"] for row in rows]
    return None if not rows or None in sizes else sum(sizes)


def _moved_against_device(case: Case, moved: int | None, device: int | None) -> Check:
    name = case.run.kv_device
    if not moved:
        return missing("bytes of the workers not known", "A worker did not say what it moved.")
    if device is None:
        return missing(f"{name}: no read counter around the window", "The disk probe is silent.")
    share = device / moved
    meaning = (
        "Fewer bytes than were loaded left the device: a cache served the rest."
        if share < 1
        else "The device read more than was loaded: something else reads it."
    )
    return Check(
        arithmetic=f"{name} read {device} B / workers moved {moved} B = {share:.4f} "
        f"within 1 +- {BALANCE_TOLERANCE}",
        held=abs(share - 1) <= BALANCE_TOLERANCE,
        otherwise=meaning,
    )


def warm_load_is_refused(case: Case) -> list[Check]:
    """N1: the same loads again, from the page cache, fail C3 and C4 by their numbers."""
    if _writes(case):
        return [not_applicable("the window writes", "C4 has no subject that could be warm.")]
    window, moved = case.window("warm"), _moved(case, "warm")
    if window is None:
        return [missing("no warm load in this run", "Another run of the block may hold it.")]
    if not moved:
        return [
            missing("the warm load moved nothing", "A control that loads nothing says nothing.")
        ]
    device = case.read_bytes(case.run.kv_device, "warm")
    if device is None:
        return [missing("no read counter around the warm load", "The disk probe is silent.")]
    return _warm_numbers(case, window.begin_ns, moved, device)


def _warm_numbers(case: Case, until_ns: int, moved: int, device: int) -> list[Check]:
    rows = case.rows(
        "SELECT sum(resident_bytes)::BIGINT, count(*) FILTER (resident_bytes > $share * size_bytes)"
        " FROM residency WHERE run_id = $run AND moment = 'after_measure' AND mono_ns <= $until_ns",
        share=RESIDENT_SHARE_MAX,
        until_ns=until_ns,
    )
    resident, above = rows[0]
    if resident is None:
        return [missing("residency before the warm load not measured", "No rows after_measure.")]
    if not above and device >= (1 - BALANCE_TOLERANCE) * moved:
        # Both witnesses say cold: somebody else on this machine emptied the page cache.
        line = (
            f"nothing was warm: {resident} B in the page cache, {device} B of {moved} B read again"
        )
        return [missing(line, "Another run of the block must hold the warm load.")]
    return [
        Check(
            # A machine short of memory gives up pages in between: those are read again.
            arithmetic=f"C3 before the warm load: {above} files above {RESIDENT_SHARE_MAX:.0%} "
            f"resident, {resident} B in the page cache + {device} B read again >= {moved} B loaded",
            held=above > 0 and resident + device >= (1 - BALANCE_TOLERANCE) * moved,
            otherwise="Files known to be cached were not seen as cached: C3 proves nothing here.",
        ),
        _seen_as_warm(case.run.kv_device, moved, device),
    ]


def _seen_as_warm(name: str, moved: int, device: int) -> Check:
    share = device / moved
    return Check(
        arithmetic=f"C4: {name} read {device} B / warm load {moved} B = {share:.4f} "
        f"< {1 - BALANCE_TOLERANCE}",
        held=share < 1 - BALANCE_TOLERANCE,
        otherwise="A load known to be warm balances like a cold one: C4 proves nothing here.",
    )
