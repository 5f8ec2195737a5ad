"""Thirty ledgers with one planted fault each, thirty clean ones: all found, none invented."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from r8.audit.rules import RULES, audit
from r8.message import Answer
from r8.tests.support.synthetic_ledger import FAULTS, clean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.tests.support.synthetic_ledger import Synthetic

SEEDS = range(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clean_ledger_has_no_finding(tmp_path: Path, seed: int) -> None:
    found = audit(clean(seed).write(tmp_path))
    assert [str(one.check) for one in found if one.answer is not Answer.HELD] == []
    assert {one.rule_id for one in found} == {rule.rule_id for rule in RULES}


@pytest.mark.parametrize(
    ("seed", "rule_id", "figure", "plant"),
    [(seed, *fault) for seed, fault in enumerate(FAULTS)],
    ids=[f"{number}-{fault[0]}-{fault[1]}" for number, fault in enumerate(FAULTS)],
)
def test_a_planted_fault_is_found_by_its_rule_and_by_no_other(
    tmp_path: Path, seed: int, rule_id: str, figure: str, plant: Callable[[Synthetic], None]
) -> None:
    made = clean(seed)
    plant(made)
    found = [one for one in audit(made.write(tmp_path)) if one.answer is not Answer.HELD]
    assert [one.rule_id for one in found] == [rule_id], [str(one.check) for one in found]
    assert figure in found[0].figures


def test_thirty_faults_are_planted_and_every_rule_has_two() -> None:
    counts = Counter(rule_id for rule_id, _, _ in FAULTS)
    assert sum(counts.values()) == 30
    assert counts.keys() == {rule.rule_id for rule in RULES}
    assert min(counts.values()) >= 2


@pytest.mark.parametrize("ratio", [1.0, 1.04, 0.96])
def test_a_pair_inside_the_stated_deviation_is_left_alone(tmp_path: Path, ratio: float) -> None:
    made = clean(1)
    made.reprint("d.earlier.1", 1000.0, 1)
    made.reprint("d.later.1", 1000.0 * ratio, 1)
    found = [one for one in audit(made.write(tmp_path)) if one.rule_id == "A9"]
    assert {one.answer for one in found} == {Answer.HELD}
