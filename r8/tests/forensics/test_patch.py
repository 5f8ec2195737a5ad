"""C11: the patch in force, or provably absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.forensics.patch import patch_in_force
from r8.message import Answer
from r8.tests.support.findings import meant, said
from r8.tests.support.judged_run import Tables, findings, judged_run, set_detail
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import KV_RUN, H, R, StubCase, answers_of, at_least, exactly

if TYPE_CHECKING:
    from pathlib import Path

    from r8.message import Check


KV = KV_RUN.expectation.hit_bytes
SEGMENT = 1 << 20
LOADED = f"R8-PATCH loaded segment_bytes={SEGMENT}"


def patched(
    *,
    lines: int = 1,
    size: int = KV,
    segments: int = KV // SEGMENT,
    misses: int = 0,
    loaded: tuple[tuple[str, str], ...] = (("ab" * 32, "parallel"),),
) -> list[Check]:
    """C11 of a patched engine that said and counted so."""
    case = StubCase(
        answers={
            "kind = 'patch_loaded'": [(digest, mode, LOADED) for digest, mode in loaded],
            "FROM patch_sums": [(size, segments, misses)] if lines else [],
            "SELECT count(*) FROM engine_log": [(7,)],
        }
    )
    return list(patch_in_force(case))


@pytest.mark.parametrize(("size", "answer"), exactly(KV))
def test_c11_wants_exactly_the_bytes_of_the_sessions(size: int, answer: Answer) -> None:
    assert answers_of(patched(size=size, segments=99), "c11-read-bytes") == [answer]


@pytest.mark.parametrize(("segments", "answer"), at_least(KV // SEGMENT))
def test_c11_wants_as_many_segments_as_fit(segments: int, answer: Answer) -> None:
    assert answers_of(patched(segments=segments), "c11-segments") == [answer]
    # One byte more is one segment more.
    more = patched(size=KV + 1, segments=segments + 1)
    assert answers_of(more, "c11-segments") == [answer]


@pytest.mark.parametrize(("misses", "answer"), [(0, H), (1, R)])
def test_c11_allows_no_miss(misses: int, answer: Answer) -> None:
    assert answers_of(patched(misses=misses), "c11-misses") == [answer]


def test_c11_wants_every_loaded_line_to_name_the_module_and_the_last_one_to_be_active() -> None:
    good, other = ("ab" * 32, "parallel"), ("cd" * 32, "parallel")
    inactive = ("ab" * 32, "serial")
    assert answers_of(patched(loaded=(other, good)), "c11-module") == [R]
    assert answers_of(patched(loaded=(good, other)), "c11-module") == [R]
    assert answers_of(patched(loaded=(inactive, good)), "c11-mode") == [H]
    assert answers_of(patched(loaded=(good, inactive)), "c11-mode") == [R]
    assert answers_of(patched(loaded=()), "c11-not-loaded") == [R]
    assert answers_of(patched(lines=0), "c11-nothing-read") == [R]


def test_c11_holds_for_a_patched_engine_that_says_and_counts_so(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C11"]
    assert found.answer is Answer.HELD
    assert "patch read 32 MiB = 32 MiB expected" in said(found)
    assert "32 segments >= 32 MiB / 1 MiB = 32" in said(found)


def test_c11_refutes_a_patch_the_running_engine_never_loaded(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_mode=None)))["C11"]
    assert found.answer is Answer.REFUTED
    assert "a: 0 R8-PATCH loaded lines of" in said(found)
    assert "applied too late" in meant(found)


def test_c11_refutes_another_module(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_sha256="cd" * 32)))["C11"]
    assert found.answer is Answer.REFUTED
    assert "engine says module cdcdcdcdcdcd = abababababab planned [refuted]" in said(found)


def test_c11_refutes_a_patched_arm_in_serial_mode(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_mode="serial")))["C11"]
    assert found.answer is Answer.REFUTED
    assert "engine says mode serial = parallel [refuted]" in said(found)
    assert "16 segments >= 32 MiB / 1 MiB = 32 [refuted]" in said(found)


def test_c11_refutes_a_patch_that_is_loaded_and_reads_nothing(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_reads=False)))["C11"]
    assert found.answer is Answer.REFUTED
    assert "0 R8-PATCH read lines in the measured phase, 32 MiB expected" in said(found)


def test_c11_refutes_misses_and_short_reads(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(patch_misses=1)))["C11"]
    assert found.answer is Answer.REFUTED
    assert "a: 4 misses [refuted]" in said(found)
    short = SyntheticRun(run_id="short", hit_tokens=768)
    found = findings(judged_run(tmp_path, short))["C11"]
    assert found.answer is Answer.REFUTED
    assert "patch read 24 MiB = 32 MiB expected [refuted]" in said(found)


def test_c11_refutes_a_patched_arm_on_the_base_file(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["run"][0]["patch"]["target_sha256"] = "0b" * 32
        set_detail(tables, "patch_state", target_sha256="0b" * 32)

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C11"]
    assert found.answer is Answer.REFUTED
    assert "target 0b0b0b0b0b0b differs from base 0b0b0b0b0b0b [refuted]" in said(found)


def test_c11_refutes_a_tree_that_changed_before_the_start(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        set_detail(tables, "patch_state", module_sha256="ef" * 32)

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C11"]
    assert found.answer is Answer.REFUTED
    assert "1 of 5 fields differ from run.json (module_sha256) [refuted]" in said(found)


def test_c11_holds_for_an_unpatched_engine_on_the_base_file(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched")))["C11"]
    assert found.answer is Answer.HELD
    assert "a: no R8-PATCH line among" in said(found)


def test_c11_holds_for_an_unpatched_arm_in_serial_mode(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched", patch_mode="serial")))
    assert found["C11"].answer is Answer.HELD


def test_c11_refutes_an_unpatched_arm_with_an_active_patch(tmp_path: Path) -> None:
    spec = SyntheticRun(arm="unpatched", patch_mode="parallel")
    found = findings(judged_run(tmp_path, spec))["C11"]
    assert found.answer is Answer.REFUTED
    assert "a: patch loaded, mode parallel = serial [refuted]" in said(found)


def test_c11_refutes_an_unpatched_arm_on_a_modified_file(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["run"][0]["patch"]["target_sha256"] = "0c" * 32
        set_detail(tables, "patch_state", target_sha256="0c" * 32)

    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched"), edit))["C11"]
    assert found.answer is Answer.REFUTED
    assert "target 0c0c0c0c0c0c = base 0b0b0b0b0b0b [refuted]" in said(found)


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
