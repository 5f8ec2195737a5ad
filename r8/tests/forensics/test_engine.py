"""E1 and E3: an engine that fell back, and failed loads, in the words it really wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.forensics.engine import no_load_failed
from r8.message import Answer
from r8.tests.support.findings import said
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import KV_RUN, StubCase, answers_of, at_most

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_WORKER = "\x1b[0;36m(Worker pid={pid})\x1b[0;0m \x1b[33;20m[2026-11-30 05:52:45,391] LMCache "
REFUSED = (
    _WORKER
    + "WARNING:\x1b[0m Failed to allocate memory block of size 8388608 because no memory is "
    "available \x1b[3m(memory_management.py:1370:lmcache.v1.memory_management)\x1b[0m"
)
# As captured where a burst's lookups had pinned the whole DRAM tier: a minute of refusals, then
# a chunk given up, and the requests that waited for it failed.
GIVEN_UP = (
    _WORKER + "WARNING:\x1b[0m No memory for chunk /kv/model@1@0@280db1e.pt: a miss. "
    "Is the CPU tier too small?",
    _WORKER + "WARNING:\x1b[0m The cache block is in the storage, but it can't be retrieved "
    "(cache_engine.py:1734:lmcache.v1.cache_engine)",
    _WORKER + "ERROR:\x1b[0m Request cmpl-warm-a-s21-0-b14bcc0dThe number of retrieved tokens is "
    "less than the expected number of tokens! This should not happen!",
    "(EngineCore pid=30360) ERROR [scheduler.py:2896] Failing 6 request(s) due to KV load failure.",
)
TIMED_OUT = (
    _WORKER + "WARNING:\x1b[0m get blocking timeout, trigger cancel the future task",
    _WORKER + "WARNING:\x1b[0m batched get blocking timeout, trigger cancel the future task",
    _WORKER + "WARNING:\x1b[0m batched_get_non_blocking timed out",
    _WORKER + "WARNING:\x1b[0m batched_async_contains timed out",
    _WORKER + "WARNING:\x1b[0m Failed to allocate memory during remote receive",
)


@pytest.mark.parametrize(("refused", "answer"), at_most(4 * 4))
def test_e3_allows_four_refusals_a_chunk_of_a_session(refused: int, answer: Answer) -> None:
    assert KV_RUN.expectation.hit_tokens_per_session == 4 * KV_RUN.expectation.chunk_tokens
    lines: list[tuple[object, ...]] = [(50, 0, None, None)]
    case = StubCase(answers={"WITH lines": [(refused, 9)], "FROM engine_log": lines})
    checks = no_load_failed(case)
    assert answers_of(checks, "e3-refusals") == [answer]


def after_first(needle: str, lines: list[str]) -> Callable[[str], str]:
    """An edit that puts lines behind the first one of a log that holds `needle`."""

    def edit(text: str) -> str:
        found = text.splitlines()
        at = next(number for number, line in enumerate(found) if needle in line) + 1
        return "\n".join([*found[:at], *lines, *found[at:]]) + "\n"

    return edit


def test_e3_holds_where_a_full_tier_refuses_once_a_chunk(tmp_path: Path) -> None:
    spec = SyntheticRun()
    chunks = spec.expectation.hit_tokens_per_session // spec.chunk_tokens
    usual = [REFUSED.format(pid=583)] * chunks
    found = findings(judged_run(tmp_path, spec, edit_log=after_first("Reqid", usual)))["E3"]
    assert found.answer is Answer.HELD, said(found)
    assert f"a: at most {chunks} buffers refused in a row" in said(found)


@pytest.mark.parametrize("line", [*GIVEN_UP, *TIMED_OUT])
def test_e3_refutes_every_failed_or_timed_out_load(tmp_path: Path, line: str) -> None:
    edit = after_first("cmpl-measure-1", [line.format(pid=583)])
    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=edit))["E3"]
    assert found.answer is Answer.REFUTED
    assert "a: 1 lines of failed or timed-out loads, first in line" in said(found)


def test_e3_refutes_an_engine_that_stood_waiting_for_buffers(tmp_path: Path) -> None:
    """Fifty refusals a second and no line of trouble: the wait ended before it was given up."""
    edit = after_first("cmpl-measure-1", [REFUSED.format(pid=583)] * 150)
    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=edit))["E3"]
    assert found.answer is Answer.REFUTED
    assert "a: at most 150 buffers refused in a row, from line" in said(found)


def test_e3_counts_each_rank_for_itself(tmp_path: Path) -> None:
    """Eight ranks write into one log: each refused once a chunk is no wait of one of them."""
    spec = SyntheticRun()
    chunks = spec.expectation.hit_tokens_per_session // spec.chunk_tokens
    lines = [REFUSED.format(pid=pid) for pid in range(600, 608) for _ in range(chunks)]
    found = findings(judged_run(tmp_path, spec, edit_log=after_first("Reqid", lines)))["E3"]
    assert found.answer is Answer.HELD, said(found)


def test_e3_is_unknown_without_a_log(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=lambda _: ""))["E3"]
    assert found.answer is Answer.UNKNOWN


def test_e3_is_unknown_where_no_tier_was_ever_full(tmp_path: Path) -> None:
    """Also for a run whose log was read by an R8 that did not know these lines yet."""

    def without(text: str) -> str:
        return "\n".join(line for line in text.splitlines() if "Failed to alloc" not in line) + "\n"

    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=without))["E3"]
    assert found.answer is Answer.UNKNOWN
    assert "a: no refused buffer in the whole log" in said(found)


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
    assert "a: 1 fatal of" in said(found)
    assert line in said(found)


def test_e1_is_unknown_without_a_log(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=lambda _: ""))["E1"]
    assert found.answer is Answer.UNKNOWN
    assert "a: no engine log" in said(found)


def test_e1_is_unknown_when_one_of_two_instances_is_silent(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        tables["run"][0]["instances"] = ["a", "b"]

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["E1"]
    assert found.answer is Answer.UNKNOWN
    assert "b: no engine log" in said(found)


def test_e1_tells_what_nobody_judged_and_refuses_nothing_for_it(tmp_path: Path) -> None:
    strange = [
        "WARNING 11-30 03:14:20 [envs.py:83] Unknown variable",
        _WORKER.format(pid=583) + "ERROR:\x1b[0m something new",
    ]
    edit = after_first("cmpl-measure-1", strange)
    found = findings(judged_run(tmp_path, SyntheticRun(), edit_log=edit))["E1"]
    assert found.answer is Answer.HELD, said(found)
    assert "a: 2 warnings and errors of the engine not judged, first in line" in said(found)
    assert "Unknown variable" in said(found)


def test_e1_says_nothing_of_lines_not_judged_where_there_are_none(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["E1"]
    assert [one.message for one in found.checks] == ["e1-sound"]
