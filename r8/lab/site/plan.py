"""The order of work: blocks, arms in Williams order, sessions.

Williams order: over as many blocks as there are rows, every arm stands at every place equally often
and follows every other arm equally often, so that a drift or a carry-over of the machine falls on
all arms alike (Williams, E. J. 1949, Australian Journal of Scientific Research 2, 149-168).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.roles import CONTRACTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from r8.lab.site.arms import Arm, Plan
    from r8.lab.site.file import Site

# Session numbers: measured ones count from 0; the others must never meet them.
FLUSH_SESSIONS_FROM = 100_000
PROBE_SESSION = 200_000
REWARM_SESSION = 200_001
CONTROL_SESSION = 200_002
WARM_CONTROL_SESSION = 200_003
# Room for the special sessions of this many instances in each cell.
_INSTANCES_MAX = 64


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One cell in one block: where it stands in the matrix, and which sessions it measures.

    `lifetime` names the engine lifetime it belongs to: all its cells run on the same engines and
    the same populate, one after another, each on sessions no other cell reads. In a transfer
    scenario every cell has its own workers, and `lifetime` is the arm.
    """

    block: int
    order: int  # of the lifetime inside its block
    lifetime: str
    arm: str
    concurrency: int
    index: int  # of the cell inside its lifetime
    first_session: int
    sessions: int
    balanced: bool

    @property
    def name(self) -> str:
        """As tests, run ids and tables name it."""
        return f"b{self.block}-{self.arm}-c{self.concurrency}"


def places(
    site: Site, scenario: str, arms: Sequence[str], blocks: int, seed: int
) -> tuple[Place, ...]:
    """Every cell of every block of a scenario of either kind, in the order it is to be run.

    Engine lifetimes stand in Williams order; inside one the arms follow the plan, each with its
    levels from the lowest up. Session numbers depend on the plan alone, so that a resumed lifetime
    reads what the interrupted one would have read.

    Raises:
        SiteError: a level that the instances cannot share evenly.

    """
    if scenario in site.transfers:
        plan = site.transfers[scenario]
        cells = {arm: [(arm, level, 0, level) for level in plan.levels_of(arm)] for arm in arms}
    else:
        cells = {
            lifetime: _cells(site.scenarios[scenario].on(site.arms[members[0]]), members)
            for lifetime, members in lifetimes_of(arms, site.arms).items()
        }
    return tuple(
        Place(
            block=step.block,
            order=step.order,
            lifetime=step.arm,
            arm=arm,
            concurrency=level,
            index=index,
            first_session=first,
            sessions=sessions,
            balanced=step.balanced,
        )
        for step in steps(tuple(cells), blocks, seed)
        for index, (arm, level, first, sessions) in enumerate(cells[step.arm])
    )


def lifetimes_of(arm_names: Sequence[str], arms: Mapping[str, Arm]) -> dict[str, list[str]]:
    """Arms by the engine lifetime they share, in the order the plan names them."""
    lifetimes: dict[str, list[str]] = {}
    for name in arm_names:
        lifetimes.setdefault(arms[name].engine_lifetime or name, []).append(name)
    return lifetimes


def _cells(plan: Plan, members: Sequence[str]) -> list[tuple[str, int, int, int]]:
    """Arm, level, first session and number of sessions of each cell of a lifetime."""
    found: list[tuple[str, int, int, int]] = []
    first = 0
    for arm in members:
        for level in plan.levels_of(arm):
            if level % len(plan.instances):
                raise SiteError(
                    f"{len(plan.instances)} instances cannot share level {level} of arm {arm}",
                    where="scenarios",
                    next_step="give concurrency (of the whole machine) as a multiple of them",
                )
            sessions = plan.sessions or level
            found.append((arm, level, first, sessions))
            first += sessions
    return found


def lifetime_sessions(plan: Plan, members: Sequence[str]) -> int:
    """Sessions one lifetime populates to be measured, all instances together."""
    return sum(sessions for *_, sessions in _cells(plan, members))


def control_place(cells: Sequence[Place], arms: Mapping[str, Arm], plan: Plan) -> Place | None:
    """The cell of one block after which its negative controls run; `None`: no KV in the block.

    The last one, so that nothing judged comes after them on those engines. Before that: one whose
    engine reads through the page cache, as O_DIRECT goes past what makes a read warm. Never one
    that no claim speaks of while there is another.
    """

    def buffered(one: Place) -> bool:
        settings = plan.extra_config | arms[one.arm].treatment.extra_config
        return not settings.get("use_odirect")

    with_kv = [one for one in cells if arms[one.arm].kv != "none"]
    best = [one for one in with_kv if buffered(one)]
    judged = [one for one in best if CONTRACTS[arms[one.arm].role].judged]
    return next(reversed(judged or best or with_kv), None)


def share(place: Place, instance: int, instances: int) -> list[int]:
    """The session numbers of a cell that one instance populates."""
    each = place.sessions // instances
    first = place.first_session + instance * each
    return list(range(first, first + each))


def special_session(base: int, *, cell: int, instance: int) -> int:
    """A session of its own for one use in one cell on one instance; `base` says which use."""
    # The bases are neighbours, so the numbers of one use lie a stride apart.
    return base + 10 * (cell * _INSTANCES_MAX + instance)


def flush_share(plan: Plan, instance: int) -> list[int]:
    """The session numbers with which one instance flushes its DRAM tier."""
    first = FLUSH_SESSIONS_FROM + instance * plan.flush_sessions
    return list(range(first, first + plan.flush_sessions))
