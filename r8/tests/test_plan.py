from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from r8.lab.plan import steps, williams_rows

ARMS = ("a", "b", "c", "d")


def _follows(rows: list[tuple[str, ...]]) -> Counter[tuple[str, str]]:
    return Counter(pair for row in rows for pair in pairwise(row))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_every_arm_stands_everywhere_and_follows_every_other_equally_often(n: int) -> None:
    arms = tuple("abcdef"[:n])
    rows = williams_rows(arms)
    assert len(rows) == (n if n % 2 == 0 else 2 * n)
    for place in range(n):
        assert len(set(Counter(row[place] for row in rows).values())) == 1
    follows = _follows(rows)
    assert len(follows) == n * (n - 1)
    assert len(set(follows.values())) == 1


def test_a_block_holds_every_arm_once() -> None:
    plan = steps(ARMS, blocks=6, seed=1)
    for block in range(6):
        assert sorted(one.arm for one in plan if one.block == block) == list(ARMS)


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    assert steps(ARMS, 4, 1) == steps(ARMS, 4, 1)
    orders = {tuple(one.arm for one in steps(ARMS, 4, seed)) for seed in range(10)}
    assert len(orders) > 1


def test_whole_rows_are_balanced_and_the_rest_says_it_is_not() -> None:
    assert all(one.balanced for one in steps(("a", "b"), 4, 0))
    assert not any(one.balanced for one in steps(("a", "b"), 3, 0))


def test_one_arm_needs_no_design() -> None:
    assert [one.arm for one in steps(("a",), 3, 0)] == ["a", "a", "a"]
