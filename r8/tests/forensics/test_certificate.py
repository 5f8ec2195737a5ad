"""The certificate as a whole: ids, answers, what a claim may rest on."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8 import forensics
from r8.forensics.certificate import objections
from r8.forensics.rule import Rule, apply
from r8.forensics.rules import RULES
from r8.message import Answer
from r8.tests.support.findings import BY_ANSWER, finding_of, meant, said
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun, synthetic_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.forensics.case import Case
    from r8.message import Check
    from r8.model import Finding, Run

GOOD, BAD, GONE, SILENT = (BY_ANSWER[answer] for answer in Answer)
# Rules that compare bytes or states of the block device of the KV.
OF_DEVICE = {"C1", "C2", "C4", "C6", "C8", "C9", "N1"}


def answer_of(checks: Sequence[Check]) -> Finding:
    rule = Rule(rule_id="X1", checks=lambda _: checks)

    class FakeCase:
        run = synthetic_run(SyntheticRun())
        transfer = None

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
    finding = answer_of([GONE, GOOD, BAD])
    assert said(finding) == (
        "no measure window [unknown]; measured 1 times = 1; measured 7 times = 1 [refuted]"
    )
    refuted = "A cell measured again is no cold read: the first reading filled the cache."
    assert meant(finding) == f"{refuted} Event measure_begin or measure_end is missing."
    assert str(finding).endswith("n: 7 <= 1"), "what does not explain the answer is left out"


def rules_on_disk() -> list[Rule]:
    """Rules that the modules of the package declare, whether or not `rules.py` knows of them."""
    names = [path.stem for path in Path(forensics.__path__[0]).glob("[!_]*.py")]
    assert len(names) > 15
    modules = [importlib.import_module(f"r8.forensics.{name}") for name in names]
    return [one for each in modules for one in vars(each).values() if isinstance(one, Rule)]


def test_every_rule_that_is_written_is_in_the_certificate_once() -> None:
    """A rule that no tuple names would be a check that cannot fail."""
    found = rules_on_disk()
    assert len(RULES) == len({rule.rule_id for rule in RULES})
    assert {rule.rule_id for rule in found} == {rule.rule_id for rule in RULES}


def test_a_rule_that_is_left_out_of_the_tuple_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = Rule(rule_id="X99", checks=lambda _: [])
    monkeypatch.setattr("r8.forensics.hits.X99", extra, raising=False)
    assert {rule.rule_id for rule in rules_on_disk()} - {rule.rule_id for rule in RULES} == {"X99"}


def test_rule_ids_are_the_ones_of_this_scenario_and_unique() -> None:
    ids = [rule.rule_id for rule in RULES]
    assert ids[:11] == [f"C{number}" for number in range(1, 12)]
    assert len(set(ids)) == len(ids) >= 24


def test_an_empty_run_holds_nothing_but_its_own_completeness(tmp_path: Path) -> None:
    def empty(tables: Tables) -> None:
        for name, rows in tables.items():
            if name != "run":
                rows.clear()

    found = findings(judged_run(tmp_path, SyntheticRun(), empty, lambda _: ""))
    held = {rule_id for rule_id, one in found.items() if one.answer is Answer.HELD}
    assert held == set()


def run_of(block: int, arm: str) -> Run:
    return synthetic_run(SyntheticRun(block=block, arm=arm))


def finding(run: Run, rule_id: str, answer: Answer) -> Finding:
    return finding_of(rule_id, run.run_id, answer)


def all_but(rule_id: str, runs: Sequence[Run]) -> list[Finding]:
    return [
        finding(run, rule.rule_id, Answer.HELD)
        for run in runs
        for rule in RULES
        if rule.rule_id != rule_id
    ]


@pytest.mark.parametrize("rule_id", [rule.rule_id for rule in RULES])
def test_a_rule_that_nobody_applied_objects(rule_id: str) -> None:
    run = run_of(0, "patched")
    (one,) = objections([run], all_but(rule_id, [run]), [run])
    assert (one.rule_id, one.answer) == (rule_id, Answer.UNKNOWN)
    assert said(one) == f"rule {rule_id} was not applied [unknown]"


def test_a_control_held_by_one_run_speaks_for_its_block_only() -> None:
    first, second = run_of(0, "patched"), run_of(0, "unpatched")
    other = run_of(1, "patched")
    found = [
        finding(first, "N1", Answer.UNKNOWN),
        finding(second, "N1", Answer.HELD),
        finding(other, "N1", Answer.UNKNOWN),
    ]
    runs = [first, second, other]
    found += all_but("N1", runs)
    assert [one.run_id for one in objections(runs, found, runs)] == [other.run_id]


def test_a_control_refuted_once_speaks_against_its_block() -> None:
    first, second = run_of(0, "patched"), run_of(0, "unpatched")
    found = [finding(first, "N1", Answer.REFUTED), finding(second, "N1", Answer.HELD)]
    found += all_but("N1", [first, second])
    (one,) = objections([second], found, [first, second])
    assert one.run_id == first.run_id


def test_a_level_without_a_block_device_names_the_rules_it_cannot_know_and_why(
    tmp_path: Path,
) -> None:
    """As a rehearsal without the rights to mount has it: KV in a directory of a FUSE mount."""

    def nameless(tables: Tables) -> None:
        tables["run"][0] |= {"kv_device": "", "fallback_level": "fuse", "other_kv_devices": []}
        of_disks = {"disk", "topology"}
        tables["probes"] = [row for row in tables["probes"] if row["probe"] not in of_disks]
        for row in tables["residency"]:
            row["device"] = None

    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched"), nameless))
    unknown = {name for name, one in found.items() if one.answer is Answer.UNKNOWN}
    assert unknown == OF_DEVICE
    for name in unknown:
        why = "At fallback level fuse the KV lies on no block device"
        assert meant(found[name]).startswith(why), name
    assert "no-block-device: no read counter" in said(found["C4"])


def test_rules_say_whether_they_ask_for_a_block_device() -> None:
    assert {rule.rule_id for rule in RULES if rule.of_device} == OF_DEVICE


def test_a_rule_of_no_device_does_not_blame_the_missing_device(tmp_path: Path) -> None:
    def nameless(tables: Tables) -> None:
        tables["run"][0] |= {"kv_device": "", "fallback_level": "fuse"}
        tables["residency"].clear()
        tables["calibration"].clear()

    found = findings(judged_run(tmp_path, SyntheticRun(arm="unpatched"), nameless))
    assert found["C3"].answer is found["C10"].answer is Answer.UNKNOWN
    blamed = {name for name, one in found.items() if one.checks[0].message == "no-block-device"}
    assert {"C1", "C4"} <= blamed <= OF_DEVICE
