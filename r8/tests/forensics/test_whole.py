"""Q1 and Q2: everything planned was done in full, and the run is whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.forensics.whole import every_request_answered, every_worker_done
from r8.message import Answer, answer_of_all
from r8.tests.support.findings import said
from r8.tests.support.judged_run import Tables, drop_events, event, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import H, R, StubCase, answers_of, between, job_run, work_sums

if TYPE_CHECKING:
    from pathlib import Path

    from r8.message import Check


def answered(
    total: int = 4, ok: int = 4, sessions: int = 4, full: int = 4, exact: int = 4
) -> list[Check]:
    """Q1 of four planned sessions."""
    counts = [(total, ok, sessions, full, exact)]
    case = StubCase(answers={"GROUP BY outcome": [], "FROM requests": counts})
    return list(every_request_answered(case))


def test_q1_wants_every_count_to_be_the_planned_one() -> None:
    assert answer_of_all(answered()) is H
    assert answers_of(answered(ok=3, full=3, exact=3), "q1-failed") == [R]
    for counts in ({"total": 3}, {"total": 5}):
        assert answers_of(answered(**counts), "q1-requests") == [R]
    for counts in ({"sessions": 3}, {"sessions": 5}):
        assert answers_of(answered(**counts), "q1-sessions") == [R]
    assert answers_of(answered(full=3), "q1-output-tokens") == [R]
    assert answers_of(answered(exact=3), "q1-prompt-tokens") == [R]


def worked(*names: str, moved: int = 1_000_000, outcome: str = "ok") -> list[Check]:
    """Q1 of a job by w0 and w1 over 1 MB of files; the first one moved all there is."""
    rows = [(name, outcome, None, 0, 1, 1, 0, moved * (at == 0)) for at, name in enumerate(names)]
    answers = {"work_sums": work_sums(known_bytes=moved), "FROM work": rows}
    return list(every_worker_done(StubCase(run=job_run(), answers=answers)))


@pytest.mark.parametrize(("moved", "answer"), between(999_000, 1_000_000))
def test_q1_allows_a_per_mille_of_headers(moved: int, answer: Answer) -> None:
    assert answers_of(worked("w0", "w1", moved=moved), "q1-moved") == [answer]


def test_q1_wants_each_planned_worker_once_and_well() -> None:
    assert answer_of_all(worked("w0", "w1")) is H
    assert answers_of(worked("w0"), "q1-worker-rows") == [R]
    assert answers_of(worked("w0", "w1", "w1"), "q1-worker-rows") == [R]
    assert answers_of(worked("w0", "w2"), "q1-workers") == [R]
    for outcome in ("failed", "ended", "silent"):
        assert answers_of(worked("w0", "w1", outcome=outcome), "q1-workers-failed") == [R]


def test_a_clean_run_is_sound_answered_and_whole(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))
    for rule in ("E1", "Q1", "Q2"):
        assert found[rule].answer is Answer.HELD, rule


def test_q1_refutes_one_failure_of_sixteen(tmp_path: Path) -> None:
    spec = SyntheticRun(concurrency=16, ttft_s=tuple(float(n) for n in range(1, 17)), failures=1)
    found = findings(judged_run(tmp_path, spec))["Q1"]
    assert found.answer is Answer.REFUTED
    assert "1 of 16 requests failed (timeout x1, measure-15: no answer" in said(found)


def test_q1_refutes_a_session_that_was_not_measured(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["requests"] = [r for r in tables["requests"] if r["request_id"] != "measure-3"]

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q1"]
    assert found.answer is Answer.REFUTED
    assert "3 requests = 4 planned [refuted]" in said(found)


def test_q1_refutes_a_session_measured_twice(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        row = next(r for r in tables["requests"] if r["request_id"] == "measure-3")
        row["session"] = 2

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q1"]
    assert found.answer is Answer.REFUTED
    assert "3 sessions measured = 4 planned [refuted]" in said(found)


def test_q1_refutes_answers_and_prompts_of_another_length(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        row = next(r for r in tables["requests"] if r["request_id"] == "measure-3")
        row["output_tokens"] = 4

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q1"]
    assert found.answer is Answer.REFUTED
    assert "3 of 4 answers of 5 tokens [refuted]; 4 of 4 prompts of 1025 tokens" in said(found)


def test_q1_is_unknown_without_measured_requests(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["requests"] = [r for r in tables["requests"] if r["phase"] != "measure"]

    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["Q1"].answer is Answer.UNKNOWN


def test_q2_refutes_a_recovered_run(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(complete=False)))["Q2"]
    assert found.answer is Answer.REFUTED
    assert "recovered from a journal [refuted]" in said(found)


def test_q2_refutes_a_drop_before_the_populate(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        begin = event(tables, "populate_begin")["mono_ns"]
        event(tables, "drop_begin")["mono_ns"] = begin - 2
        event(tables, "drop_end")["mono_ns"] = begin - 1

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q2"]
    assert found.answer is Answer.REFUTED
    assert "8 milestones in order: false [refuted]" in said(found)


def test_q2_refutes_a_cell_measured_twice(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        again = event(tables, "measure_begin")
        tables["events"].append({**again, "mono_ns": again["mono_ns"] + 1})

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q2"]
    assert found.answer is Answer.REFUTED
    assert "measured 2 times = 1 [refuted]" in said(found)


def test_q2_is_unknown_when_a_milestone_is_missing(tmp_path: Path) -> None:
    spec = SyntheticRun()
    for name in ("durable", "run_end"):

        def edit(tables: Tables, name: str = name) -> None:
            drop_events(tables, name)

        found = findings(judged_run(tmp_path, replace(spec, run_id=f"no-{name}"), edit))["Q2"]
        assert found.answer is Answer.UNKNOWN
        assert f"event {name} is missing" in said(found)
