"""G1, Q3 and E2: GPU memory before the start, the host at both ends, the engine's counters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from r8.message import Answer
from r8.tests.support.judged_run import Tables, drop_events, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.model import Finding

CARD = {"device": "0000:0c:00.0", "source": "amdgpu sysfs", "vram_total_bytes": 206_141_652_992}


def captures(tables: Tables, moment: str, **facts: Any) -> None:
    for row in tables["events"]:
        detail = json.loads(row["detail"]) if row["detail"] else {}
        if row["name"] == "environment" and detail["moment"] == moment:
            row["detail"] = json.dumps(detail | facts)


def judged(root: Path, edit: Callable[[Tables], None], rule_id: str, **spec: Any) -> Finding:
    return findings(judged_run(root, SyntheticRun(**spec), edit))[rule_id]


@pytest.mark.parametrize(
    ("used", "answer"),
    [
        (296_747_008, Answer.HELD),  # an idle MI300X
        (2_000_000_000, Answer.HELD),
        (30_000_000_000, Answer.REFUTED),
        (None, Answer.UNKNOWN),
    ],
)
def test_g1_weighs_memory_in_use_before_the_start(
    tmp_path: Path, used: int | None, answer: Answer
) -> None:
    def edit(tables: Tables) -> None:
        captures(tables, "begin", gpus=[CARD | {"vram_used_bytes": used}])

    found = judged(tmp_path, edit, "G1")
    assert found.answer is answer
    if answer is Answer.REFUTED:
        assert "0000:0c:00.0: 30.00 GB in use <= 2.06 GB [refuted]" in found.arithmetic


def test_g1_does_not_apply_without_a_gpu_and_is_unknown_without_a_capture(tmp_path: Path) -> None:
    found = judged(tmp_path, lambda _: None, "G1", run_id="none")
    assert found.answer is Answer.NOT_APPLICABLE
    assert "no GPU on the engine's host" in found.arithmetic
    found = judged(tmp_path, lambda tables: drop_events(tables, "environment"), "G1", run_id="gone")
    assert found.answer is Answer.UNKNOWN


def test_g1_refutes_a_capture_taken_after_the_start(tmp_path: Path) -> None:
    def late(tables: Tables) -> None:
        captures(tables, "begin", gpus=[CARD | {"vram_used_bytes": 0}])
        for row in tables["events"]:
            if row["name"] == "engine_started":
                row["mono_ns"] -= 800_000_000

    assert judged(tmp_path, late, "G1").answer is Answer.REFUTED


def test_q3_names_what_changed_and_holds_when_nothing_did(tmp_path: Path) -> None:
    found = judged(tmp_path, lambda _: None, "Q3", run_id="same")
    assert found.answer is Answer.HELD
    assert found.arithmetic == "0 of 2 sections changed, unavailable here: gpu"

    def governor(tables: Tables) -> None:
        change = {"section": "memory", "fact": "swappiness", "before": "60", "after": "1"}
        sections = {"kernel": "aa" * 32, "memory": "cc" * 32}
        captures(tables, "end", sections=sections, changes=[change])

    found = judged(tmp_path, governor, "Q3", run_id="changed")
    assert found.answer is Answer.REFUTED
    assert "1 of 2 sections changed" in found.arithmetic
    assert "swappiness: 60 -> 1" in found.arithmetic


def test_q3_is_unknown_when_one_end_is_missing(tmp_path: Path) -> None:
    def no_end(tables: Tables) -> None:
        last = [row for row in tables["events"] if row["name"] == "environment"][-1]
        tables["events"].remove(last)

    assert judged(tmp_path, no_end, "Q3", run_id="a").answer is Answer.UNKNOWN
    empty = lambda tables: captures(tables, "begin", sections={})  # noqa: E731
    assert judged(tmp_path, empty, "Q3", run_id="b").answer is Answer.UNKNOWN


def counter_rows(tables: Tables, name: str) -> list[dict[str, Any]]:
    return [row for row in tables["probes"] if row["counter"].startswith(name)]


def test_e2_holds_when_lines_and_counters_tell_the_same(tmp_path: Path) -> None:
    found = judged(tmp_path, lambda _: None, "E2")
    assert found.answer is Answer.HELD
    assert "4 of 4 responses joined" in found.arithmetic
    assert "external hits grew by 4096 = 4096 tokens" in found.arithmetic


def test_e2_refutes_counters_that_say_less_than_the_lines(tmp_path: Path) -> None:
    def half(tables: Tables) -> None:
        for row in counter_rows(tables, "vllm:external"):
            row["value"] = 100 + (row["value"] - 100) // 2

    found = judged(tmp_path, half, "E2")
    assert found.answer is Answer.REFUTED
    assert "grew by 2048 = 4096" in found.arithmetic


def test_e2_refutes_prefix_cache_hits_the_log_did_not_tell(tmp_path: Path) -> None:
    def prefix(tables: Tables) -> None:
        external = counter_rows(tables, "vllm:external")
        for row, other in zip(counter_rows(tables, "vllm:prefix"), external, strict=True):
            row["value"] = other["value"]

    assert judged(tmp_path, prefix, "E2").answer is Answer.REFUTED


def test_e2_is_unknown_without_pages_or_with_a_restarted_engine(tmp_path: Path) -> None:
    def no_pages(tables: Tables) -> None:
        tables["probes"] = [row for row in tables["probes"] if row["probe"] != "engine"]

    def restarted(tables: Tables) -> None:
        rows = [row for row in tables["probes"] if row["probe"] == "engine"]
        for row in rows[len(rows) // 3 :]:
            row["epoch"] = 1

    assert judged(tmp_path, no_pages, "E2", run_id="a").answer is Answer.UNKNOWN
    assert judged(tmp_path, restarted, "E2", run_id="b").answer is Answer.UNKNOWN


def test_e2_does_not_take_a_page_of_the_next_phase_for_the_end_of_this_one(tmp_path: Path) -> None:
    def late(tables: Tables) -> None:
        events = {row["name"]: row["mono_ns"] for row in tables["events"]}
        gap = (events["measure_end"], events["warm_begin"])
        tables["probes"] = [
            row
            for row in tables["probes"]
            if row["probe"] != "engine" or not gap[0] <= row["mono_ns"] <= gap[1]
        ]

    assert judged(tmp_path, late, "E2").answer is Answer.UNKNOWN


def test_e2_refutes_a_response_the_log_does_not_know(tmp_path: Path) -> None:
    run = judged_run(
        tmp_path, SyntheticRun(), None, lambda log: log.replace("cmpl-measure-2-0", "cmpl-x-0")
    )
    found = findings(run)["E2"]
    assert found.answer is Answer.REFUTED
    assert "3 of 4 responses joined" in found.arithmetic
