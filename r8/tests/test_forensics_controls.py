"""N1 and N2: the certificate can say no."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.forensics_gate import not_held
from r8.model import Answer
from r8.tests.judged_run import Tables, findings, judged_run
from r8.tests.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path

UNPATCHED = SyntheticRun(arm="unpatched")


def without_names(tables: Tables) -> None:
    """A lab that marks one random prompt as its control phase and re-reads in phase warm."""
    rows = [row for row in tables["events"] if row["name"].startswith("control_")]
    for row in rows[:2]:
        tables["events"].remove(row)
    for row in rows[2:]:
        row["detail"] = None
    tables["requests"] = [r for r in tables["requests"] if r["request_id"] != "control-300"]


@pytest.mark.parametrize("named", [True, False])
def test_controls_that_behave_are_held(tmp_path: Path, named: bool) -> None:  # noqa: FBT001
    found = findings(judged_run(tmp_path, UNPATCHED, None if named else without_names))
    assert found["N1"].answer is Answer.HELD
    assert found["N2"].answer is Answer.HELD
    assert "loop0 read 0 B / warm hits" in found["N1"].arithmetic
    assert "16 files above 1% resident" in found["N1"].arithmetic
    assert "1 random prompts, most hit tokens 0 = 0" in found["N2"].arithmetic


def test_n1_refutes_a_warm_read_that_balances_like_a_cold_one(tmp_path: Path) -> None:
    spec = SyntheticRun(arm="unpatched", warm_control_device_bytes=8_388_608)
    found = findings(judged_run(tmp_path, spec))["N1"]
    assert found.answer is Answer.REFUTED
    assert "8388608 B / warm hits 8388608 B = 1.0000 < 0.98 [refuted]" in found.arithmetic


def test_n1_refutes_cached_files_that_are_not_seen_as_cached(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        for row in tables["residency"]:
            if row["moment"] == "after_measure":
                row["resident_bytes"] = 0

    found = findings(judged_run(tmp_path, UNPATCHED, edit))["N1"]
    assert found.answer is Answer.REFUTED
    assert "0 files above 1% resident, 0 B in the page cache" in found.arithmetic


def test_n1_holds_when_short_memory_sent_a_part_back_to_the_device(tmp_path: Path) -> None:
    """Most files were still cached, and the others were read again: both witnesses agree."""

    def edit(tables: Tables) -> None:
        after = [row for row in tables["residency"] if row["moment"] == "after_measure"]
        for row in after[:13]:  # 6 MiB are left of the 8 that are hit
            row["resident_bytes"] = 0

    again = SyntheticRun(run_id="again", arm="unpatched", warm_control_device_bytes=2_097_152)
    found = findings(judged_run(tmp_path, again, edit))["N1"]
    assert found.answer is Answer.HELD
    assert "+ 2097152 B read again >= 8388608 B hit" in found.arithmetic
    # Without the device's bytes those 2 MiB came from nowhere.
    silent = SyntheticRun(run_id="silent", arm="unpatched")
    assert findings(judged_run(tmp_path, silent, edit))["N1"].answer is Answer.REFUTED


def test_n1_is_unknown_when_the_page_cache_was_emptied_before_the_warm_read(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        for row in tables["residency"]:
            if row["moment"] == "after_measure":
                row["resident_bytes"] = 0

    spec = SyntheticRun(arm="unpatched", warm_control_device_bytes=8_388_608)
    found = findings(judged_run(tmp_path, spec, edit))["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "the page cache was emptied before the warm read" in found.arithmetic


def test_n1_is_unknown_without_a_warm_read_its_residency_or_its_hits(tmp_path: Path) -> None:
    bare = SyntheticRun(run_id="bare", arm="unpatched", controls=False, warm_ttft_s=None)
    assert findings(judged_run(tmp_path, bare))["N1"].answer is Answer.UNKNOWN

    def no_residency(tables: Tables) -> None:
        tables["residency"] = [r for r in tables["residency"] if r["moment"] != "after_measure"]

    cut = SyntheticRun(run_id="cut", arm="unpatched")
    assert findings(judged_run(tmp_path, cut, no_residency))["N1"].answer is Answer.UNKNOWN

    def no_hits(text: str) -> str:
        lines = [line for line in text.splitlines() if "control-300" not in line]
        return "\n".join(lines) + "\n"

    cold = SyntheticRun(run_id="cold", arm="unpatched")
    found = findings(judged_run(tmp_path, cold, edit_log=no_hits))["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "the warm read hit nothing" in found.arithmetic


def test_n1_cannot_be_known_on_an_arm_that_reads_past_the_page_cache(tmp_path: Path) -> None:
    evidence = judged_run(tmp_path, SyntheticRun())
    found = findings(evidence)["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "O_DIRECT" in found.arithmetic
    assert not_held(evidence) == ()


def test_n2_refutes_a_random_prompt_that_hit(tmp_path: Path) -> None:
    spec = SyntheticRun(arm="unpatched", random_control_hit_tokens=256)
    evidence = judged_run(tmp_path, spec)
    found = findings(evidence)["N2"]
    assert found.answer is Answer.REFUTED
    assert "most hit tokens 256 = 0 [refuted]" in found.arithmetic
    assert [one.rule_id for one in not_held(evidence)] == ["N2"]


def test_n2_is_unknown_without_the_prompt_or_its_line(tmp_path: Path) -> None:
    bare = SyntheticRun(run_id="bare", controls=False)
    assert findings(judged_run(tmp_path, bare))["N2"].answer is Answer.UNKNOWN

    def no_line(text: str) -> str:
        lines = [line for line in text.splitlines() if "control-301" not in line]
        return "\n".join(lines) + "\n"

    cut = SyntheticRun(run_id="cut")
    found = findings(judged_run(tmp_path, cut, edit_log=no_line))["N2"]
    assert found.answer is Answer.UNKNOWN
    assert "0 of 1 random prompts with a lookup line" in found.arithmetic
