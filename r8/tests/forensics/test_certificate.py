"""The certificate as a whole: ids, answers, what a claim may rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.errors import UsageError
from r8.forensics.certificate import objections
from r8.forensics.explain import explain
from r8.forensics.rule import Check, Rule, apply, missing, not_applicable
from r8.forensics.rules import RULES
from r8.message import Answer
from r8.model import Finding
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun, synthetic_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from r8.forensics.case import Case
    from r8.model import Run

GOOD = Check(arithmetic="1 = 1", held=True, otherwise="")
BAD = Check(arithmetic="1 = 2", held=False, otherwise="It is not.")
GONE = missing("1 = ?", "Nobody looked.")
SILENT = not_applicable("no 1 here", "There is none by plan.")


def answer_of(checks: Sequence[Check]) -> Finding:
    rule = Rule(rule_id="X1", title="", reason="", inputs="", threshold="", checks=lambda _: checks)

    class FakeCase:
        run = synthetic_run(SyntheticRun())

    case: Case = FakeCase()  # type: ignore[assignment]
    return apply(rule, case)


@pytest.mark.parametrize(
    ("checks", "answer"),
    [
        ([GOOD, GOOD], Answer.HELD),
        ([GOOD, BAD, GONE], Answer.REFUTED),
        ([GOOD, GONE], Answer.UNKNOWN),
        ([], Answer.UNKNOWN),
        ([SILENT], Answer.NOT_APPLICABLE),
        ([SILENT, GOOD], Answer.HELD),
        ([SILENT, GONE], Answer.UNKNOWN),
        ([SILENT, BAD], Answer.REFUTED),
    ],
)
def test_a_rule_is_held_only_when_every_check_is(checks: list[Check], answer: Answer) -> None:
    assert answer_of(checks).answer is answer


def test_a_finding_prints_all_arithmetic_and_marks_what_failed() -> None:
    finding = answer_of([GOOD, BAD, GONE])
    assert finding.arithmetic == "1 = 1; 1 = 2 [refuted]; 1 = ? [unknown]"
    assert finding.detail == "It is not. Nobody looked."


def test_rule_ids_are_the_ones_of_this_scenario_and_unique() -> None:
    ids = [rule.rule_id for rule in RULES]
    assert ids[:11] == [f"C{number}" for number in range(1, 12)]
    assert ids[11:] == [
        "E1",
        "E2",
        "E3",
        "Q1",
        "Q2",
        "Q3",
        "G1",
        "S1",
        "W1",
        "W2",
        "W3",
        "N1",
        "N2",
    ]


def test_an_empty_run_holds_nothing_but_its_own_completeness(tmp_path: Path) -> None:
    def empty(tables: Tables) -> None:
        for name, rows in tables.items():
            if name != "run":
                rows.clear()

    found = findings(judged_run(tmp_path, SyntheticRun(), empty, lambda _: ""))
    held = {rule_id for rule_id, one in found.items() if one.answer is Answer.HELD}
    assert held == set()


def test_explain_gives_reason_inputs_and_threshold_of_every_rule() -> None:
    for rule in RULES:
        text = explain(rule.rule_id.lower())
        assert text.startswith(f"{rule.rule_id}  {rule.title}")
        for part in ("Why", "Reads", "Threshold", "Answers"):
            assert f"\n{part} " in text
        assert all(len(line) <= 100 for line in text.splitlines())


def test_explain_names_the_rules_there_are() -> None:
    with pytest.raises(UsageError, match="choose one of C1, C2"):
        explain("C12")


def run_of(block: int, arm: str) -> Run:
    return synthetic_run(SyntheticRun(block=block, arm=arm))


def finding(run: Run, rule_id: str, answer: Answer) -> Finding:
    return Finding(rule_id=rule_id, run_id=run.run_id, answer=answer, arithmetic="", detail="")


def test_a_needed_rule_that_nobody_applied_objects() -> None:
    run = run_of(0, "patched")
    (one,) = objections([run], [], ["C9"], [run])
    assert (one.rule_id, one.answer) == ("C9", Answer.UNKNOWN)


def test_a_control_held_by_one_run_speaks_for_its_block_only() -> None:
    first, second = run_of(0, "patched"), run_of(0, "unpatched")
    other = run_of(1, "patched")
    found = [
        finding(first, "N1", Answer.UNKNOWN),
        finding(second, "N1", Answer.HELD),
        finding(other, "N1", Answer.UNKNOWN),
    ]
    runs = [first, second, other]
    assert [one.run_id for one in objections(runs, found, ["N1"], runs)] == [other.run_id]


def test_a_control_refuted_once_speaks_against_its_block() -> None:
    first, second = run_of(0, "patched"), run_of(0, "unpatched")
    found = [finding(first, "N1", Answer.REFUTED), finding(second, "N1", Answer.HELD)]
    (one,) = objections([second], found, ["N1"], [first, second])
    assert one.run_id == first.run_id


def test_a_rung_without_a_block_device_names_the_rules_it_cannot_know_and_why(
    tmp_path: Path,
) -> None:
    """As a rehearsal without the rights to mount has it: KV in a directory of a FUSE mount."""

    def nameless(tables: Tables) -> None:
        tables["run"][0] |= {"kv_device": "", "rung": "fuse", "other_kv_devices": []}
        of_disks = {"disk", "topology"}
        tables["probes"] = [row for row in tables["probes"] if row["probe"] not in of_disks]
        for row in tables["residency"]:
            row["device"] = None

    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched"), nameless))
    unknown = {name for name, one in found.items() if one.answer is Answer.UNKNOWN}
    assert unknown == {"C1", "C2", "C4", "C6", "C8", "C9", "N1"}
    for name in unknown:
        assert found[name].detail.startswith("On rung fuse the KV lies on no block device"), name
    assert found["C4"].arithmetic.startswith("no-block-device: no read counter")
