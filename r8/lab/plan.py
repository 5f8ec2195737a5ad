"""The order of work: blocks, arms in Williams order, sessions.

Williams order: over as many blocks as there are rows, every arm stands at every place equally often
and follows every other arm equally often, so that a drift or a carry-over of the machine falls on
all arms alike (Williams, E. J. 1949, Australian Journal of Scientific Research 2, 149-168).
"""

from __future__ import annotations

import random
from dataclasses import dataclass

# Session numbers: measured ones count from 0; the others must never meet them.
FLUSH_SESSIONS_FROM = 100_000
PROBE_SESSION = 200_000
REWARM_SESSION = 200_001
CONTROL_SESSION = 200_002


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One arm in one block, at its place."""

    block: int
    order: int
    arm: str
    balanced: bool  # every row of the design is used equally often


def williams_rows(arms: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The rows of a Williams design: n rows for an even number of arms, 2n for an odd one."""
    n = len(arms)
    first = [0]
    for step in range(1, n):
        first.append((first[-1] + (step if step % 2 else -step)) % n)
    rows = [tuple(arms[(place + shift) % n] for place in first) for shift in range(n)]
    if n % 2 and n > 1:
        rows += [tuple(reversed(row)) for row in rows]
    return rows


def steps(arms: tuple[str, ...], blocks: int, seed: int) -> list[Step]:
    """Every arm of every block in the order it is to be run.

    Rows are shuffled by the seed, anew each time all have been used; a number of blocks that does
    not use all rows equally often is marked as not balanced.
    """
    rows = williams_rows(arms)
    # Not for secrecy: an auditor must be able to make the same order from the same seed.
    shuffler = random.Random(seed)  # noqa: S311
    balanced = blocks % len(rows) == 0
    plan: list[Step] = []
    deck: list[tuple[str, ...]] = []
    for block in range(blocks):
        if not deck:
            deck = list(rows)
            shuffler.shuffle(deck)
        for order, arm in enumerate(deck.pop()):
            plan.append(Step(block=block, order=order, arm=arm, balanced=balanced))
    return plan
