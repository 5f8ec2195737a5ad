"""G1 and Q3: GPU memory before the start, and the host at both ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.surroundings import no_residue
from r8.message import Answer
from r8.tests.support.findings import said
from r8.tests.support.judged_run import Tables, drop_events, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import StubCase, answers_of, at_most

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.message import Check
    from r8.model import Finding

GB = 1_000_000_000
CARD = {"device": "0000:0c:00.0", "source": "amdgpu sysfs", "vram_total_bytes": 206_141_652_992}


def card(used: int, total: int, *, captured_at: int = 1, started_at: int = 1) -> list[Check]:
    gpu = {"device": "gpu0", "vram_used_bytes": used, "vram_total_bytes": total}
    told = {"environment": (captured_at, {"moment": "begin", "gpus": [gpu]})}
    return list(no_residue(StubCase(told={**told, "engine_started": (started_at, {})})))


@pytest.mark.parametrize(("total", "limit"), [(1 << 34, 1 << 30), (200 * GB, 2 * GB)])
def test_g1_allows_a_gibibyte_or_one_percent_of_the_card(total: int, limit: int) -> None:
    for used, answer in at_most(limit):
        assert answers_of(card(used, total), "g1-memory") == [answer]


@pytest.mark.parametrize(("used", "total"), [(None, 1 << 34), (0, None), ("0", 1 << 34)])
def test_g1_is_unknown_where_either_size_is(used: Any, total: Any) -> None:
    assert answers_of(card(used, total), "g1-memory-unknown") == [Answer.UNKNOWN]


@pytest.mark.parametrize(("captured_at", "answer"), at_most(100))
def test_g1_wants_the_capture_before_the_start(captured_at: int, answer: Answer) -> None:
    checks = card(0, 1, captured_at=captured_at, started_at=100)
    assert answers_of(checks, "g1-captured-before") == [answer]


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
        assert "0000:0c:00.0: 27.94 GiB in use <= 1.92 GiB [refuted]" in said(found)


def test_g1_does_not_apply_without_a_gpu_and_is_unknown_without_a_capture(tmp_path: Path) -> None:
    found = judged(tmp_path, lambda _: None, "G1", run_id="none")
    assert found.answer is Answer.NOT_APPLICABLE
    assert "no GPU on the engine's host" in said(found)
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
    assert said(found) == "0 of 2 sections changed, unavailable here: gpu"

    def governor(tables: Tables) -> None:
        change = {"section": "memory", "fact": "swappiness", "before": "60", "after": "1"}
        sections = {"kernel": "aa" * 32, "memory": "cc" * 32}
        captures(tables, "end", sections=sections, changes=[change])

    found = judged(tmp_path, governor, "Q3", run_id="changed")
    assert found.answer is Answer.REFUTED
    assert "1 of 2 sections changed" in said(found)
    assert "swappiness: 60 -> 1" in said(found)


def test_q3_shows_what_a_capture_lacks_whatever_it_says(tmp_path: Path) -> None:
    odd = lambda tables: captures(tables, "begin", unavailable=[[], None, "gpu"])  # noqa: E731
    found = judged(tmp_path, odd, "Q3")
    assert "unavailable here: [], None, gpu" in said(found)


def test_q3_takes_the_last_capture_of_a_moment(tmp_path: Path) -> None:
    """A campaign that was resumed looked twice."""

    def looked_before(tables: Tables) -> None:
        last = [row for row in tables["events"] if row["name"] == "environment"][-1]
        detail = {**json.loads(last["detail"]), "sections": {"kernel": "another"}}
        early = {**last, "mono_ns": last["mono_ns"] - 1, "detail": json.dumps(detail)}
        tables["events"].insert(tables["events"].index(last), early)

    assert judged(tmp_path, looked_before, "Q3").answer is Answer.HELD


def test_q3_is_unknown_when_one_end_is_missing(tmp_path: Path) -> None:
    def no_end(tables: Tables) -> None:
        last = [row for row in tables["events"] if row["name"] == "environment"][-1]
        tables["events"].remove(last)

    assert judged(tmp_path, no_end, "Q3", run_id="a").answer is Answer.UNKNOWN
    empty = lambda tables: captures(tables, "begin", sections={})  # noqa: E731
    assert judged(tmp_path, empty, "Q3", run_id="b").answer is Answer.UNKNOWN
