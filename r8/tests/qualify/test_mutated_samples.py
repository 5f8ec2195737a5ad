"""Ten thousand spoiled captures and kernel files, in parts that can be resumed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from probes.tests.support.mutated_trees import Trees, check_tree
from probes.tests.support.mutations import all_cases, check, spoil

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.qualify
PARTS = 10
PER_PART = 1000
# Of each part, so many spoil a file of a tree instead of a text.
TREES_PER_PART = 200


@pytest.mark.parametrize("part", range(PARTS))
def test_a_thousand_spoiled_samples_raise_nothing_and_make_no_0(part: int, tmp_path: Path) -> None:
    dice = random.Random(f"part {part}")  # noqa: S311 - to be repeated, not kept secret
    cases = all_cases()
    for _ in range(PER_PART - TREES_PER_PART):
        case = dice.choice(cases)
        check(case, spoil(case.text, dice))
    trees = Trees(tmp_path)
    for _ in range(TREES_PER_PART):
        check_tree(trees, dice)
