"""C2 and C3: durable before the drop, and cold after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.coldness import (
    Files,
    _without_model,
    dropped_and_cold,
    populate_durable,
    resident,
)
from r8.message import Answer
from r8.tests.support.findings import check_of, said
from r8.tests.support.judged_run import Tables, drop_events, event, findings, judged_run, set_detail
from r8.tests.support.run_factory import MIB, SyntheticRun
from r8.tests.support.stub_case import (
    KV_RUN,
    H,
    R,
    StubCase,
    U,
    answers_of,
    at_least,
    at_most,
    between,
    exactly,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.forensics.case import Case
    from r8.forensics.coldness import FileRow

DROP_BEGIN_NS = 1_014_000_000_000
POOL = KV_RUN.expectation.hit_bytes
S = 1_000_000_000
NO_FILES: dict[str, list[tuple[Any, ...]]] = {"residency_at": [], "residency_sums": [(0, 0, 0)]}


def durable(written: int = 0, span_ns: int = S, **detail: int) -> Case:
    """A pool as planned, unless told otherwise; the device wrote so much in a quiet second."""
    facts = {"files": 32, "expected_files": 32, "bytes": POOL, "expected_bytes": POOL}
    facts |= {"quiet_ns": S, **detail}
    return StubCase(
        told={"durable": (2 * S, facts), "drop_begin": (2 * S, {})},
        answers={"quiet_writes": [(span_ns, 512 * written)]},
    )


@pytest.mark.parametrize(("sectors", "answer"), between(0, MIB // 512))
def test_c2_allows_a_mebibyte_and_no_counter_that_fell(sectors: int, answer: Answer) -> None:
    checks = populate_durable(durable(sectors))
    assert answers_of(checks, "c2-writes-quiet") == [answer]


@pytest.mark.parametrize("span_ns", [S // 2 - 1, S // 2, S // 2 + 1])
def test_c2_wants_half_of_the_quiet_interval_sampled(span_ns: int) -> None:
    found = populate_durable(durable(span_ns=span_ns))[-1]
    assert found.answer is (U if span_ns < S // 2 else H)


@pytest.mark.parametrize(("files", "answer"), exactly(32))
def test_c2_wants_exactly_the_files_expected(files: int, answer: Answer) -> None:
    assert answers_of(populate_durable(durable(files=files)), "c2-files-written") == [answer]


@pytest.mark.parametrize(("size", "answer"), exactly(POOL))
def test_c2_wants_exactly_the_bytes_expected(size: int, answer: Answer) -> None:
    assert answers_of(populate_durable(durable(bytes=size)), "c2-bytes-written") == [answer]


@pytest.mark.parametrize(("size", "answer"), at_least(POOL))
def test_c2_wants_the_measured_sessions_in_the_pool(size: int, answer: Answer) -> None:
    checks = populate_durable(durable(bytes=size, expected_bytes=size))
    assert answers_of(checks, "c2-covers-the-cell") == [answer]


def test_c2_refutes_a_populate_that_should_and_did_leave_nothing() -> None:
    checks = populate_durable(durable(files=0, expected_files=0))
    assert answers_of(checks, "c2-pool-empty") == [R]


def seen(*rows: FileRow) -> Files:
    return Files(rows=rows, tested=len(rows), size_bytes=0, cached_bytes=0)


@pytest.mark.parametrize(("cached", "answer"), at_most(10_000))
def test_c3_allows_a_file_one_percent_resident(cached: int, answer: Answer) -> None:
    rows = [("a", 1_000_000, cached, True, None), ("b", 1_000_000, 0, True, None)]
    assert resident(seen(*rows)).answer is answer


def test_c3_does_not_know_files_it_could_not_read_but_refutes_warm_ones_beside_them() -> None:
    lost = ("b", 1_000_000, None, True, "not the owner")
    unknown = resident(seen(("a", 1_000_000, 0, True, None), lost))
    assert (unknown.answer, unknown.message) == (U, "c3-residency-unknown")
    assert resident(seen(("a", 1_000_000, 20_000, True, None), lost)).answer is R


@pytest.mark.parametrize(("files", "answer"), exactly(2))
def test_c3_wants_every_expected_file_looked_at(files: int, answer: Answer) -> None:
    case = StubCase(
        told={"drop_end": (1, {"rc": 0}), "durable": (1, {"expected_files": 2})},
        answers={
            "residency_at": [(f"f{n}", 100, 0, True, None) for n in range(files)],
            "residency_sums": [(files, 100 * files, 0)],
        },
    )
    assert answers_of(dropped_and_cold(case), "c3-files-looked-at") == [answer]


@pytest.mark.parametrize(("code", "answer"), exactly(0))
def test_c3_wants_a_drop_that_returned_zero(code: int, answer: Answer) -> None:
    case = StubCase(told={"drop_end": (1, {"rc": code})}, answers=NO_FILES)
    assert answers_of(dropped_and_cold(case), "c3-drop") == [answer]


def test_c2_holds_for_a_whole_and_quiet_pool(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C2"]
    assert found.answer is Answer.HELD
    assert "32 files written = 32 expected" in said(found)
    assert "loop0 wrote 0 B in the last" in said(found)


def test_c2_refutes_a_missing_file(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(durable=False)))["C2"]
    assert found.answer is Answer.REFUTED
    assert "31 files written = 32 expected [refuted]" in said(found)


def test_c2_refutes_a_pool_smaller_than_the_measured_sessions(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        set_detail(tables, "durable", bytes=1000, expected_bytes=1000)

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C2"]
    assert found.answer is Answer.REFUTED
    assert "pool 1000 B >= 32 MiB of the measured sessions [refuted]" in said(found)


def test_c2_refutes_a_device_still_writing_before_the_drop(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        for row in tables["probes"]:
            late = row["mono_ns"] > DROP_BEGIN_NS - 500_000_000
            if row["device"] == "loop0" and row["counter"] == "write_sectors" and late:
                row["value"] += 4096

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C2"]
    assert found.answer is Answer.REFUTED
    assert check_of(found, "c2-writes-quiet").measured == 2 * MIB


HEAD, PATHS = "nvme1n1", ("nvme1c0n1", "nvme1c1n1")


def silent_head(late_sectors: int) -> Callable[[Tables], None]:
    """An NVMe multipath head before kernel 6.2: its counters stay 0, its paths' count for it."""

    def edit(tables: Tables) -> None:
        for row in tables["probes"]:
            head, path = row["device"] == HEAD, row["device"] in PATHS
            if row["counter"] == "kind" and (head or path):
                row["text"] = "nvme-head" if head else "nvme-path"
            elif row["probe"] == "disk" and head:
                row["value"] = 0
            elif row["counter"] == "write_sectors" and row["device"] == PATHS[0]:
                late = row["mono_ns"] > DROP_BEGIN_NS - 500_000_000
                row["value"] += late_sectors if late else 0

    return edit


@pytest.mark.parametrize(("sectors", "answer"), [(0, H), (4096, R)])
def test_c2_sees_what_the_paths_of_a_silent_multipath_head_write(
    tmp_path: Path, sectors: int, answer: Answer
) -> None:
    spec = SyntheticRun(kv_device=HEAD, kv_members=PATHS)
    found = findings(judged_run(tmp_path, spec, silent_head(sectors)))["C2"]
    assert check_of(found, "c2-writes-quiet").measured == sectors * 512
    assert found.answer is answer


def no_event(tables: Tables) -> None:
    drop_events(tables, "durable")


def no_quiet(tables: Tables) -> None:
    set_detail(tables, "durable", quiet_ns=0)


def no_counts(tables: Tables) -> None:
    event(tables, "durable")["detail"] = None


def no_write_samples(tables: Tables) -> None:
    tables["probes"] = [row for row in tables["probes"] if row["counter"] != "write_sectors"]


def no_drop_mark(tables: Tables) -> None:
    drop_events(tables, "drop_begin")


@pytest.mark.parametrize(
    "edit",
    [no_event, no_quiet, no_counts, no_write_samples, no_drop_mark],
    ids=lambda f: f.__name__,
)
def test_c2_is_unknown_when_its_evidence_is_missing(
    tmp_path: Path, edit: Callable[[Tables], None]
) -> None:
    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["C2"].answer is Answer.UNKNOWN


def test_c3_holds_after_a_drop_that_left_nothing(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(resident_share=0.009)))["C3"]
    assert found.answer is Answer.HELD
    assert "drop returned 0" in said(found)
    assert "0 of 32 files above 1% resident" in said(found)


def test_c3_refutes_a_cache_that_is_still_warm(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(resident_share=1.0)))["C3"]
    assert found.answer is Answer.REFUTED
    assert "32 of 32 files above 1% resident, 64 MiB of 64 MiB" in said(found)


def test_c3_refutes_one_file_just_above_the_limit(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        row = next(row for row in tables["residency"] if row["moment"] == "after_drop")
        row["resident_bytes"] = 24_576

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C3"]
    assert found.answer is Answer.REFUTED
    assert "1 of 32 files above 1% resident, 24576 B of" in said(found)


def test_c3_refutes_a_drop_that_failed_though_the_cache_is_empty(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(drop_rc=1)))["C3"]
    assert found.answer is Answer.REFUTED
    assert "drop returned 1 [refuted]" in said(found)


def test_c3_refutes_a_residency_scan_that_missed_files(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        last = [row for row in tables["residency"] if row["moment"] == "after_drop"][-1]
        tables["residency"].remove(last)

    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C3"]
    assert found.answer is Answer.REFUTED
    assert "31 files looked at = 32 expected [refuted]" in said(found)


def test_c3_without_a_drop_is_never_held(tmp_path: Path) -> None:
    cold = findings(judged_run(tmp_path, SyntheticRun(dropped=False)))["C3"]
    assert cold.answer is Answer.UNKNOWN
    warm = SyntheticRun(run_id="warm", dropped=False, resident_share=1.0)
    found = findings(judged_run(tmp_path, warm))["C3"]
    assert found.answer is Answer.REFUTED
    assert "32 of 32 files above 1% resident" in said(found)


def no_rows(tables: Tables) -> None:
    tables["residency"].clear()


def too_late(tables: Tables) -> None:
    for row in tables["residency"]:
        row["mono_ns"] = event(tables, "measure_end")["mono_ns"]


def too_early(tables: Tables) -> None:
    for row in tables["residency"]:
        row["mono_ns"] = event(tables, "drop_begin")["mono_ns"]


def not_readable(tables: Tables) -> None:
    for row in tables["residency"]:
        row["resident_bytes"] = None
        row["reason"] = "not the owner"


@pytest.mark.parametrize(
    "edit", [no_rows, too_late, too_early, not_readable], ids=lambda f: f.__name__
)
def test_c3_is_unknown_when_residency_was_not_seen_in_time(
    tmp_path: Path, edit: Callable[[Tables], None]
) -> None:
    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["C3"].answer is Answer.UNKNOWN


def test_c3_does_not_believe_a_method_that_failed_its_self_test(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(residency_self_test=False)))["C3"]
    assert found.answer is Answer.UNKNOWN
    assert "passed for 0 of 32 files [unknown]" in said(found)


@pytest.mark.parametrize(
    ("path", "shown"),
    [("-models-qwen@1@0@-1c17@float.pt", "*@1@0@-1c17@float.pt"), ("kv-0.pt", "kv-0.pt")],
)
def test_a_kv_file_is_named_by_its_key_and_not_by_where_the_model_lies(
    path: str, shown: str
) -> None:
    assert _without_model(path) == shown
