"""W1 to W3: a checkpoint was on the device when its time ended, reads back, and harmed no other.

A save that is timed without a flush measures memory. So the device's own write counters must show
every byte inside the window from the first rank's begin to the last one's end, a device that holds
writes back must have been told to flush in it, and nothing may follow that should have been in it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from r8.forensics.balance import BALANCE_FLOOR_SHARE, BALANCE_TOLERANCE
from r8.forensics.case import Window
from r8.forensics.coldness import QUIET_WRITE_BYTES_MAX
from r8.forensics.rule import Rule
from r8.forensics.transfer import Row, failures, together
from r8.message import Check, compared, missing, not_applicable
from r8.units import BYTES_PER_MIB, BYTES_PER_SECTOR

if TYPE_CHECKING:
    from r8.forensics.case import Case

JOB = "checkpoint"
# A file system's own log and inodes beside the data.
METADATA_BYTES_MAX = 32 * BYTES_PER_MIB
# Files that were renamed into place bear no such name.
PARTIAL = ".partial"
EARLIER, MEASURED = "step-1", "step-2"
WRITE_BACK = "write back"


def durable_inside_the_window(case: Case) -> list[Check]:
    """W1: flushed files and directories, all bytes at the device, its cache flushed, then quiet."""
    if not _is_checkpoint(case):
        return [_no_checkpoint()]
    rows = _rows(case, "measure")
    if not rows:
        return [missing("ranks_saved", "w1-no-rank")]
    bad = [row for row in rows if row.get("outcome") != "ok"]
    if bad:
        return [_not_saved(rows, bad)]
    window = Window(
        begin_ns=min(row["begin_ns"] for row in rows), end_ns=max(row["end_ns"] for row in rows)
    )
    return [
        *_flushes_asked_for(case, rows),
        _bytes_in_window(case, window),
        _device_flushed(case, window),
        _quiet_afterwards(case, window),
    ]


def reads_back(case: Case) -> list[Check]:
    """W2: after a drop every rank's part comes from the device and has the hash it was saved by."""
    if not _is_checkpoint(case):
        return [_no_checkpoint()]
    saved, read = _rows(case, "prepare"), _rows(case, "readback")
    if not saved:
        return [missing("parts_same", "w2-no-hash")]
    if not read:
        return [compared("parts_read_back", (0, ">", 0), "w2-nothing-read-back", unit="parts")]
    return [_same_hashes(case, saved, read, "w2-parts-same"), _from_the_device(case)]


def others_untouched(case: Case) -> list[Check]:
    """W3: the earlier checkpoint is as it was, and nothing is left under a half-way name."""
    if not _is_checkpoint(case):
        return [_no_checkpoint()]
    checks = [_names_left(case)]
    before, after = _rows(case, "earlier"), _rows(case, "readback_earlier")
    if not before or not after:
        return [*checks, missing("parts_same", "w3-earlier-not-read")]
    return [*checks, _same_hashes(case, before, after, "w3-parts-same")]


def _names_left(case: Case) -> Check:
    event = case.event("checkpoints")
    names = None if event is None else event.detail.get("names")
    if not isinstance(names, list):
        return missing("checkpoint_names", "w3-names-unknown")
    done = all(row.get("outcome") == "ok" for row in _rows(case, "measure"))
    half = [str(name) for name in names if str(name).endswith(PARTIAL)]
    return compared(
        "checkpoint_names",
        (", ".join(map(str, names)), "==", ", ".join([EARLIER, MEASURED] if done else [EARLIER])),
        "w3-half-way" if half else "w3-names",
        facts={"half": ", ".join(half)},
    )


def _is_checkpoint(case: Case) -> bool:
    return case.transfer is not None and case.transfer.job == JOB


def _no_checkpoint() -> Check:
    return not_applicable("checkpoint", "w-no-checkpoint")


def _rows(case: Case, phase: str) -> list[Row]:
    found = case.rows(
        "SELECT detail FROM work WHERE run_id = $run AND phase = $phase ORDER BY worker, end_ns",
        phase=phase,
    )
    return [json.loads(detail) for (detail,) in found]


def _not_saved(rows: list[Row], bad: list[Row]) -> Check:
    return compared(
        "ranks_not_saved",
        (len(bad), "==", 0),
        "w1-not-saved",
        unit="ranks",
        facts={"ranks": len(rows), "failures": failures(bad)},
    )


def _flushes_asked_for(case: Case, rows: list[Row]) -> list[Check]:
    """Every file and a directory a rank, and one rank that commits; else memory was timed."""
    saved = together(case, "measure")
    files, synced = saved["files"], saved["synced_files"] or 0
    committed = [row["worker"] for row in rows if row.get("committed")]
    ranks = len(rows)
    return [
        compared(
            "files_not_flushed",
            # A save of no file has flushed nothing.
            (files - synced if files else None, "==", 0),
            "w1-files-flushed",
            unit="files",
            facts={"files": files or 0},
        ),
        compared(
            "ranks_without_flushed_directory",
            (sum(not row.get("synced_directories") for row in rows), "==", 0),
            "w1-directories-flushed",
            unit="ranks",
            facts={"ranks": ranks},
        ),
        compared(
            "ranks_committing",
            (len(committed), "==", 1),
            "w1-committed",
            unit="ranks",
            facts={"workers": ", ".join(committed)},
        ),
    ]


def _bytes_in_window(case: Case, window: Window) -> Check:
    name, saved = case.run.kv_device, together(case, "measure")
    payload = saved["file_bytes"]
    sectors = case.grown("disk", case.device, "write_sectors", window)
    if sectors is None or payload is None:
        return missing("device_write_bytes", "w1-writes-unknown", device=name)
    return compared(
        "device_write_bytes",
        (
            sectors * BYTES_PER_SECTOR,
            "within",
            (payload, round((1 + BALANCE_TOLERANCE) * payload) + METADATA_BYTES_MAX),
        ),
        "w1-bytes-in-window",
        unit="bytes",
        facts={"device": name, "window_ns": saved["wall_ns"]},
    )


def _device_flushed(case: Case, window: Window) -> Check:
    event = case.event("write_cache")
    modes = None if event is None else event.detail.get("modes")
    known = {} if not isinstance(modes, dict) else {k: v for k, v in modes.items() if v}
    if not known:
        return missing("device_flushes", "w1-write-cache-unknown")
    holding = sorted(name for name, mode in known.items() if mode == WRITE_BACK)
    if not holding:
        return compared("devices_holding_writes", (0, "==", 0), "w1-nothing-held", unit="devices")
    counts = {
        name: case.grown("disk", replace(case.device, name=name), "flushes", window)
        for name in holding
    }
    known_counts = [count for count in counts.values() if count is not None]
    return compared(
        "device_flushes",
        (max(known_counts, default=None), ">", 0),
        "w1-flushed",
        unit="flushes",
        facts={"devices": ", ".join(f"{name}: {count}" for name, count in counts.items())},
    )


def _quiet_afterwards(case: Case, window: Window) -> Check:
    drop = case.event("drop_begin")
    if drop is None or drop.mono_ns <= window.end_ns:
        return missing("late_write_bytes", "w1-no-drop")
    rows = case.rows(
        "SELECT write_bytes FROM late_writes($end_ns, $drop_ns) "
        "WHERE run_id = $run AND host = $host AND device = $device",
        host=case.run.kv_host,
        device=case.run.kv_device,
        end_ns=window.end_ns,
        drop_ns=drop.mono_ns,
    )
    late = rows[0][0] if len(rows) == 1 else None
    if late is None:
        return missing("late_write_bytes", "w1-writes-unknown", device=case.run.kv_device)
    return compared(
        "late_write_bytes",
        (late, "within", (0, QUIET_WRITE_BYTES_MAX)),
        "w1-late-writes",
        unit="bytes",
        facts={"device": case.run.kv_device},
    )


def _same_hashes(case: Case, first: list[Row], second: list[Row], message: str) -> Check:
    wanted = {row.get("rank"): row.get("sha256") for row in first}
    read = [row for row in second if row.get("outcome") == "ok"]
    found = {row.get("rank"): row.get("sha256") for row in read}
    failed = [row for row in second if row.get("outcome") != "ok"]
    return compared(
        "parts_same",
        (
            sum(bool(one) and found.get(rank) == one for rank, one in wanted.items()),
            "==",
            len(case.run.processes),
        ),
        message,
        unit="parts",
        facts={"failures": failures(failed)},
    )


def _from_the_device(case: Case) -> Check:
    name, moved = case.run.kv_device, together(case, "readback")["file_bytes"]
    device = case.read_bytes(case.device, "readback")
    if device is None or not moved:
        return missing("device_read_bytes / readback_bytes", "w2-bytes-unknown")
    return compared(
        "device_read_bytes / readback_bytes",
        (device / moved, ">=", BALANCE_FLOOR_SHARE),
        "w2-from-the-device",
        unit="ratio",
        facts={"device": name, "read_bytes": device, "moved_bytes": moved},
    )


W1 = Rule(
    rule_id="W1",
    checks=durable_inside_the_window,
    thresholds={
        "tolerance_share": BALANCE_TOLERANCE,
        "metadata_bytes": METADATA_BYTES_MAX,
        "late_bytes": QUIET_WRITE_BYTES_MAX,
    },
)
W2 = Rule(rule_id="W2", checks=reads_back, thresholds={"floor_share": BALANCE_FLOOR_SHARE})
W3 = Rule(rule_id="W3", checks=others_untouched)
