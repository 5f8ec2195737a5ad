"""The certificate of a run without a KV engine: what applies holds, and each rule can say no."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.forensics.certificate import PASSING
from r8.forensics.rules import RULES
from r8.message import Answer
from r8.tests.support.findings import said
from r8.tests.support.judged_run import Tables, findings
from r8.tests.support.transfer_runs import change_work, loading_spec, read_again, work_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.tests.support.run_factory import SyntheticRun

OF_ENGINES = {rule.rule_id for rule in RULES if rule.of_engine} | {"C7"}
TOTAL = 33_554_432  # what the workers of a synthetic run load
APPLY = ("C1", "C2", "C3", "C4", "C5", "C8", "C10", "Q1", "Q2", "Q3", "N1")


def test_a_good_loading_run_holds_what_applies_and_says_what_does_not(tmp_path: Path) -> None:
    found = findings(work_run(tmp_path, loading_spec()))
    assert {rule: found[rule].answer for rule in APPLY} == dict.fromkeys(APPLY, Answer.HELD)
    assert {"C6", "C11", "E1", "E2", "N2"} <= OF_ENGINES
    for rule in OF_ENGINES:
        assert found[rule].answer is Answer.NOT_APPLICABLE
        assert "does not apply" in said(found[rule])
    assert all(one.answer in PASSING for one in found.values())


def _failed(tables: Tables) -> None:
    change_work(tables, "w1", outcome="failed", error="OSError: no space", end_ns=None, bytes=None)


def _killed(tables: Tables) -> None:
    change_work(tables, "w1", outcome="ended", error="ended with code -9", bytes=None)


def _twice(tables: Tables) -> None:
    rows = [row for row in tables["events"] if row["name"] == "work" and '"w1"' in row["detail"]]
    tables["events"].append(next(row for row in rows if '"measure"' in row["detail"]))


def _short(tables: Tables) -> None:
    change_work(tables, "w1", bytes=1)


def _late(tables: Tables) -> None:
    change_work(tables, "w1", scheduled_ns=1)


def _early(tables: Tables) -> None:
    change_work(tables, "w1", scheduled_ns=2**62)


def _silent(tables: Tables) -> None:
    tables["events"] = [row for row in tables["events"] if row["name"] != "work"]


def _dead(tables: Tables) -> None:
    tables["probes"] = [
        row
        for row in tables["probes"]
        if not (row["device"].startswith("w1:") and row["mono_ns"] > 0)
    ]


@pytest.mark.parametrize(
    ("edit", "rule", "answer", "word"),
    [
        (_failed, "Q1", Answer.REFUTED, "no space"),
        (_killed, "Q1", Answer.REFUTED, "code -9"),
        (_twice, "Q1", Answer.REFUTED, "3 rows of workers = 2 planned"),
        (_short, "Q1", Answer.REFUTED, "workers moved"),
        (_short, "C4", Answer.REFUTED, "workers moved"),
        (_failed, "C4", Answer.UNKNOWN, "not known"),
        (_late, "C10", Answer.REFUTED, "lag behind the barrier"),
        (_early, "C10", Answer.REFUTED, "1 of 2 workers began before the barrier"),
        (_silent, "Q1", Answer.UNKNOWN, "no row"),
        (_silent, "C10", Answer.UNKNOWN, "no worker"),
        (_dead, "C8", Answer.UNKNOWN, "w1: no process"),
    ],
)
def test_a_rule_of_workers_says_no(
    tmp_path: Path, edit: Callable[[Tables], None], rule: str, answer: Answer, word: str
) -> None:
    found = findings(work_run(tmp_path, loading_spec(), edit))[rule]
    assert (found.answer, word in said(found)) == (answer, True), said(found)


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        # From the page cache: the device gave a tenth, or nothing, of what was loaded.
        (loading_spec(device_read_bytes=3_000_000), "C4"),
        (loading_spec(device_read_bytes=0), "C4"),
        (loading_spec(resident_share=0.5), "C3"),
        (loading_spec(dropped=False), "C3"),
        (loading_spec(drop_rc=1), "C3"),
        (loading_spec(other_device_read_bytes=30_000_000), "C5"),
        (loading_spec(process_read_bytes=0), "C4"),
        (loading_spec(kv_mount_device="vda"), "C1"),
        (loading_spec(durable=False), "C2"),
    ],
)
def test_a_loader_that_was_not_cold_is_refused(
    tmp_path: Path, spec: SyntheticRun, rule: str
) -> None:
    assert findings(work_run(tmp_path, spec))[rule].answer not in PASSING


def test_a_warm_load_that_balances_like_a_cold_one_refutes_the_control(tmp_path: Path) -> None:
    def again(tables: Tables) -> None:
        read_again(tables, TOTAL)

    found = findings(work_run(tmp_path, loading_spec(), again))["N1"]
    assert found.answer is Answer.REFUTED, said(found)


def test_a_page_cache_that_somebody_emptied_is_no_control(tmp_path: Path) -> None:
    def emptied(tables: Tables) -> None:
        read_again(tables, TOTAL)
        for row in tables["residency"]:
            row["resident_bytes"] = 0

    found = findings(work_run(tmp_path, loading_spec(), emptied))["N1"]
    assert found.answer is Answer.UNKNOWN
    assert [one.message for one in found.checks] == ["n1-files-not-cached"]
