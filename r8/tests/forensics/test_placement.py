"""C1 and C5: the device the arm names, and no other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.forensics.placement import kv_on_named_device, other_devices_quiet
from r8.message import Answer
from r8.tests.support.findings import said
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import KV_RUN, H, R, StubCase, U, below

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("elsewhere", "unknown", "answer"), [(0, 0, H), (1, 0, R), (0, 1, U), (1, 1, R)]
)
def test_c1_wants_every_file_on_the_device(elsewhere: int, unknown: int, answer: Answer) -> None:
    files = 9 + elsewhere + unknown
    host = KV_RUN.kv_host
    rows = [(host, "loop0", 9), (host, "vda", elsewhere), (None, None, unknown)]
    case = StubCase(answers={"residency": [(*row, files) for row in rows if row[2]]})
    (found,) = (one for one in kv_on_named_device(case) if one.message == "c1-files-on-device")
    assert found.answer is answer
    assert found.facts["files"] == files


@pytest.mark.parametrize(("read", "answer"), below(10_000))
def test_c5_wants_less_than_one_percent_of_the_kv(read: int, answer: Answer) -> None:
    run = replace(KV_RUN, expectation=replace(KV_RUN.expectation, chunk_bytes=62_500))
    assert run.expectation.hit_bytes == 1_000_000
    assert other_devices_quiet(StubCase(run=run, reads={"loop1": read}))[0].answer is answer


def test_c1_holds_when_every_file_lies_on_the_named_device(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C1"]
    assert found.answer is Answer.HELD
    assert "32 of 32 KV files on loop0" in said(found)


def test_c1_refutes_kv_on_another_device_by_count(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(kv_mount_device="vda")))["C1"]
    assert found.answer is Answer.REFUTED
    assert "0 of 32 KV files on loop0, 32 elsewhere (vda: 32)" in said(found)


def test_c1_refutes_a_single_file_elsewhere(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        moved = next(row for row in tables["residency"] if row["moment"] == "after_drop")
        moved["device"] = "loop1"

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C1"]
    assert found.answer is Answer.REFUTED
    assert "31 of 32 KV files on loop0, 1 elsewhere (loop1: 1)" in said(found)


def test_c1_refutes_a_directory_outside_the_mount(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["run"][0]["kv_dir"] = "/kvother"

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C1"]
    assert found.answer is Answer.REFUTED
    assert "KV directory /kvother under mount /kv of loop0: false [refuted]" in said(found)


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
    assert "loop1 read 262144 B / 32 MiB of KV = 0.0078 < 0.0100" in said(found)


def test_c5_refutes_reads_of_the_other_tier(tmp_path: Path) -> None:
    spec = SyntheticRun(other_device_read_bytes=524_288)
    found = findings(judged_run(tmp_path, spec))["C5"]
    assert found.answer is Answer.REFUTED
    assert "= 0.0156 < 0.0100 [refuted]" in said(found)


def test_c5_is_unknown_when_the_other_device_was_not_sampled(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["probes"] = [
            row for row in tables["probes"] if row["probe"] != "disk" or row["device"] != "loop1"
        ]

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C5"]
    assert found.answer is Answer.UNKNOWN
    assert "loop1: no read counter" in said(found)


def test_c5_says_when_the_site_names_no_other_device(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(other_kv_devices=())))["C5"]
    assert found.answer is Answer.NOT_APPLICABLE
    assert said(found) == "the site names no other KV device [does not apply]"
