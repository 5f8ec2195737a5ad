"""C11: the patch in force, or provably absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.message import Answer
from r8.tests.support.judged_run import Tables, findings, judged_run, set_detail
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path


def test_c11_holds_for_a_patched_engine_that_says_and_counts_so(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C11"]
    assert found.answer is Answer.HELD
    assert "patch read 33554432 B = 33554432 B expected" in found.arithmetic
    assert "32 segments >= 33554432 B / 1048576 B = 32" in found.arithmetic


def test_c11_refutes_a_patch_the_running_engine_never_loaded(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_mode=None)))["C11"]
    assert found.answer is Answer.REFUTED
    assert "a: 0 R8-PATCH loaded lines of" in found.arithmetic
    assert "applied too late" in found.detail


def test_c11_refutes_another_module(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_sha256="cd" * 32)))["C11"]
    assert found.answer is Answer.REFUTED
    assert "engine says module cdcdcdcdcdcd mode parallel, plan says abababababab" in (
        found.arithmetic
    )


def test_c11_refutes_a_patched_arm_in_serial_mode(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_mode="serial")))["C11"]
    assert found.answer is Answer.REFUTED
    assert "mode serial, plan says abababababab parallel [refuted]" in found.arithmetic
    assert "16 segments >= 33554432 B / 1048576 B = 32 [refuted]" in found.arithmetic


def test_c11_refutes_a_patch_that_is_loaded_and_reads_nothing(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_reads=False)))["C11"]
    assert found.answer is Answer.REFUTED
    assert "0 R8-PATCH read lines in the measured phase, 33554432 B expected" in found.arithmetic


def test_c11_refutes_misses_and_short_reads(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_misses=1)))["C11"]
    assert found.answer is Answer.REFUTED
    assert "a: 4 misses [refuted]" in found.arithmetic
    short = SyntheticRun(run_id="short", hit_tokens=768)
    found = findings(judged_run(tmp_path, short))["C11"]
    assert found.answer is Answer.REFUTED
    assert "patch read 25165824 B = 33554432 B expected [refuted]" in found.arithmetic


def test_c11_refutes_a_patched_arm_on_the_base_file(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["run"][0]["patch"]["target_sha256"] = "0b" * 32
        set_detail(tables, "patch_state", target_sha256="0b" * 32)

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C11"]
    assert found.answer is Answer.REFUTED
    assert "target 0b0b0b0b0b0b differs from base 0b0b0b0b0b0b [refuted]" in found.arithmetic


def test_c11_refutes_a_tree_that_changed_before_the_start(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        set_detail(tables, "patch_state", module_sha256="ef" * 32)

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C11"]
    assert found.answer is Answer.REFUTED
    assert "1 of 5 fields differ from run.json: module_sha256 [refuted]" in found.arithmetic


def test_c11_holds_for_an_unpatched_engine_on_the_base_file(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched")))["C11"]
    assert found.answer is Answer.HELD
    assert "a: 0 R8-PATCH lines" in found.arithmetic


def test_c11_holds_for_an_unpatched_arm_in_serial_mode(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched", patch_mode="serial")))
    assert found["C11"].answer is Answer.HELD


def test_c11_refutes_an_unpatched_arm_with_an_active_patch(tmp_path: Path) -> None:
    spec = SyntheticRun(arm="unpatched", patch_mode="parallel")
    found = findings(judged_run(tmp_path, spec))["C11"]
    assert found.answer is Answer.REFUTED
    assert "a: patch loaded, mode parallel [refuted]" in found.arithmetic


def test_c11_refutes_an_unpatched_arm_on_a_modified_file(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["run"][0]["patch"]["target_sha256"] = "0c" * 32
        set_detail(tables, "patch_state", target_sha256="0c" * 32)

    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched"), edit))["C11"]
    assert found.answer is Answer.REFUTED
    assert "target 0c0c0c0c0c0c = base 0b0b0b0b0b0b [refuted]" in found.arithmetic


def test_c11_is_unknown_without_state_event_or_log(tmp_path: Path) -> None:
    def no_state(tables: Tables) -> None:
        tables["run"][0]["patch"] = None

    def no_event(tables: Tables) -> None:
        tables["events"] = [row for row in tables["events"] if row["name"] != "patch_state"]

    for number, (arm, edit) in enumerate(
        (("patched", no_state), ("patched", no_event), ("unpatched", no_event))
    ):
        spec = SyntheticRun(run_id=f"run-{number}", arm=arm)
        assert findings(judged_run(tmp_path, spec, edit))["C11"].answer is Answer.UNKNOWN
    for arm in ("patched", "unpatched"):
        silent = SyntheticRun(run_id=f"silent-{arm}", arm=arm)
        evidence = judged_run(tmp_path, silent, edit_log=lambda _: "")
        assert findings(evidence)["C11"].answer is Answer.UNKNOWN
