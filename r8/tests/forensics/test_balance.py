"""C4: bytes at every layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.message import Answer
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import MIB, SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path

KV = 33_554_432


def test_c4_holds_when_all_layers_agree(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(system_read_bytes=10 * MIB)))["C4"]
    assert found.answer is Answer.HELD
    assert f"loop0 read {KV} B / engine hit {KV} B = 1.0000" in found.arithmetic
    assert f"process excess {10 * MIB} B <= {32 * MIB} B" in found.arithmetic


def test_c4_refutes_a_cache_that_served_three_percent(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(device_read_bytes=int(KV * 0.97))))["C4"]
    assert found.answer is Answer.REFUTED
    assert "= 0.9700 within 1 +- 0.02 [refuted]" in found.arithmetic
    assert "a cache served the rest" in found.detail


def test_c4_refutes_a_warm_read(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(device_read_bytes=0)))["C4"]
    assert found.answer is Answer.REFUTED
    assert "loop0 read 0 B" in found.arithmetic


def test_c4_refutes_a_second_reader_of_the_device(tmp_path: Path) -> None:
    spec = SyntheticRun(device_read_bytes=KV * 2, process_read_bytes=KV)
    found = findings(judged_run(tmp_path, spec))["C4"]
    assert found.answer is Answer.REFUTED
    assert f"process read {KV} B >= 65766687 B (0.98 of device) [refuted]" in found.arithmetic


def test_c4_refutes_an_engine_that_hit_nothing(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(hit_tokens=0)))["C4"]
    assert found.answer is Answer.REFUTED
    assert "engine hit 0 B" in found.arithmetic


def test_c4_wants_a_large_surplus_matched_by_other_devices(tmp_path: Path) -> None:
    # A md array: its bytes do not come from another watched disk, as a loop device's do.
    base = {"kv_device": "md0", "kv_members": ("nvme2n1", "nvme3n1")}
    spec = SyntheticRun(run_id="matched", system_read_bytes=40 * MIB, **base)  # type: ignore[arg-type]
    assert findings(judged_run(tmp_path, spec))["C4"].answer is Answer.HELD
    spec = SyntheticRun(run_id="unmatched", process_read_bytes=KV + 40 * MIB, **base)  # type: ignore[arg-type]
    found = findings(judged_run(tmp_path, spec))["C4"]
    assert found.answer is Answer.REFUTED
    assert f"other devices read 0 B >= {8 * MIB} B [refuted]" in found.arithmetic


def test_c4_does_not_let_a_loop_devices_backing_disk_explain_a_surplus(tmp_path: Path) -> None:
    spec = SyntheticRun(system_read_bytes=KV, process_read_bytes=KV + 40 * MIB)
    found = findings(judged_run(tmp_path, spec))["C4"]
    assert found.answer is Answer.REFUTED
    assert "other devices read 0 B" in found.arithmetic


def test_c4_compares_members_with_their_array(tmp_path: Path) -> None:
    spec = SyntheticRun(kv_device="md0", kv_members=("nvme2n1", "nvme3n1"))
    held = findings(judged_run(tmp_path, spec))["C4"]
    assert held.answer is Answer.HELD
    assert f"members read {KV} B against {KV} B of md0" in held.arithmetic

    def one_member_silent(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["device"] == "nvme3n1" and row["counter"] == "read_sectors":
                row["value"] = 1000

    broken = SyntheticRun(run_id="b", kv_device="md0", kv_members=("nvme2n1", "nvme3n1"))
    found = findings(judged_run(tmp_path, broken, one_member_silent))["C4"]
    assert found.answer is Answer.UNKNOWN or "[refuted]" in found.arithmetic
    assert found.answer is not Answer.HELD


def test_c4_is_unknown_without_device_or_process_counters(tmp_path: Path) -> None:
    no_device = SyntheticRun(run_id="d", device_read_bytes=None, process_read_bytes=KV)
    found = findings(judged_run(tmp_path, no_device))["C4"]
    assert found.answer is Answer.UNKNOWN
    assert "loop0: no read counter around the window" in found.arithmetic
    no_process = SyntheticRun(run_id="p", process_read_bytes=None)
    found = findings(judged_run(tmp_path, no_process))["C4"]
    assert found.answer is Answer.UNKNOWN
    assert "process read_bytes not known" in found.arithmetic


def test_c4_is_unknown_when_the_engine_said_nothing(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(hit_tokens=None)))["C4"]
    assert found.answer is Answer.UNKNOWN
    assert "engine hit bytes not known" in found.arithmetic


def test_c4_is_unknown_when_no_sample_closes_the_window(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        end = next(row for row in tables["events"] if row["name"] == "measure_end")["mono_ns"]
        tables["probes"] = [row for row in tables["probes"] if row["mono_ns"] < end]

    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["C4"].answer is Answer.UNKNOWN
