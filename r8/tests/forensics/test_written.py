"""W1 to W3: the right save holds, each wrong thing is refused by its rule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.written import durable_inside_the_window, reads_back
from r8.message import Answer, answer_of_all
from r8.tests.support.checkpoint_runs import (
    SAVE,
    S,
    SyntheticSave,
    Tables,
    change,
    save_run,
    take_out,
    worker_rows,
)
from r8.tests.support.findings import meant, said
from r8.tests.support.judged_run import findings, judged_run
from r8.tests.support.run_factory import MIB, SyntheticRun
from r8.tests.support.stub_case import (
    H,
    R,
    StubCase,
    U,
    answers_of,
    at_least,
    between,
    job_run,
    work_sums,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from r8.message import Check
    from r8.model import Finding

PASSING = {Answer.HELD, Answer.NOT_APPLICABLE}


PAYLOAD = 1_000_000


def saved(
    sectors: int = -(-PAYLOAD // 512),
    late: int = 0,
    flushes: int | None = 1,
    *,
    mode: str = "write back",
    ranks: Sequence[Mapping[str, object]] = ({}, {}),
) -> list[Check]:
    """W1 of two ranks that saved 1 MB in a window of 10 ns, before a drop 10 ns later."""

    usual = {"outcome": "ok", "begin_ns": 10, "end_ns": 20, "file_bytes": PAYLOAD // 2}
    usual |= {"files": 1, "synced_files": 1, "synced_directories": 1}
    rows = [
        {**usual, "worker": f"w{at}", "committed": at == 0, **changes}
        for at, changes in enumerate(ranks)
    ]
    case = StubCase(
        run=job_run(job="checkpoint", moves="write"),
        told={"write_cache": (1, {"modes": {"loop0": mode}}), "drop_begin": (30, {})},
        growth={"flushes": flushes, "write_sectors": sectors},
        answers={
            "work_sums": work_sums(
                files=len(rows),
                synced_files=sum(int(str(row["synced_files"])) for row in rows),
                file_bytes=PAYLOAD,
                wall_ns=10,
            ),
            "late_writes": [(512 * late,)],
            "FROM work": [(json.dumps(row),) for row in rows],
        },
    )
    return list(durable_inside_the_window(case))


LEAST = -(-PAYLOAD // 512)
MOST = (1_020_000 + 32 * MIB) // 512


@pytest.mark.parametrize(("sectors", "answer"), between(LEAST, MOST))
def test_w1_allows_two_percent_and_32_mib_beside_the_files(sectors: int, answer: Answer) -> None:
    assert answers_of(saved(sectors), "w1-bytes-in-window") == [answer]


@pytest.mark.parametrize(("late", "answer"), between(0, MIB // 512))
def test_w1_allows_a_mebibyte_between_save_and_drop(late: int, answer: Answer) -> None:
    assert answers_of(saved(late=late), "w1-late-writes") == [answer]


@pytest.mark.parametrize(("flushes", "answer"), [(0, R), (1, H), (None, U)])
def test_w1_wants_one_flush_of_a_device_that_holds_writes(
    flushes: int | None, answer: Answer
) -> None:
    assert answers_of(saved(flushes=flushes), "w1-flushed") == [answer]
    # Other words, one that sorts before and one that sorts behind, hold nothing back.
    for mode in ("none", "write through"):
        assert answers_of(saved(flushes=flushes, mode=mode), "w1-nothing-held") == [H]


def test_w1_wants_every_file_and_directory_flushed_and_one_commit() -> None:
    assert answer_of_all(saved()) is H
    assert answers_of(saved(ranks=({}, {"synced_files": 0})), "w1-files-flushed") == [R]
    unflushed = saved(ranks=({}, {"synced_directories": 0}))
    assert answers_of(unflushed, "w1-directories-flushed") == [R]
    for first, second in ((False, False), (True, True)):
        ranks = ({"committed": first}, {"committed": second})
        assert answers_of(saved(ranks=ranks), "w1-committed") == [R]
    assert answers_of(saved(ranks=({}, {"outcome": "failed"})), "w1-not-saved") == [R]


def read_back(device: int | None, digests: tuple[str, str] = ("a", "b")) -> list[Check]:
    def rows(*each: str) -> list[tuple[str]]:
        facts = [{"rank": at, "sha256": one, "outcome": "ok"} for at, one in enumerate(each)]
        return [(json.dumps({**one, "worker": "w", "file_bytes": 500_000}),) for one in facts]

    case = StubCase(
        run=job_run(job="checkpoint", moves="write"),
        reads={"loop0": device},
        answers={
            "work_sums": work_sums(file_bytes=1_000_000),
            "'prepare'": rows("a", "b"),
            "'readback'": rows(*digests),
        },
    )
    return list(reads_back(case))


@pytest.mark.parametrize(("device", "answer"), at_least(980_000))
def test_w2_wants_the_device_to_have_given_what_was_read(device: int, answer: Answer) -> None:
    assert answers_of(read_back(device), "w2-from-the-device") == [answer]


def test_w2_is_unknown_where_the_device_was_not_read() -> None:
    assert answers_of(read_back(None), "w2-bytes-unknown") == [Answer.UNKNOWN]


def test_w2_wants_every_ranks_hash() -> None:
    assert answers_of(read_back(0), "w2-parts-same") == [H]
    assert answers_of(read_back(0, ("a", "x")), "w2-parts-same") == [R]


def rule(tmp_path: Path, rule_id: str, spoil: Callable[[Tables], None] | None = None) -> Finding:
    return findings(save_run(tmp_path, spoil=spoil))[rule_id]


def event(tables: Tables, name: str) -> dict[str, Any]:
    return next(row for row in tables["events"] if row["name"] == name)


def test_a_save_that_is_right_in_all_respects_earns_the_whole_certificate(tmp_path: Path) -> None:
    found = findings(save_run(tmp_path))
    bad = {k: said(f) for k, f in found.items() if f.answer not in PASSING}
    assert bad == {}
    assert {found[name].answer for name in ("W1", "W2", "W3", "C2", "C3", "Q1")} == {Answer.HELD}


def test_w1_refutes_a_save_that_was_timed_without_its_flush(tmp_path: Path) -> None:
    """The ranks returned after half a second; the device wrote for two."""
    spec = SyntheticSave(save_s=0.5, write_s=2.0)

    def unflushed(tables: Tables) -> None:
        for row in worker_rows(tables, "measure"):
            change(row, synced_files=0, synced_directories=0)

    found = findings(save_run(tmp_path, spec, unflushed))["W1"]
    assert found.answer is Answer.REFUTED
    assert "4 of 4 files not flushed" in said(found)
    assert "still in memory" in meant(found)
    assert "measures memory" in meant(found)


def test_w1_does_not_take_a_ranks_word_for_its_flush(tmp_path: Path) -> None:
    found = findings(save_run(tmp_path, SyntheticSave(save_s=0.5, write_s=2.0)))["W1"]
    assert found.answer is Answer.REFUTED
    assert "0 of 4 files not flushed" in said(found)


def test_w1_refutes_a_device_that_holds_writes_back_and_was_never_told(tmp_path: Path) -> None:
    found = findings(save_run(tmp_path, SyntheticSave(flushes=0)))["W1"]
    assert found.answer is Answer.REFUTED
    assert "loop0: 0 [refuted]" in said(found)


def test_w1_asks_no_flush_of_a_device_that_writes_through(tmp_path: Path) -> None:
    found = findings(save_run(tmp_path, SyntheticSave(flushes=0, cache="write through")))["W1"]
    assert found.answer is Answer.HELD, said(found)


@pytest.mark.parametrize("name", ["write_cache", "drop_begin"])
def test_w1_is_unknown_where_evidence_is_missing(tmp_path: Path, name: str) -> None:
    found = rule(tmp_path, "W1", lambda tables: take_out(tables, event(tables, name)))
    assert found.answer is Answer.UNKNOWN


def test_w1_is_unknown_without_write_counters(tmp_path: Path) -> None:
    def silence(tables: Tables) -> None:
        tables["probes"] = [r for r in tables["probes"] if r["counter"] != "write_sectors"]

    assert rule(tmp_path, "W1", silence).answer is Answer.UNKNOWN


def test_w1_refutes_a_second_writer_on_the_device(tmp_path: Path) -> None:
    def write(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["counter"] == "write_sectors" and row["mono_ns"] > SAVE + S:
                row["value"] += (128 << 20) // 512 * (row["device"] == "loop0")

    found = rule(tmp_path, "W1", write)
    assert found.answer is Answer.REFUTED
    assert "something else writes" in meant(found)


@pytest.mark.parametrize("outcome", ["failed", "ended", "silent"])
def test_w1_wants_every_rank_to_have_saved(tmp_path: Path, outcome: str) -> None:
    def stop(tables: Tables) -> None:
        change(worker_rows(tables, "measure")[2], outcome=outcome, error="why")

    found = rule(tmp_path, "W1", stop)
    assert found.answer is Answer.REFUTED
    assert f"1 of 4 ranks did not save (w2 {outcome}: why)" in said(found)


def test_a_killed_rank_is_the_reason_of_w1_q1_and_w2(tmp_path: Path) -> None:
    def kill(tables: Tables) -> None:
        take_out(tables, *worker_rows(tables, "readback"))
        dead = worker_rows(tables, "measure")[2]
        change(dead, outcome="ended", error="ended with code -9", end_ns=None, bytes=None)
        change(event(tables, "checkpoints"), names=["step-1"])

    found = findings(save_run(tmp_path, spoil=kill))
    assert found["W1"].answer is Answer.REFUTED
    assert "1 of 4 ranks did not save (w2 ended: ended with code -9)" in said(found["W1"])
    assert found["Q1"].answer is Answer.REFUTED
    assert found["W2"].answer is Answer.REFUTED
    assert "no checkpoint to read back" in meant(found["W2"])
    assert found["W3"].answer is Answer.HELD, "the earlier one is there, and nothing half-way"


def test_w2_refutes_another_hash(tmp_path: Path) -> None:
    found = rule(
        tmp_path,
        "W2",
        lambda tables: change(worker_rows(tables, "readback")[1], sha256="ff" * 32),
    )
    assert found.answer is Answer.REFUTED
    assert "3 of 4 parts have the SHA-256 they were saved by" in said(found)


def test_w2_refutes_a_part_that_could_not_be_read(tmp_path: Path) -> None:
    def break_one(tables: Tables) -> None:
        row = worker_rows(tables, "readback")[1]
        change(row, outcome="failed", error="OSError: Input/output error", sha256=None)

    found = rule(tmp_path, "W2", break_one)
    assert found.answer is Answer.REFUTED
    assert "w1 failed: OSError: Input/output error" in said(found)


def test_w2_refutes_a_readback_from_the_page_cache(tmp_path: Path) -> None:
    def warm(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["counter"] == "read_sectors":
                row["value"] = 1

    found = rule(tmp_path, "W2", warm)
    assert found.answer is Answer.REFUTED
    assert "page cache answered" in meant(found)


def test_w3_refutes_what_is_left_half_way(tmp_path: Path) -> None:
    found = rule(
        tmp_path,
        "W3",
        lambda tables: change(
            event(tables, "checkpoints"), names=["step-1", "step-2", "step-3.partial"]
        ),
    )
    assert found.answer is Answer.REFUTED
    assert "Left half-way: step-3.partial." in meant(found)


def test_w3_refutes_a_name_given_to_what_is_not_whole(tmp_path: Path) -> None:
    def half(tables: Tables) -> None:
        change(worker_rows(tables, "measure")[0], outcome="failed", error="x")

    assert rule(tmp_path, "W3", half).answer is Answer.REFUTED


def test_w3_refutes_an_earlier_checkpoint_that_changed(tmp_path: Path) -> None:
    found = rule(
        tmp_path,
        "W3",
        lambda tables: change(worker_rows(tables, "readback_earlier")[3], sha256="ff" * 32),
    )
    assert found.answer is Answer.REFUTED
    assert "3 of 4 parts of the earlier checkpoint have their SHA-256" in said(found)


def test_c3_refutes_a_readback_of_files_that_were_left_in_memory(tmp_path: Path) -> None:
    def resident(tables: Tables) -> None:
        for row in tables["residency"]:
            row["resident_bytes"] = row["size_bytes"]

    assert rule(tmp_path, "C3", resident).answer is Answer.REFUTED


def test_c2_refutes_files_nobody_wrote(tmp_path: Path) -> None:
    found = rule(tmp_path, "C2", lambda tables: change(event(tables, "durable"), files=9))
    assert found.answer is Answer.REFUTED


def test_q2_refutes_a_readback_before_the_drop(tmp_path: Path) -> None:
    def early(tables: Tables) -> None:
        row = event(tables, "drop_begin")
        row["mono_ns"] = event(tables, "readback_end")["mono_ns"] + 1

    assert rule(tmp_path, "Q2", early).answer is Answer.REFUTED


def test_a_run_that_writes_no_checkpoint_has_nothing_for_these_rules(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))
    for name in ("W1", "W2", "W3"):
        assert found[name].answer is Answer.NOT_APPLICABLE
