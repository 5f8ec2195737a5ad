"""C1 and C5: the device the arm names, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.message import Answer
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path


def test_c1_holds_when_every_file_lies_on_the_named_device(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C1"]
    assert found.answer is Answer.HELD
    assert "32 of 32 KV files on loop0" in found.arithmetic


def test_c1_refutes_kv_on_another_device_by_count(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(kv_mount_device="vda")))["C1"]
    assert found.answer is Answer.REFUTED
    assert "0 of 32 KV files on loop0, 32 on vda" in found.arithmetic


def test_c1_refutes_a_single_file_elsewhere(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        moved = next(row for row in tables["residency"] if row["moment"] == "after_drop")
        moved["device"] = "loop1"

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C1"]
    assert found.answer is Answer.REFUTED
    assert "31 of 32 KV files on loop0, 1 on loop1" in found.arithmetic


def test_c1_refutes_a_directory_outside_the_mount(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["run"][0]["kv_dir"] = "/kvother"

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C1"]
    assert found.answer is Answer.REFUTED
    assert "KV directory /kvother under mount /kv of loop0 [refuted]" in found.arithmetic


def test_c1_takes_any_of_several_mounts(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["counter"] == "mount" and row["device"] == "loop0":
                row["text"] = "/elsewhere,/kv"

    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["C1"].answer is Answer.HELD


def test_c1_is_unknown_without_residency_or_topology_or_device(tmp_path: Path) -> None:
    def no_residency(tables: Tables) -> None:
        tables["residency"].clear()

    def no_topology(tables: Tables) -> None:
        tables["probes"] = [row for row in tables["probes"] if row["probe"] != "topology"]

    def no_device(tables: Tables) -> None:
        tables["residency"][-20]["device"] = None
        for row in tables["residency"]:
            row["device"] = None

    for number, edit in enumerate((no_residency, no_topology, no_device)):
        spec = SyntheticRun(run_id=f"run-{number}")
        found = findings(judged_run(tmp_path, spec, edit))["C1"]
        assert found.answer is Answer.UNKNOWN, edit.__name__


def test_c5_holds_below_one_percent_of_the_kv_bytes(tmp_path: Path) -> None:
    spec = SyntheticRun(other_device_read_bytes=262_144)
    found = findings(judged_run(tmp_path, spec))["C5"]
    assert found.answer is Answer.HELD
    assert "loop1 read 262144 B / 33554432 B of KV = 0.0078 < 0.01" in found.arithmetic


def test_c5_refutes_reads_of_the_other_tier(tmp_path: Path) -> None:
    spec = SyntheticRun(other_device_read_bytes=524_288)
    found = findings(judged_run(tmp_path, spec))["C5"]
    assert found.answer is Answer.REFUTED
    assert "= 0.0156 < 0.01 [refuted]" in found.arithmetic


def test_c5_is_unknown_when_the_other_device_was_not_sampled(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["probes"] = [
            row for row in tables["probes"] if row["probe"] != "disk" or row["device"] != "loop1"
        ]

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C5"]
    assert found.answer is Answer.UNKNOWN
    assert "loop1: no read counter" in found.arithmetic


def test_c5_says_when_the_site_names_no_other_device(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(other_kv_devices=())))["C5"]
    assert found.answer is Answer.NOT_APPLICABLE
    assert found.arithmetic == "the site names 0 other KV devices [does not apply]"
