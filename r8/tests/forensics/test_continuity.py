"""C8: nothing regressed, changed or fell silent in the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.message import Answer
from r8.tests.support.judged_run import S, Tables, event, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BEGIN = 1020 * S


def test_c8_holds_for_steady_counters(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C8"]
    assert found.answer is Answer.HELD
    assert "0 of " in found.arithmetic
    assert "loop0: diskseq 1, state and members unchanged" in found.arithmetic


def test_c8_refutes_a_new_epoch(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(epoch_grows=True)))["C8"]
    assert found.answer is Answer.REFUTED
    assert "began a new epoch [refuted]" in found.arithmetic


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
    assert says in found.arithmetic


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
