"""C4: bytes at every layer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.forensics.balance import bytes_balance, engine_against_device, transfer_balance
from r8.message import Answer
from r8.tests.support.findings import check_of, meant, said
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import MIB, SyntheticRun
from r8.tests.support.stub_case import (
    KV_RUN,
    H,
    StubCase,
    U,
    answers_of,
    at_least,
    between,
    job_run,
    work_sums,
)

if TYPE_CHECKING:
    from pathlib import Path

    from r8.forensics.case import Case

KV = 33_554_432
ROUND = 1_000_000
SILENT = {"process_read_bytes": None}


@pytest.mark.parametrize(("device", "answer"), between(980_000, 1_020_000))
def test_c4_allows_the_device_two_percent_both_ways(device: int, answer: Answer) -> None:
    assert engine_against_device(StubCase(), ROUND, device).answer is answer
    case = StubCase(
        run=job_run(),
        metrics={"device_read_bytes": device, **SILENT},
        answers={"work_sums": work_sums(bytes=ROUND)},
    )
    assert answers_of(transfer_balance(case), "c4-device-against-moved") == [answer]


@pytest.mark.parametrize(("members", "answer"), between(980_000, 1_020_000))
def test_c4_allows_members_two_percent_both_ways(members: int, answer: Answer) -> None:
    case = StubCase(
        run=replace(KV_RUN, kv_device="md0"),
        texts={("md0", "kind"): "md", ("md0", "members"): "a,b"},
        metrics={
            "engine_hit_bytes": ROUND,
            "device_read_bytes": ROUND,
            "member_read_bytes": members,
            **SILENT,
        },
    )
    assert answers_of(bytes_balance(case), "c4-members") == [answer]


@pytest.mark.parametrize(("process", "answer"), at_least(980_000))
def test_c4_wants_the_process_to_have_read_the_device(process: int, answer: Answer) -> None:
    assert answers_of(bytes_balance(balanced(ROUND, process)), "c4-process") == [answer]


@pytest.mark.parametrize("device", [ROUND, 10_000 * ROUND])
def test_c4_allows_the_process_32_mib_or_two_percent_unexplained(device: int) -> None:
    limit = max(32 * MIB, round(0.02 * device))
    found = [bytes_balance(balanced(device, device + limit + more))[2] for more in (-1, 0, 1)]
    assert [one.message for one in found] == ["c4-process-excess"] * 2 + ["c4-elsewhere-unknown"]
    assert [one.answer for one in found] == [H, H, U]


@pytest.mark.parametrize(("elsewhere", "answer"), at_least(MIB))
def test_c4_wants_a_surplus_matched_by_reads_elsewhere(elsewhere: int, answer: Answer) -> None:
    case = balanced(ROUND, ROUND + 33 * MIB, elsewhere)
    assert answers_of(bytes_balance(case), "c4-elsewhere") == [answer]


def balanced(device: int, process: int, elsewhere: int | None = None) -> Case:
    return StubCase(
        metrics={
            "engine_hit_bytes": device,
            "device_read_bytes": device,
            "process_read_bytes": process,
        },
        balances={
            "process_excess_bytes": process - device,
            "elsewhere_read_bytes": elsewhere,
        },
    )


def test_c4_holds_when_all_layers_agree(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(system_read_bytes=10 * MIB)))["C4"]
    assert found.answer is Answer.HELD
    assert "loop0 read 32 MiB / engine hit 32 MiB = 1.0000" in said(found)
    excess = check_of(found, "c4-process-excess")
    assert (excess.measured, excess.limit) == (10 * MIB, 32 * MIB)


def test_c4_refutes_a_cache_that_served_three_percent(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(device_read_bytes=int(KV * 0.97))))["C4"]
    assert found.answer is Answer.REFUTED
    assert "= 0.9700 within 0.9800 to 1.0200 [refuted]" in said(found)
    assert "a cache served the rest" in meant(found)


def test_c4_refutes_a_warm_read(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(device_read_bytes=0)))["C4"]
    assert found.answer is Answer.REFUTED
    assert "loop0 read 0 B" in said(found)


def test_c4_refutes_a_second_reader_of_the_device(tmp_path: Path) -> None:
    spec = SyntheticRun(device_read_bytes=KV * 2, process_read_bytes=KV)
    found = findings(judged_run(tmp_path, spec))["C4"]
    assert found.answer is Answer.REFUTED
    assert "process read 32 MiB >= 62.72 MiB (98% of the device) [refuted]" in said(found)


def test_c4_refutes_an_engine_that_hit_nothing(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(hit_tokens=0)))["C4"]
    assert found.answer is Answer.REFUTED
    assert "engine hit 0 B" in said(found)


def test_c4_wants_a_large_surplus_matched_by_other_devices(tmp_path: Path) -> None:
    # A md array: its bytes do not come from another watched disk, as a loop device's do.
    base = {"kv_device": "md0", "kv_members": ("nvme2n1", "nvme3n1")}
    spec = SyntheticRun(run_id="matched", system_read_bytes=40 * MIB, **base)  # type: ignore[arg-type]
    assert findings(judged_run(tmp_path, spec))["C4"].answer is Answer.HELD
    spec = SyntheticRun(run_id="unmatched", process_read_bytes=KV + 40 * MIB, **base)  # type: ignore[arg-type]
    found = findings(judged_run(tmp_path, spec))["C4"]
    assert found.answer is Answer.REFUTED
    assert "other devices read 0 B >= 8 MiB [refuted]" in said(found)


def test_c4_does_not_let_a_loop_devices_backing_disk_explain_a_surplus(tmp_path: Path) -> None:
    spec = SyntheticRun(system_read_bytes=KV, process_read_bytes=KV + 40 * MIB)
    found = findings(judged_run(tmp_path, spec))["C4"]
    assert found.answer is Answer.REFUTED
    assert "other devices read 0 B" in said(found)


def test_c4_compares_members_with_their_array(tmp_path: Path) -> None:
    spec = SyntheticRun(kv_device="md0", kv_members=("nvme2n1", "nvme3n1"))
    held = findings(judged_run(tmp_path, spec))["C4"]
    assert held.answer is Answer.HELD
    assert "members read 32 MiB against 32 MiB of md0" in said(held)

    def one_member_silent(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["device"] == "nvme3n1" and row["counter"] == "read_sectors":
                row["value"] = 1000

    broken = SyntheticRun(run_id="b", kv_device="md0", kv_members=("nvme2n1", "nvme3n1"))
    found = findings(judged_run(tmp_path, broken, one_member_silent))["C4"]
    assert found.answer is Answer.REFUTED
    assert check_of(found, "c4-members").measured == KV // 2


def test_c4_is_unknown_without_device_or_process_counters(tmp_path: Path) -> None:
    no_device = SyntheticRun(run_id="d", device_read_bytes=None, process_read_bytes=KV)
    found = findings(judged_run(tmp_path, no_device))["C4"]
    assert found.answer is Answer.UNKNOWN
    assert "loop0: no read counter around the window" in said(found)
    no_process = SyntheticRun(run_id="p", process_read_bytes=None)
    found = findings(judged_run(tmp_path, no_process))["C4"]
    assert found.answer is Answer.UNKNOWN
    assert "process read_bytes not known" in said(found)


def test_c4_is_unknown_when_the_engine_said_nothing(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(hit_tokens=None)))["C4"]
    assert found.answer is Answer.UNKNOWN
    assert "engine hit bytes not known" in said(found)


def test_c4_is_unknown_when_no_sample_closes_the_window(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        end = next(row for row in tables["events"] if row["name"] == "measure_end")["mono_ns"]
        tables["probes"] = [row for row in tables["probes"] if row["mono_ns"] < end]

    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["C4"].answer is Answer.UNKNOWN
