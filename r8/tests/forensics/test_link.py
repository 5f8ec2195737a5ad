"""C9, and the wire's part of C4."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.link import link_not_exceeded, wire_balances
from r8.message import Answer
from r8.tests.support.findings import meant, said
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.run_factory_rows import HOST, MEASURE_BEGIN, WALL_OFFSET_NS, S
from r8.tests.support.stub_case import KV_RUN, StubCase, answers_of, at_most, between

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KV = 33_554_432  # read in 4 s: 8.39 MB/s
CALIBRATION = (1001 * S, 1003 * S)
KNOWN = 100_000_000
ARRAY: dict[str, Any] = {"kv_device": "md0", "kv_members": ("nvme2n1", "nvme3n1")}

MS = 1_000_000


def nic_rows(total: Callable[[int], int], counter: str, device: str = "ens1") -> list[Any]:
    return [
        {
            "probe": "nic",
            "host": HOST,
            "device": device,
            "counter": counter,
            "epoch": 0,
            "value": 5_000_000 + total(at),
            "mono_ns": at,
            "wall_ns": at + WALL_OFFSET_NS,
        }
        for at in range(1000 * S, 1040 * S, S // 10)
    ]


def even(size: int, begin: int, duration_ns: int) -> Callable[[int], int]:
    return lambda at: round(size * min(1.0, max(0.0, (at - begin) / duration_ns)))


def fabric(ratio: float = 1.02, *, calibrated: bool = True, sampled: bool = True) -> Any:
    """Make the array's members remote, and let an adapter receive `ratio` times what they read."""

    def edit(tables: Tables) -> None:
        facts = {"probe": "topology", "host": HOST, "counter": "transport", "text": "rdma"}
        for member in ARRAY["kv_members"]:
            at = {"mono_ns": 1002 * S, "wall_ns": 1002 * S + WALL_OFFSET_NS}
            tables["probes"].append({**facts, "device": member, **at})
        for tick in range(MEASURE_BEGIN - 2 * S, MEASURE_BEGIN + 8 * S, S // 2):
            row = {"probe": "nvme", "host": HOST, "device": "nvme2", "counter": "state"}
            when = {"mono_ns": tick, "wall_ns": tick + WALL_OFFSET_NS, "epoch": 0}
            tables["probes"].append({**row, "text": "live", **when})
        if sampled:
            read = even(round(KV * ratio), MEASURE_BEGIN, 4 * S)
            known = even(round(KNOWN * 1.02), CALIBRATION[0], S)
            total = lambda at: read(at) + known(at)  # noqa: E731
            tables["probes"] += nic_rows(total, "ethtool.rx_vport_rdma_unicast_bytes")
            # The same bytes by another name of the same port must not count twice.
            tables["probes"] += nic_rows(total, "ib.port_rcv_data_bytes", "mlx5_0/1")
        if calibrated:
            detail = json.dumps({"read_bytes": KNOWN})
            for name, instant in zip(("begin", "end"), CALIBRATION, strict=True):
                mark = {"name": f"wire_calibration_{name}", "mono_ns": instant}
                told = {"wall_ns": instant + WALL_OFFSET_NS, "detail": detail}
                tables["events"].append({**mark, **told})

    return edit


def linked(moved: int, *, span_ns: int = S, received: int = 0, known: int = 0) -> StubCase:
    """A link of 1 MB/s, and an adapter behind it whose counters grew in two windows."""
    marks = ("measure_begin", "measure_end", "wire_calibration_begin", "wire_calibration_end")
    detail = {"read_bytes": known}
    return StubCase(
        run=replace(KV_RUN, link_bytes_per_s=1_000_000),
        told={name: (at, detail) for at, name in enumerate(marks)},
        texts={("loop0", "transport"): "tcp"} if received else {},
        answers={
            "fastest_stretch": [(moved, span_ns)],
            "FROM growths": [(1, 2)],
            "wire_counters": [("node", "ens1", "netdev.rx_bytes")] if received else [],
            "wire_bytes": [(received,)],
        },
    )


@pytest.mark.parametrize(("moved", "answer"), at_most(1_020_000))
def test_c9_allows_two_percent_above_the_link(moved: int, answer: Answer) -> None:
    assert answers_of(link_not_exceeded(linked(moved)), "c9-peak") == [answer]
    slower = linked(2 * moved, span_ns=2 * S)
    assert answers_of(link_not_exceeded(slower), "c9-peak") == [answer]


@pytest.mark.parametrize(("payload", "answer"), between(990_000, 1_010_000))
def test_c4_allows_the_wire_one_percent_around_its_calibration(
    payload: int, answer: Answer
) -> None:
    # The same bytes received in either window, for a device's 1 MB and for the calibration's read.
    case = linked(0, received=1_000_000, known=payload)
    assert answers_of(wire_balances(case, 1_000_000), "c4-wire") == [answer]


@pytest.mark.parametrize(
    ("calibrated", "now", "device"), [(None, 9, 9), (0, 9, 9), (9, None, 9), (9, 9, 0)]
)
def test_c4_does_not_know_a_wire_of_which_one_number_is_missing(
    calibrated: int | None, now: int | None, device: int
) -> None:
    case = linked(0, received=1, known=9)
    windows = {"'begin_ns': 2": [(calibrated,)], "'begin_ns': 0": [(now,)]}
    case = replace(case, answers={**windows, **case.answers})
    assert answers_of(wire_balances(case, device), "c4-wire-unknown") == [Answer.UNKNOWN]


def test_c9_does_not_apply_where_no_link_is_declared_and_says_so(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C9"]
    assert found.answer is Answer.NOT_APPLICABLE
    assert said(found) == "no link is declared for loop0 (loop) [does not apply]"


def test_c9_is_unknown_for_a_fabric_device_whose_link_nobody_declared(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(**ARRAY), fabric()))["C9"]
    assert found.answer is Answer.UNKNOWN
    assert "reached over rdma" in said(found)


def test_c9_is_unknown_where_nobody_says_what_the_device_is(tmp_path: Path) -> None:
    def silent(tables: Tables) -> None:
        tables["probes"] = [row for row in tables["probes"] if row["probe"] != "topology"]

    found = findings(judged_run(tmp_path, SyntheticRun(), silent))["C9"]
    assert found.answer is Answer.UNKNOWN


@pytest.mark.parametrize(
    ("link", "answer"), [(8_600_000, Answer.HELD), (8_000_000, Answer.REFUTED)]
)
def test_c9_compares_the_fastest_second_with_the_link(
    tmp_path: Path, link: int, answer: Answer
) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(link_bytes_per_s=link)))["C9"]
    assert found.answer is answer
    assert f"(link {link / 1e6:.1f} MB/s and 2%)" in said(found)
    assert "= 8.4 MB/s" in said(found)


def test_c9_sees_one_second_that_was_too_fast_in_a_slow_phase(tmp_path: Path) -> None:
    # Half the bytes within the first second of ten: 3.4 MB/s on average, 16.8 in that second.
    def burst(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["device"] == "loop0" and row["counter"] == "read_sectors":
                late = even(KV // 2, MEASURE_BEGIN + 8 * S, S)
                done = even(KV // 2, MEASURE_BEGIN, S)(row["mono_ns"]) + late(row["mono_ns"])
                row["value"] = 1000 + done // 512

    spec = SyntheticRun(link_bytes_per_s=10_000_000, read_s=10.0)
    found = findings(judged_run(tmp_path, spec, burst))
    assert found["C9"].answer is Answer.REFUTED
    assert found["C4"].answer is Answer.HELD


def under_way(gauge: int) -> Callable[[Tables], None]:
    """Requests of 128 KiB, eight of them always in flight; the gauge says what it says."""

    def edit(tables: Tables) -> None:
        added = []
        for row in tables["probes"]:
            if row["device"] == "loop0" and row["counter"] == "read_sectors":
                added.append({**row, "counter": "reads", "value": row["value"] // 256})
                added.append({**row, "counter": "in_flight", "value": gauge})
                added.append({**row, "counter": "read_ms", "value": 8 * row["mono_ns"] // MS})
        tables["probes"] += added

    return edit


@pytest.mark.parametrize(
    ("gauge", "link", "answer"),
    [
        (8, 8_000_000, Answer.HELD),  # the device moves 8.4 MB/s
        (0, 8_000_000, Answer.REFUTED),
        (4294967295, 8_000_000, Answer.HELD),  # it wrapped, and acquits of no more than others say
        (4294967295, 2_000_000, Answer.REFUTED),
    ],
)
def test_c9_grants_what_was_in_flight_as_far_as_others_bear_it_out(
    tmp_path: Path, gauge: int, link: int, answer: Answer
) -> None:
    spec = SyntheticRun(link_bytes_per_s=link)
    assert findings(judged_run(tmp_path, spec, under_way(gauge)))["C9"].answer is answer


def test_c9_holds_the_adapter_to_the_link_as_well(tmp_path: Path) -> None:
    spec = SyntheticRun(link_bytes_per_s=8_600_000, **ARRAY)
    found = findings(judged_run(tmp_path, spec, fabric(ratio=1.5)))["C9"]
    assert found.answer is Answer.REFUTED
    assert "ens1 rx_vport_rdma_unicast_bytes" in said(found)
    assert "mlx5_0/1" not in said(found)


def test_c9_holds_for_an_adapter_that_carried_no_more_than_the_device(tmp_path: Path) -> None:
    spec = SyntheticRun(link_bytes_per_s=8_600_000, **ARRAY)
    assert findings(judged_run(tmp_path, spec, fabric(ratio=1.0)))["C9"].answer is Answer.HELD


def test_c9_is_unknown_without_readings(tmp_path: Path) -> None:
    spec = SyntheticRun(link_bytes_per_s=8_600_000, device_read_bytes=None, process_read_bytes=KV)
    assert findings(judged_run(tmp_path, spec))["C9"].answer is Answer.UNKNOWN


def test_c4_holds_the_wire_to_its_own_calibration(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(run_id="a", **ARRAY), fabric()))["C4"]
    assert found.answer is Answer.HELD
    assert "calibrated 97.27 MiB / 95.37 MiB = 1.0200: " in said(found)
    # A cache between adapter and engine, or a second user of the adapter.
    for name, ratio in {"b": 0.9, "c": 1.1}.items():
        spec = SyntheticRun(run_id=name, **ARRAY)
        found = findings(judged_run(tmp_path, spec, fabric(ratio)))["C4"]
        assert found.answer is Answer.REFUTED
        assert "The adapter received other bytes" in meant(found)


def test_c4_is_unknown_on_a_fabric_without_calibration_or_adapter(tmp_path: Path) -> None:
    edits = {"a": fabric(calibrated=False), "b": fabric(sampled=False)}
    for name, edit in edits.items():
        found = findings(judged_run(tmp_path, SyntheticRun(run_id=name, **ARRAY), edit))["C4"]
        assert found.answer is Answer.UNKNOWN


def test_c4_says_that_a_loop_device_has_no_wire_and_holds(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C4"]
    assert found.answer is Answer.HELD
    assert "no wire behind loop0 [does not apply]" in said(found)


def _state(text: str, at_s: float) -> Any:
    def edit(tables: Tables) -> None:
        fabric()(tables)
        for row in tables["probes"]:
            late = row["mono_ns"] >= MEASURE_BEGIN + at_s * S
            if row["probe"] == "nvme" and row["counter"] == "state" and late:
                row["text"] = text

    return edit


def test_c8_refutes_a_controller_that_lost_its_link_in_the_window(tmp_path: Path) -> None:
    spec = SyntheticRun(run_id="fault", **ARRAY)
    found = findings(judged_run(tmp_path, spec, _state("connecting", 1.0)))["C8"]
    assert found.answer is Answer.REFUTED
    assert "nvme nvme2: state connecting -> live" in said(found)
    spec = SyntheticRun(run_id="down", **ARRAY)
    found = findings(judged_run(tmp_path, spec, _state("connecting", -9.0)))["C8"]
    assert found.answer is Answer.REFUTED
    spec = SyntheticRun(run_id="up", **ARRAY)
    assert findings(judged_run(tmp_path, spec, _state("live", 0.0)))["C8"].answer is Answer.HELD


def test_c8_is_unknown_on_a_fabric_when_nobody_watched_the_controllers(tmp_path: Path) -> None:
    def unwatched(tables: Tables) -> None:
        fabric()(tables)
        tables["probes"] = [row for row in tables["probes"] if row["probe"] != "nvme"]

    found = findings(judged_run(tmp_path, SyntheticRun(**ARRAY), unwatched))["C8"]
    assert found.answer is Answer.UNKNOWN
    assert "no controller state" in said(found)
