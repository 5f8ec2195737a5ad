"""Spoiled captures, a short list; ten thousand of them are in the long one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from probes.tests.support.mutated_trees import Trees, check_tree
from probes.tests.support.mutations import Case, all_cases, check, spoil

if TYPE_CHECKING:
    from pathlib import Path

SHORT = 8


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_a_spoiled_capture_raises_nothing_and_makes_no_0(case: Case) -> None:
    check(case, case.text)
    for seed in range(SHORT):
        dice = random.Random(f"{case.name} {seed}")  # noqa: S311 - to be repeated, not kept secret
        check(case, spoil(case.text, dice))


def test_a_spoiled_kernel_file_is_a_reason_and_no_0(tmp_path: Path) -> None:
    trees = Trees(tmp_path)
    dice = random.Random(1)  # noqa: S311 - to be repeated, not kept secret
    for _ in range(200):
        check_tree(trees, dice)


def test_a_parser_that_makes_a_0_or_raises_would_be_seen() -> None:
    silent = Case(name="silent", text="5", parse=lambda _: {"used": 0})
    with pytest.raises(AssertionError, match="is 0, the text has none"):
        check(silent, "N/A")
    loud = Case(name="loud", text="5", parse=lambda text: {"used": int(text)})
    with pytest.raises(ValueError, match="invalid literal"):
        check(loud, "N/A")
