"""W1 to W3: a checkpoint was on the device when its time ended, reads back, and harmed no other.

A save that is timed without a flush measures memory. So the device's own write counters must show
every byte inside the window from the first rank's begin to the last one's end, a device that holds
writes back must have been told to flush in it, and nothing may follow that should have been in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.forensics.balance import BALANCE_TOLERANCE
from r8.forensics.case import Window
from r8.forensics.coldness import QUIET_WRITE_BYTES_MAX
from r8.forensics.rule import Check, missing, not_applicable
from r8.units import BYTES_PER_MIB, BYTES_PER_SECTOR, s_from_ns

if TYPE_CHECKING:
    from r8.forensics.case import Case

JOB = "checkpoint"
# A file system's own log and inodes beside the data.
METADATA_BYTES_MAX = 32 * BYTES_PER_MIB
# Files that were renamed into place bear no such name.
PARTIAL = ".partial"
EARLIER, MEASURED = "step-1", "step-2"
WRITE_BACK = "write back"

Row = dict[str, Any]


def durable_inside_the_window(case: Case) -> list[Check]:
    """W1: flushed files and directories, all bytes at the device, its cache flushed, then quiet."""
    if not _is_checkpoint(case):
        return [_no_checkpoint()]
    rows = _rows(case, "measure")
    if not rows:
        return [missing("no rank wrote", "The run holds no event `work` of phase measure.")]
    bad = [row for row in rows if row.get("outcome") != "ok"]
    if bad:
        return [_not_saved(rows, bad)]
    window = Window(
        begin_ns=min(row["begin_ns"] for row in rows), end_ns=max(row["end_ns"] for row in rows)
    )
    return [
        _flushes_asked_for(rows),
        _bytes_in_window(case, rows, window),
        _device_flushed(case, window),
        _quiet_afterwards(case, window),
    ]


def reads_back(case: Case) -> list[Check]:
    """W2: after a drop every rank's part comes from the device and has the hash it was saved by."""
    if not _is_checkpoint(case):
        return [_no_checkpoint()]
    saved, read = _rows(case, "prepare"), _rows(case, "readback")
    if not saved:
        return [missing("no hash of what was saved", "The run holds no row of phase prepare.")]
    if not read:
        return [
            Check(
                arithmetic="0 parts read back",
                held=False,
                otherwise="There is no checkpoint to read back: what was written is none.",
            )
        ]
    return [_same_hashes(case, saved, read, "saved"), _from_the_device(case, read)]


def others_untouched(case: Case) -> list[Check]:
    """W3: the earlier checkpoint is as it was, and nothing is left under a half-way name."""
    if not _is_checkpoint(case):
        return [_no_checkpoint()]
    event = case.event("checkpoints")
    names = None if event is None else event.detail.get("names")
    if not isinstance(names, list):
        checks = [missing("names in the directory not known", "Nobody looked after the save.")]
    else:
        done = all(row.get("outcome") == "ok" for row in _rows(case, "measure"))
        wanted = [EARLIER, MEASURED] if done else [EARLIER]
        half = [name for name in names if str(name).endswith(PARTIAL)]
        checks = [
            Check(
                arithmetic=f"directory holds {', '.join(map(str, names))} = {', '.join(wanted)}",
                held=names == wanted,
                otherwise=f"Left half-way: {', '.join(half)}."
                if half
                else "A checkpoint bears its name though it is not whole, or one is gone.",
            )
        ]
    before, after = _rows(case, "earlier"), _rows(case, "readback_earlier")
    if not before or not after:
        return [*checks, missing("the earlier checkpoint was not read", "No row of it.")]
    return [*checks, _same_hashes(case, before, after, "the earlier one's")]


def _is_checkpoint(case: Case) -> bool:
    return case.run.work is not None and case.run.work.job == JOB


def _no_checkpoint() -> Check:
    return not_applicable("no checkpoint is written", "The run writes none.")


def _rows(case: Case, phase: str) -> list[Row]:
    found = case.rows(
        "SELECT detail FROM work WHERE run_id = $run AND phase = $phase ORDER BY worker, end_ns",
        phase=phase,
    )
    return [json.loads(detail) for (detail,) in found]


def _not_saved(rows: list[Row], bad: list[Row]) -> Check:
    why = "; ".join(f"{row['worker']} {row['outcome']}: {row.get('error')}" for row in bad)[:300]
    return Check(
        arithmetic=f"{len(rows) - len(bad)} of {len(rows)} ranks saved ({why})",
        held=False,
        otherwise="A checkpoint that lacks a rank's part is none; see raw/worker-*.log.",
    )


def _flushes_asked_for(rows: list[Row]) -> Check:
    files = sum(row.get("files") or 0 for row in rows)
    synced = sum(row.get("synced_files") or 0 for row in rows)
    without = [row["worker"] for row in rows if not row.get("synced_directories")]
    committed = [row["worker"] for row in rows if row.get("committed")]
    return Check(
        arithmetic=f"{synced} of {files} files flushed, {len(without)} of {len(rows)} ranks "
        f"without a flushed directory, committed by {', '.join(committed) or 'nobody'}",
        held=synced == files > 0 and not without and len(committed) == 1,
        otherwise="The time ended before the bytes were asked to the device: it measures memory.",
    )


def _bytes_in_window(case: Case, rows: list[Row], window: Window) -> Check:
    name, payload = case.run.kv_device, sum(row["file_bytes"] for row in rows)
    sectors = _grown(case, "write_sectors", window)
    if sectors is None:
        return missing(f"{name}: no write counter around the save", "The disk probe is silent.")
    written = sectors * BYTES_PER_SECTOR
    most = round((1 + BALANCE_TOLERANCE) * payload) + METADATA_BYTES_MAX
    return Check(
        arithmetic=f"{name} wrote {written} B in the window of "
        f"{s_from_ns(window.end_ns - window.begin_ns):.3f} s, files have {payload} B "
        f"({written / payload:.4f}), at most {most} B",
        held=payload <= written <= most,
        otherwise="Bytes were still in memory when the time ended."
        if written < payload
        else "The device wrote more than the checkpoint: something else writes to it.",
    )


def _grown(case: Case, counter: str, window: Window) -> int | None:
    """Growth at the device; at its members where a multipath head counts nothing."""
    own = case.grown("disk", case.run.kv_device, counter, window)
    members = case.members(case.run.kv_device)
    if own or not members:
        return own
    each = [case.grown("disk", member, counter, window) for member in members]
    known = [one for one in each if one is not None]
    return sum(known) if known and len(known) == len(each) else own


def _device_flushed(case: Case, window: Window) -> Check:
    event = case.event("write_cache")
    modes = None if event is None else event.detail.get("modes")
    known = {} if not isinstance(modes, dict) else {k: v for k, v in modes.items() if v}
    if not known:
        return missing("write cache of the device not known", "Its queue does not say.")
    holding = sorted(name for name, mode in known.items() if mode == WRITE_BACK)
    if not holding:
        return Check(arithmetic="no device below holds writes back", held=True, otherwise="")
    counts = [(name, case.grown("disk", name, "flushes", window)) for name in holding]
    seen = [(name, count) for name, count in counts if count is not None]
    if not seen:
        return missing(f"{', '.join(holding)}: flushes not sampled", "No such counter.")
    return Check(
        arithmetic=", ".join(f"{name} flushed {count} times" for name, count in seen),
        held=any(count > 0 for _, count in seen),
        otherwise="A device that holds writes back was never told to flush: its bytes would be "
        "lost with its power.",
    )


def _quiet_afterwards(case: Case, window: Window) -> Check:
    drop = case.event("drop_begin")
    if drop is None or drop.mono_ns <= window.end_ns:
        return missing("no drop after the save", "Event drop_begin is missing.")
    through = _grown(case, "write_sectors", window)
    both = _grown(case, "write_sectors", Window(begin_ns=window.begin_ns, end_ns=drop.mono_ns))
    if through is None or both is None:
        return missing("writes after the save not sampled", "The disk probe is silent there.")
    # From the sample that ends the window on: the one before it belongs to the save.
    late = (both - through) * BYTES_PER_SECTOR
    return Check(
        arithmetic=f"{case.run.kv_device} wrote {late} B <= {QUIET_WRITE_BYTES_MAX} B between the "
        "save and the drop",
        held=0 <= late <= QUIET_WRITE_BYTES_MAX,
        otherwise="What came late should have been inside the timed window.",
    )


def _same_hashes(case: Case, first: list[Row], second: list[Row], whose: str) -> Check:
    wanted = {row.get("rank"): row.get("sha256") for row in first}
    found = {row.get("rank"): row.get("sha256") for row in second if row.get("outcome") == "ok"}
    same = [rank for rank, digest in wanted.items() if digest and found.get(rank) == digest]
    count = 0 if case.run.work is None else case.run.work.workers
    failed = [row for row in second if row.get("outcome") != "ok"]
    why = f", {failed[0]['worker']}: {failed[0].get('error')}" if failed else ""
    return Check(
        arithmetic=f"{len(same)} of {count} parts have {whose} SHA-256{why}",
        held=len(same) == count > 0,
        otherwise="What was read is not what was written, or could not be read.",
    )


def _from_the_device(case: Case, read: list[Row]) -> Check:
    name, moved = case.run.kv_device, sum(row.get("file_bytes") or 0 for row in read)
    device = case.read_bytes(name, "readback")
    if device is None or not moved:
        return missing("bytes of the readback not known", "The disk probe or a rank is silent.")
    return Check(
        arithmetic=f"{name} read {device} B / files have {moved} B = {device / moved:.4f} "
        f">= {1 - BALANCE_TOLERANCE}",
        held=device >= (1 - BALANCE_TOLERANCE) * moved,
        otherwise="The page cache answered: that the device holds it was not shown.",
    )
