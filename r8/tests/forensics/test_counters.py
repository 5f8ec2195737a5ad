"""E2: the engine's counters against its log, and a loader's words against what was seen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.counters import EXTERNAL_HITS, PREFIX_HITS, counters_agree, loads_as_said
from r8.message import Answer
from r8.tests.support.findings import said
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import H, R, StubCase, U, answers_of, exactly, job_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.message import Check
    from r8.model import Finding

GIB = 1 << 30


def counted(
    external: int, prefix: int, ids: int, joined: int, *, lines: bool = True
) -> list[Check]:
    """E2 of one engine whose lines tell 4096 tokens of four requests, or nothing."""
    case = StubCase(
        told={"measure_begin": (1, {}), "measure_end": (2, {})},
        answers={
            "count(DISTINCT server_request_id)": [(4, ids, joined)],
            "engine_sums": [(4096, 0)] if lines else [],
            EXTERNAL_HITS: [(external,)],
            PREFIX_HITS: [(prefix,)],
        },
    )
    return list(counters_agree(case))


@pytest.mark.parametrize(("external", "answer"), exactly(4096))
def test_e2_wants_the_counter_to_say_exactly_what_the_lines_say(
    external: int, answer: Answer
) -> None:
    assert answers_of(counted(external, 0, 4, 4), "e2-external-hits") == [answer]


@pytest.mark.parametrize(("external", "answer"), [(0, H), (1, R)])
def test_e2_wants_no_hit_counted_of_an_engine_without_a_line(external: int, answer: Answer) -> None:
    found = counted(external, 0, 4, 4, lines=False)
    assert answers_of(found, "e2-external-hits") == [answer]


@pytest.mark.parametrize(("prefix", "answer"), [(0, H), (1, R)])
def test_e2_allows_no_prefix_hit(prefix: int, answer: Answer) -> None:
    assert answers_of(counted(4096, prefix, 4, 4), "e2-prefix-hits") == [answer]


@pytest.mark.parametrize(("ids", "joined", "answer"), [(4, 4, H), (4, 3, R), (3, 3, U), (3, 4, U)])
def test_e2_wants_every_response_joined_by_an_id_of_its_own(
    ids: int, joined: int, answer: Answer
) -> None:
    assert answers_of(counted(4096, 0, ids, joined), "e2-joined") == [answer]


def test_e2_does_not_know_a_log_that_speaks_in_other_words() -> None:
    """Not one lookup line for any response: the words of another LMCache, or none at all."""
    assert answers_of(counted(4096, 0, 4, 0), "e2-other-words") == [U]
    assert answers_of(counted(4096, 0, 4, 1), "e2-joined") == [R]


def loaded(said_s: float = 1.0, said_gib: float = 1.0, directory: str = "/m") -> list[Check]:
    """E2 of an engine that was seen to load 1 GiB from /m in 1 s."""
    row = ("w0", "ok", 1.0, json.dumps({"path": "/m"}), GIB, said_s, said_gib, directory)
    case = StubCase(run=job_run(tool="engine"), answers={"engine_loads": [row]})
    return list(loads_as_said(case))


@pytest.mark.parametrize(("said_s", "answer"), [(1.019, H), (1.02, H), (1.021, R)])
def test_e2_allows_a_load_to_be_said_longer_by_its_rounding(said_s: float, answer: Answer) -> None:
    assert answers_of(loaded(said_s=said_s), "e2-load-time") == [answer]


@pytest.mark.parametrize(
    ("said_gib", "answer"),
    [(0.9948, R), (1 - 0.0051, H), (1.0, H), (1 + 0.0051, H), (1.0052, R)],
)
def test_e2_allows_a_size_its_rounding_both_ways(said_gib: float, answer: Answer) -> None:
    assert answers_of(loaded(said_gib=said_gib), "e2-load-size") == [answer]


def test_e2_wants_the_directory_that_was_given() -> None:
    assert answers_of(loaded(), "e2-directory") == [H]
    assert answers_of(loaded(directory="/other"), "e2-directory") == [R]


def judged(root: Path, edit: Callable[[Tables], None], rule_id: str, **spec: Any) -> Finding:
    return findings(judged_run(root, SyntheticRun(**spec), edit))[rule_id]


def counter_rows(tables: Tables, name: str) -> list[dict[str, Any]]:
    return [row for row in tables["probes"] if row["counter"].startswith(name)]


def test_e2_holds_when_lines_and_counters_tell_the_same(tmp_path: Path) -> None:
    found = judged(tmp_path, lambda _: None, "E2")
    assert found.answer is Answer.HELD
    assert "4 of 4 responses joined" in said(found)
    assert "external hits grew by 4096 = 4096 tokens" in said(found)


def test_e2_refutes_counters_that_say_less_than_the_lines(tmp_path: Path) -> None:
    def half(tables: Tables) -> None:
        for row in counter_rows(tables, "vllm:external"):
            row["value"] = 100 + (row["value"] - 100) // 2

    found = judged(tmp_path, half, "E2")
    assert found.answer is Answer.REFUTED
    assert "grew by 2048 = 4096" in said(found)


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
    assert "3 of 4 responses joined" in said(found)
