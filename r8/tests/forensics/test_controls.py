"""N1 and N2: the certificate can say no."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.certificate import certify, connect_settled, objections
from r8.forensics.controls import (
    RANDOM_PROMPT,
    WARM_READ,
    random_prompt_hits_nothing,
    warm_load_is_refused,
    warm_read_is_refused,
)
from r8.forensics.gate import not_held
from r8.message import Answer, answer_of_all
from r8.tests.support.findings import check_of, meant, said
from r8.tests.support.judged_run import Tables, drop_events, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import (
    KV_RUN,
    H,
    R,
    StubCase,
    U,
    answers_of,
    at_least,
    below,
    job_run,
    work_sums,
)

if TYPE_CHECKING:
    from pathlib import Path

    from r8.message import Check
    from r8.model import Finding

HIT = 8_388_608  # bytes of the control's one session


ROUND = 1_000_000  # bytes hit by a control of four chunks


def warm_read(
    cached: int, device: int | None, *, files: int = ROUND, of_cells: int = 0, rc: int = 0
) -> list[Check]:
    """N1 of a read of 1 MB of which so much lay in the page cache and came from the device."""
    chunk = KV_RUN.expectation.chunk_tokens
    case = StubCase(
        run=replace(KV_RUN, expectation=replace(KV_RUN.expectation, chunk_bytes=ROUND // 4)),
        told={"control_drop_end": (1, {"rc": rc})},
        reads={"loop0": device},
        answers={
            "FROM phases": [(1, 2, 3, WARM_READ)],
            "kind = 'patch_loaded'": [(0,)],
            "FROM engine_requests": [("c0", 4 * chunk, of_cells)],
            "control_hits": [(ROUND,)],
            "file_reads": [(files,)],
            "residency_at": [("f", ROUND, cached, True, None)],
            "residency_sums": [(1, ROUND, cached)],
        },
    )
    return list(warm_read_is_refused(case))


@pytest.mark.parametrize(("cached", "answer"), [(10_000, R), (10_001, H)])
def test_n1_needs_c3_to_see_a_file_above_its_limit(cached: int, answer: Answer) -> None:
    assert answers_of(warm_read(cached, 0), "n1-c3") == [answer]


@pytest.mark.parametrize(("device", "answer"), below(980_000))
def test_n1_needs_c4_to_see_less_than_its_limit(device: int, answer: Answer) -> None:
    assert answers_of(warm_read(ROUND, device), "n1-c4") == [answer]


@pytest.mark.parametrize("cached", [979_999, 980_000])
def test_n1_refutes_a_read_that_balances_only_where_it_was_warm(cached: int) -> None:
    answer = answer_of_all(warm_read(cached, 980_000))
    assert answer is (U if cached < 980_000 else R)


@pytest.mark.parametrize(("device", "answer"), at_least(80_000))
def test_n1_wants_page_cache_and_device_to_give_every_byte(device: int, answer: Answer) -> None:
    assert answers_of(warm_read(900_000, device), "n1-adds-up") == [answer]


@pytest.mark.parametrize("device", [979_999, 980_000])
def test_n1_calls_c3_blind_only_where_the_device_gave_too_little(device: int) -> None:
    answer = answer_of_all(warm_read(0, device))
    assert answer is (R if device < 980_000 else U)


@pytest.mark.parametrize("files", [979_999, 980_000])
def test_n1_wants_the_engine_to_have_read_files(files: int) -> None:
    (answer,) = answers_of(warm_read(ROUND, 0, files=files), "n1-through-the-page-cache")
    assert answer is (U if files < 980_000 else H)


def test_n1_shows_nothing_on_sessions_of_a_cell_or_after_a_drop_that_failed() -> None:
    assert answer_of_all(warm_read(ROUND, 0)) is H
    assert answer_of_all(warm_read(ROUND, 0, of_cells=1)) is U
    assert answer_of_all(warm_read(ROUND, 0, rc=1)) is U
    assert answer_of_all(warm_read(ROUND, None)) is U


def test_n1_does_not_add_up_what_it_does_not_know(tmp_path: Path) -> None:
    def one_lost(tables: Tables) -> None:
        next(r for r in tables["residency"] if r["moment"] == "warm_read")["resident_bytes"] = None

    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched"), one_lost))["N1"]
    assert answers_of(found.checks, "n1-c3") == [H], "the other files are above the limit"
    assert answers_of(found.checks, "n1-adds-up") == []


def warm_load(above: int, cached: int, device: int) -> list[Check]:
    case = StubCase(
        run=job_run(),
        told={"warm_begin": (1, {}), "warm_end": (2, {})},
        reads={"loop0": device},
        answers={
            "work_sums": work_sums(bytes=ROUND),
            "residency_sums": [(cached, above)],
        },
    )
    return list(warm_load_is_refused(case))


@pytest.mark.parametrize(("device", "answer"), below(980_000))
def test_n1_needs_c4_to_see_less_than_a_warm_load(device: int, answer: Answer) -> None:
    assert answers_of(warm_load(1, ROUND, device), "n1-c4-load") == [answer]


@pytest.mark.parametrize(("device", "answer"), at_least(80_000))
def test_n1_wants_all_bytes_of_a_warm_load(device: int, answer: Answer) -> None:
    assert answers_of(warm_load(1, 900_000, device), "n1-adds-up") == [answer]


def test_n1_of_a_load_refutes_a_blind_c3_and_does_not_know_an_emptied_cache() -> None:
    assert answers_of(warm_load(0, ROUND, 979_999), "n1-c3") == [R]
    assert [one.message for one in warm_load(0, 0, 980_000)] == ["n1-files-not-cached"]


@pytest.mark.parametrize(("hit", "answer"), [(0, H), (1, R)])
def test_n2_allows_a_random_prompt_no_token(hit: int, answer: Answer) -> None:
    case = StubCase(
        answers={
            "FROM phases": [(1, 2, 3, RANDOM_PROMPT)],
            "FROM engine_requests": [("c1", hit, False)],
        }
    )
    assert answer_of_all(random_prompt_hits_nothing(case)) is answer


def control(tmp_path: Path, **spec: Any) -> dict[str, Finding]:
    return findings(judged_run(tmp_path, SyntheticRun(arm="unpatched", **spec)))


def test_controls_that_behave_are_held_by_the_numbers_of_the_rules_themselves(
    tmp_path: Path,
) -> None:
    found = control(tmp_path)
    assert found["N1"].answer is found["N2"].answer is Answer.HELD
    for words in (
        "1 requests of the control, 0 of sessions a cell uses",
        "drop before the control returned 0",
        "the engine's processes read 8 MiB of files",
        "C3 sees 4 files above 1% resident",
        "C4 sees loop0 read 0 B / engine hit 8 MiB = 0.0000 < 0.9800",
    ):
        assert words in said(found["N1"])
    assert "1 random prompts, most hit tokens 0 = 0" in said(found["N2"])


def test_n1_refutes_a_warm_read_that_looked_cold(tmp_path: Path) -> None:
    found = control(tmp_path, warm_control_device_bytes=HIT)["N1"]
    assert found.answer is Answer.REFUTED
    assert check_of(found, "n1-c4").measured == 1.0
    assert "C4 proves nothing here" in meant(found)


def test_n1_refutes_cached_files_that_are_not_seen_as_cached(tmp_path: Path) -> None:
    found = control(tmp_path, control_resident_share=0.0)["N1"]
    assert found.answer is Answer.REFUTED
    assert check_of(found, "n1-c3").measured == 0
    assert "C3 is blind" in meant(found)


@pytest.mark.parametrize("left", [0.0, 0.5])
def test_n1_is_unknown_where_the_page_cache_did_not_keep_what_was_read_into_it(
    tmp_path: Path, left: float
) -> None:
    found = control(tmp_path, control_resident_share=left, warm_control_device_bytes=HIT)["N1"]
    assert found.answer is Answer.UNKNOWN
    assert check_of(found, "n1-not-warm").answer is Answer.UNKNOWN


def test_n1_holds_where_a_part_was_lost_and_both_rules_still_refuse(tmp_path: Path) -> None:
    """Pages lost to pressure are read again: not all bytes are missing, but far too many."""
    lost = {"control_resident_share": 0.9}
    found = control(tmp_path / "lost", **lost, warm_control_device_bytes=HIT // 10)["N1"]
    assert found.answer is Answer.HELD
    # Without the device's bytes those came from nowhere.
    found = control(tmp_path / "nowhere", **lost)["N1"]
    assert found.answer is Answer.REFUTED
    assert "together gave fewer bytes than were read" in meant(found)


def test_n1_is_unknown_when_a_tier_in_dram_answered_or_nobody_dropped(tmp_path: Path) -> None:
    found = control(tmp_path / "dram", control_file_bytes=0)["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "a tier in DRAM: it was not flushed" in meant(found)
    found = control(tmp_path / "silent", control_file_bytes=None)["N1"]
    assert found.answer is Answer.UNKNOWN
    found = control(tmp_path / "failed", control_drop_rc=1)["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "drop before the control returned 1 [unknown]" in said(found)

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
    assert "the warm read hit nothing" in said(found)


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
    assert "no warm read in this run" in said(found["N1"])
    assert found["N2"].answer is Answer.HELD

    def measured_session(tables: Tables) -> None:
        for row in tables["requests"]:
            row["session"] = 0 if row["phase"] == "control" else row["session"]

    evidence = judged_run(tmp_path / "own", SyntheticRun(arm="unpatched"), measured_session)
    found = findings(evidence)
    assert found["N1"].answer is found["N2"].answer is Answer.UNKNOWN
    assert "1 of sessions a cell uses [unknown]" in said(found["N1"])


def test_n1_cannot_be_known_on_an_arm_that_reads_past_the_page_cache(tmp_path: Path) -> None:
    evidence = judged_run(tmp_path, SyntheticRun())
    found = findings(evidence)["N1"]
    assert found.answer is Answer.UNKNOWN
    assert "O_DIRECT" in said(found)
    assert not_held(evidence) == ()


def test_n2_refutes_a_random_prompt_that_hit(tmp_path: Path) -> None:
    spec = SyntheticRun(arm="unpatched", random_control_hit_tokens=256)
    evidence = judged_run(tmp_path, spec)
    found = findings(evidence)["N2"]
    assert found.answer is Answer.REFUTED
    assert "most hit tokens 256 = 0 [refuted]" in said(found)
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
    assert "0 of 1 random prompts with a lookup line" in said(found)


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
        found = objections([run], every, runs)
        assert [one.rule_id for one in found if one.rule_id in {"N1", "N2"}] == refused
