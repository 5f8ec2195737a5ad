"""N1 and N2: the certificate can say no."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.certificate import certify, connect_settled, objections
from r8.forensics.gate import not_held
from r8.message import Answer
from r8.tests.support.judged_run import Tables, drop_events, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path

    from r8.model import Finding

HIT = 8_388_608  # bytes of the control's one session


def control(tmp_path: Path, **spec: Any) -> dict[str, Finding]:
    return findings(judged_run(tmp_path, SyntheticRun(arm="unpatched", **spec)))


def test_controls_that_behave_are_held_by_the_numbers_of_the_rules_themselves(
    tmp_path: Path,
) -> None:
    found = control(tmp_path)
    assert found["N1"].answer is found["N2"].answer is Answer.HELD
    for words in (
        "N = 1, of sessions a cell uses 0 = 0",
        "drop before the control returned 0",
        f"the engine's processes read {HIT} B of files",
        "C3 is refuted: 4 of 4 files above 1% resident",
        f"C4 is refuted: loop0 read 0 B / engine hit {HIT} B = 0.0000 within 1 +- 0.02",
    ):
        assert words in found["N1"].arithmetic
    assert "1 random prompts, most hit tokens 0 = 0" in found["N2"].arithmetic


def test_n1_refutes_a_warm_read_that_looked_cold(tmp_path: Path) -> None:
    found = control(tmp_path, warm_control_device_bytes=HIT)["N1"]
    assert found.answer is Answer.REFUTED
    assert f"C4 holds: loop0 read {HIT} B / engine hit {HIT} B = 1.0000" in found.arithmetic
    assert "C4 proves nothing here" in found.detail


def test_n1_refutes_cached_files_that_are_not_seen_as_cached(tmp_path: Path) -> None:
    found = control(tmp_path, control_resident_share=0.0)["N1"]
    assert found.answer is Answer.REFUTED
    assert "C3 holds: 0 of 4 files above 1% resident" in found.arithmetic
    assert "C3 is blind" in found.detail


@pytest.mark.parametrize("left", [0.0, 0.5])
def test_n1_is_unknown_where_the_page_cache_did_not_keep_what_was_read_into_it(
    tmp_path: Path, left: float
) -> None:
    found = control(tmp_path, control_resident_share=left, warm_control_device_bytes=HIT)["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "the read was not warm" in found.detail


def test_n1_holds_where_a_part_was_lost_and_both_rules_still_refuse(tmp_path: Path) -> None:
    """Pages lost to pressure are read again: not all bytes are missing, but far too many."""
    lost = {"control_resident_share": 0.9}
    found = control(tmp_path / "lost", **lost, warm_control_device_bytes=HIT // 10)["N1"]
    assert found.answer is Answer.HELD
    # Without the device's bytes those came from nowhere.
    found = control(tmp_path / "nowhere", **lost)["N1"]
    assert found.answer is Answer.REFUTED
    assert "together gave fewer bytes than were hit" in found.detail


def test_n1_is_unknown_when_a_tier_in_dram_answered_or_nobody_dropped(tmp_path: Path) -> None:
    found = control(tmp_path / "dram", control_file_bytes=0)["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "a tier in DRAM: it was not flushed" in found.detail
    found = control(tmp_path / "silent", control_file_bytes=None)["N1"]
    assert found.answer is Answer.UNKNOWN
    found = control(tmp_path / "failed", control_drop_rc=1)["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "drop before the control returned 1 [unknown]" in found.arithmetic

    def no_drop(tables: Tables) -> None:
        drop_events(tables, "control_drop_end")

    evidence = judged_run(tmp_path / "none", SyntheticRun(arm="unpatched"), no_drop)
    assert findings(evidence)["N1"].answer is Answer.UNKNOWN


def test_n1_is_unknown_without_a_warm_read_its_residency_or_its_hits(tmp_path: Path) -> None:
    assert control(tmp_path / "bare", controls=False)["N1"].answer is Answer.UNKNOWN

    def no_residency(tables: Tables) -> None:
        tables["residency"] = [r for r in tables["residency"] if r["moment"] != "warm_read"]

    cut = SyntheticRun(run_id="cut", arm="unpatched")
    assert findings(judged_run(tmp_path, cut, no_residency))["N1"].answer is Answer.UNKNOWN

    def no_hits(text: str) -> str:
        lines = [line for line in text.splitlines() if "control-300" not in line]
        return "\n".join(lines) + "\n"

    cold = SyntheticRun(run_id="cold", arm="unpatched")
    found = findings(judged_run(tmp_path, cold, edit_log=no_hits))["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "the warm read hit nothing" in found.arithmetic


def test_the_measured_sessions_read_again_are_no_control(tmp_path: Path) -> None:
    def without_names(tables: Tables) -> None:
        """As runs from before: one random prompt as the control phase, the rest in phase warm."""
        rows = [row for row in tables["events"] if row["name"] in {"control_begin", "control_end"}]
        for row in rows[:2]:
            tables["events"].remove(row)
        for row in rows[2:]:
            row["detail"] = None

    evidence = judged_run(tmp_path / "old", SyntheticRun(arm="unpatched"), without_names)
    found = findings(evidence)
    assert found["N1"].answer is Answer.UNKNOWN
    assert "no warm read in this run" in found["N1"].arithmetic
    assert found["N2"].answer is Answer.HELD

    def measured_session(tables: Tables) -> None:
        for row in tables["requests"]:
            row["session"] = 0 if row["phase"] == "control" else row["session"]

    evidence = judged_run(tmp_path / "own", SyntheticRun(arm="unpatched"), measured_session)
    found = findings(evidence)
    assert found["N1"].answer is found["N2"].answer is Answer.UNKNOWN
    assert "of sessions a cell uses 1 = 0 [unknown]" in found["N1"].arithmetic


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


@pytest.mark.parametrize(
    ("last", "refused"),
    [
        ({}, []),
        ({"warm_control_device_bytes": HIT}, ["N1"]),
        ({"random_control_hit_tokens": 256}, ["N2"]),
        ({"controls": False}, ["N1", "N1", "N2", "N2"]),
    ],
)
def test_the_last_cells_controls_speak_for_every_run_of_the_block(
    tmp_path: Path, last: dict[str, Any], refused: list[str]
) -> None:
    """Two cells, the controls in the second: as they behave, the block is valid or INVALID."""
    cells = [
        judged_run(tmp_path, SyntheticRun(arm="patched", controls=False)),
        judged_run(tmp_path, SyntheticRun(arm="unpatched", **last)),
    ]
    runs = [one.run for one in cells]
    with connect_settled(cells) as connection:
        every = [one for run in runs for one in certify(run, connection)]
    # Whichever run a claim rests on, the whole block is asked.
    for run in runs:
        found = objections([run], every, ("N1", "N2"), runs)
        assert [one.rule_id for one in found] == refused
