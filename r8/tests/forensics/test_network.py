"""Files on an NFS mount: rules of block devices stay unknown, and say what was seen and lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.network import LACKS
from r8.message import Answer
from r8.tests.support.findings import meant, said
from r8.tests.support.judged_run import Tables, event, findings
from r8.tests.support.transfer_runs import loading_spec, work_run

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000_000
MOUNT = "/mnt/nfs"


def _on_nfs(tables: Tables) -> None:
    run = tables["run"][0]
    device, run["kv_device"] = run["kv_device"], ""
    tables["probes"] = [row for row in tables["probes"] if row["device"] != device]
    for row in tables["residency"]:
        row["device"] = None


def _with_counters(tables: Tables) -> None:
    _on_nfs(tables)
    begin, end = (event(tables, f"measure_{edge}")["mono_ns"] for edge in ("begin", "end"))
    like = next(row for row in tables["probes"] if row["probe"] == "disk")
    for at, value in ((begin - S, 1_000), (end + S, 33_555_432)):
        told = {"probe": "nfs", "device": MOUNT, "counter": "server_read_bytes", "value": value}
        tables["probes"].append({**like, **told, "mono_ns": at, "epoch": 0})


def test_every_rule_a_mount_leaves_unknown_says_what_would_make_it_known(tmp_path: Path) -> None:
    found = findings(work_run(tmp_path, loading_spec(), _with_counters))
    unknown = {name for name, one in found.items() if one.answer is Answer.UNKNOWN}
    assert unknown == set(LACKS)
    for name, lacks in LACKS.items():
        messages = [one.message for one in found[name].checks]
        assert messages[:3] == ["no-block-device", "nfs-captured-only", lacks]
        assert found[name].checks[1].facts == {"mount": MOUNT, "read_bytes": 33_554_432}
    assert found["C3"].answer is Answer.HELD, "the page cache is this host's own"


def test_a_directory_that_is_on_no_nfs_mount_is_not_told_about_one(tmp_path: Path) -> None:
    found = findings(work_run(tmp_path, loading_spec(), _on_nfs))
    assert "no block device" in meant(found["C4"])
    assert "NFS" not in said(found["C4"])


def test_counters_that_were_not_read_around_the_window_are_no_number(tmp_path: Path) -> None:
    def late(tables: Tables) -> None:
        _with_counters(tables)
        tables["probes"] = [
            row for row in tables["probes"] if row["probe"] != "nfs" or row["value"] != 1_000
        ]

    found = findings(work_run(tmp_path, loading_spec(), late))
    assert "its counters were not read around the window" in said(found["C4"])
