"""C8: nothing regressed, changed or fell silent in the window."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.continuity import nothing_regressed
from r8.message import Answer, answer_of_all
from r8.tests.support.findings import check_of, said
from r8.tests.support.judged_run import S, Tables, event, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import KV_RUN, H, R, StubCase, U, answers_of, at_most

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.message import Check

BEGIN = 1020 * S
WINDOW: dict[str, tuple[int, dict[str, Any]]] = {
    "measure_begin": (10, {}),
    "measure_end": (20, {}),
}


def steady(
    *,
    steps: tuple[int, int] = (0, 0),
    gap: int = 0,
    topology: tuple[tuple[str, str, int], ...] = (("kind", "loop", 5), ("kind", "loop", 25)),
    states: tuple[tuple[object, ...], ...] = (),
    transport: str = "",
    lived: int = 1,
    sampled: int = 1,
) -> list[Check]:
    """C8 of one device: steps backwards and of a new epoch, the longest gap, what was seen."""
    case = StubCase(
        run=replace(KV_RUN, other_kv_devices=()),
        told=WINDOW,
        texts={("loop0", "transport"): transport} if transport else {},
        answers={
            "sample_steps": [(100, sampled, *steps, gap)],
            "probe = 'topology'": list(topology),
            "FROM states": list(states),
            "probe = 'process'": [(1, lived)],
        },
    )
    return list(nothing_regressed(case))


@pytest.mark.parametrize(("gap", "answer"), at_most(2 * S))
def test_c8_allows_a_gap_of_two_seconds(gap: int, answer: Answer) -> None:
    assert answers_of(steady(gap=gap), "c8-gap") == [answer]


def test_c8_wants_every_device_sampled() -> None:
    assert answers_of(steady(sampled=0), "c8-not-sampled") == [U]
    assert answers_of(steady(sampled=0), "c8-gap") == []


@pytest.mark.parametrize("place", [0, 1], ids=["backwards", "epoch"])
def test_c8_allows_no_step_backwards_and_no_new_epoch(place: int) -> None:
    steps = (int(place == 0), int(place == 1))
    assert answer_of_all(steady()) is H
    assert answers_of(steady(steps=steps), ("c8-backwards", "c8-epochs")[place]) == [R]


@pytest.mark.parametrize(
    ("instants", "answer"), [((10, 20), H), ((11, 20), U), ((10, 19), U), ((20, 21), U), ((9,), U)]
)
def test_c8_wants_the_topology_read_on_both_sides(
    instants: tuple[int, ...], answer: Answer
) -> None:
    found = steady(topology=tuple(("kind", "loop", at) for at in instants))
    assert found[3].quantity == "identity_changes"
    assert found[3].answer is answer


STATE = ("nvme", KV_RUN.kv_host, "nvme2", "state", 5, 0, 1, ["live"])


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, H),
        ({7: ["LIVE"]}, H),
        ({7: ["4: ACTIVE"]}, H),
        ({7: ["connecting"]}, R),
        ({7: ["connecting", "live"]}, R),
        ({7: []}, R),
        ({5: 1}, R),  # a reading without a value
        ({6: 2}, R),  # another epoch
        ({5: 1, 7: ["connecting"]}, R),  # faults add up, none takes another off
        ({5: 1, 6: 2}, R),
        ({3: "operstate", 7: ["up"]}, H),
        ({3: "operstate", 7: ["down"]}, R),
        ({3: "address", 7: ["traddr=1"]}, H),
        ({3: "address", 7: ["traddr=1", "traddr=2"]}, R),
        ({3: "array_state", 7: ["active", "clean"]}, H),
        ({3: "array_state", 7: ["active", "broken"]}, R),
        ({3: "array_state", 7: []}, R),
    ],
)
def test_c8_wants_one_good_state_all_through(changes: dict[int, object], answer: Answer) -> None:
    row = tuple(changes.get(at, word) for at, word in enumerate(STATE))
    assert answers_of(steady(states=(row,), transport="rdma"), "c8-state") == [answer]


@pytest.mark.parametrize(
    ("probe", "transport", "counts"),
    [
        ("nvme", "", False),  # somebody else's controller
        ("nvme", "pcie", True),
        ("nvme", "tcp", True),
        ("nic", "", False),
        ("nic", "pcie", False),  # KV comes over no network
        ("nic", "rdma", True),
    ],
)
def test_c8_looks_at_controllers_and_links_that_kv_comes_over(
    probe: str, transport: str, *, counts: bool
) -> None:
    row = (probe, KV_RUN.kv_host, "x0", "state", 5, 0, 1, ["connecting"])
    found = answers_of(steady(states=(row,), transport=transport), "c8-state")
    assert found == ([R] if counts else [])


@pytest.mark.parametrize(("lived", "answer"), [(0, R), (1, H)])
def test_c8_wants_a_process_that_lived_through_the_window(lived: int, answer: Answer) -> None:
    assert answers_of(steady(lived=lived), "c8-process") == [answer]


def test_c8_watches_the_other_kv_devices_as_well(tmp_path: Path) -> None:
    def replaced_other(tables: Tables) -> None:
        rows = [r for r in tables["probes"] if r["counter"] == "diskseq" and r["device"] == "loop1"]
        rows[-1]["value"] = 2

    found = findings(judged_run(tmp_path, SyntheticRun(), replaced_other))["C8"]
    assert found.answer is Answer.REFUTED
    assert check_of(found, "c8-changed").facts["device"] == "loop1"


def test_c8_holds_for_steady_counters(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C8"]
    assert found.answer is Answer.HELD
    assert "0 of " in said(found)
    assert "loop0: diskseq 1, state and members unchanged" in said(found)


def test_c8_refutes_a_new_epoch(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(epoch_grows=True)))["C8"]
    assert found.answer is Answer.REFUTED
    assert "began a new epoch [refuted]" in said(found)


def counter_restarts(tables: Tables) -> None:
    for row in tables["probes"]:
        mine = row["device"] == "loop0" and row["counter"] == "read_sectors"
        if mine and row["mono_ns"] > BEGIN + 2 * S:
            row["value"] -= 20_000


def probe_stopped(tables: Tables) -> None:
    tables["probes"] = [
        row
        for row in tables["probes"]
        if not BEGIN + S < row["mono_ns"] < BEGIN + 4 * S or row["probe"] != "disk"
    ]


def replaced(tables: Tables) -> None:
    rows = [r for r in tables["probes"] if r["counter"] == "diskseq" and r["device"] == "loop0"]
    rows[-1]["value"] = 2


def state_changed(tables: Tables) -> None:
    rows = [r for r in tables["probes"] if r["counter"] == "state" and r["device"] == "loop0"]
    rows[-1]["text"] = "connecting"


def engine_restarted(tables: Tables) -> None:
    for row in tables["probes"]:
        if row["probe"] == "process" and row["mono_ns"] > BEGIN + 2 * S:
            row["device"] = "a:200:9000"


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (counter_restarts, "counter steps went backwards"),
        (probe_stopped, "longest gap between samples 3."),
        (replaced, "loop0: diskseq 1 -> 2 [refuted]"),
        (state_changed, "loop0: state live -> connecting [refuted]"),
        (engine_restarted, "a: 0 of 2 processes lived through the window [refuted]"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_c8_refutes_by_number(tmp_path: Path, edit: Callable[[Tables], None], says: str) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C8"]
    assert found.answer is Answer.REFUTED
    assert says in said(found)


def no_topology_afterwards(tables: Tables) -> None:
    end = event(tables, "measure_end")["mono_ns"]
    tables["probes"] = [
        row for row in tables["probes"] if row["probe"] != "topology" or row["mono_ns"] < end
    ]


def no_processes(tables: Tables) -> None:
    tables["probes"] = [row for row in tables["probes"] if row["probe"] != "process"]


def no_disk(tables: Tables) -> None:
    tables["probes"] = [row for row in tables["probes"] if row["probe"] != "disk"]


def no_window(tables: Tables) -> None:
    tables["events"] = [row for row in tables["events"] if row["name"] != "measure_end"]


@pytest.mark.parametrize(
    "edit",
    [no_topology_afterwards, no_processes, no_disk, no_window],
    ids=lambda f: f.__name__,
)
def test_c8_is_unknown_when_nobody_looked(tmp_path: Path, edit: Callable[[Tables], None]) -> None:
    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["C8"].answer is Answer.UNKNOWN


def test_c8_lets_a_gauge_fall(tmp_path: Path) -> None:
    def edit(tables: Tables) -> None:
        sample = next(row for row in tables["probes"] if row["probe"] == "disk")
        for second, value in ((1, 9), (2, 3), (3, 0)):
            at = BEGIN + second * S
            gauge = {**sample, "counter": "in_flight", "device": "loop0", "value": value}
            tables["probes"].append({**gauge, "mono_ns": at})

    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["C8"].answer is Answer.HELD
