"""E1, Q1 and Q2: a sound engine, every request answered, a whole run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.message import Answer
from r8.tests.support.judged_run import Tables, drop_events, event, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path


def test_a_clean_run_is_sound_answered_and_whole(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))
    for rule in ("E1", "Q1", "Q2"):
        assert found[rule].answer is Answer.HELD, rule


@pytest.mark.parametrize(
    "line",
    [
        "Failed to initialize LMCacheManager components: x",
        "System will operate in degraded mode (recompute)",
        "Timeout occurred for rank 0, recreating all sockets",
    ],
)
def test_e1_refutes_an_engine_that_fell_back(tmp_path: Path, line: str) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(fatal_line=line)))["E1"]
    assert found.answer is Answer.REFUTED
    assert "a: 1 fatal of" in found.arithmetic
    assert line in found.arithmetic


def test_e1_is_unknown_without_a_log(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=lambda _: ""))["E1"]
    assert found.answer is Answer.UNKNOWN
    assert "a: no engine log" in found.arithmetic


def test_e1_is_unknown_when_one_of_two_instances_is_silent(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["run"][0]["instances"] = ["a", "b"]

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["E1"]
    assert found.answer is Answer.UNKNOWN
    assert "b: no engine log" in found.arithmetic


def test_q1_refutes_one_failure_of_sixteen(tmp_path: Path) -> None:
    spec = SyntheticRun(concurrency=16, ttft_s=tuple(float(n) for n in range(1, 17)), failures=1)
    found = findings(judged_run(tmp_path, spec))["Q1"]
    assert found.answer is Answer.REFUTED
    assert "1 of 16 requests failed (1 timeout, first measure-15: no answer" in found.arithmetic


def test_q1_refutes_a_session_that_was_not_measured(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["requests"] = [r for r in tables["requests"] if r["request_id"] != "measure-3"]

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q1"]
    assert found.answer is Answer.REFUTED
    assert "3 requests over 3 sessions = 4 planned [refuted]" in found.arithmetic


def test_q1_refutes_a_session_measured_twice(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        row = next(r for r in tables["requests"] if r["request_id"] == "measure-3")
        row["session"] = 2

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q1"]
    assert found.answer is Answer.REFUTED
    assert "4 requests over 3 sessions = 4 planned [refuted]" in found.arithmetic


def test_q1_refutes_answers_and_prompts_of_another_length(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        row = next(r for r in tables["requests"] if r["request_id"] == "measure-3")
        row["output_tokens"] = 4

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q1"]
    assert found.answer is Answer.REFUTED
    assert "3 of 4 answers of 5 tokens, 4 of 4 prompts of 1025 tokens [refuted]" in (
        found.arithmetic
    )


def test_q1_is_unknown_without_measured_requests(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["requests"] = [r for r in tables["requests"] if r["phase"] != "measure"]

    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["Q1"].answer is Answer.UNKNOWN


def test_q2_refutes_a_recovered_run(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(complete=False)))["Q2"]
    assert found.answer is Answer.REFUTED
    assert "recovered from a journal [refuted]" in found.arithmetic


def test_q2_refutes_a_drop_before_the_populate(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        begin = event(tables, "populate_begin")["mono_ns"]
        event(tables, "drop_begin")["mono_ns"] = begin - 2
        event(tables, "drop_end")["mono_ns"] = begin - 1

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q2"]
    assert found.answer is Answer.REFUTED
    assert "8 milestones in order: false [refuted]" in found.arithmetic


def test_q2_refutes_a_cell_measured_twice(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        again = event(tables, "measure_begin")
        tables["events"].append({**again, "mono_ns": again["mono_ns"] + 1})

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["Q2"]
    assert found.answer is Answer.REFUTED
    assert "measured 2 times = 1 [refuted]" in found.arithmetic


def test_q2_is_unknown_when_a_milestone_is_missing(tmp_path: Path) -> None:
    spec = SyntheticRun()
    for name in ("durable", "run_end"):

        def edit(tables: Tables, name: str = name) -> None:
            drop_events(tables, name)

        found = findings(judged_run(tmp_path, replace(spec, run_id=f"no-{name}"), edit))["Q2"]
        assert found.answer is Answer.UNKNOWN
        assert f"event {name} is missing" in found.arithmetic
