"""The order of work: blocks, arms in Williams order, sessions.

Williams order: over as many blocks as there are rows, every arm stands at every place equally often
and follows every other arm equally often, so that a drift or a carry-over of the machine falls on
all arms alike (Williams, E. J. 1949, Australian Journal of Scientific Research 2, 149-168).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from r8.errors import SiteError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from r8.lab.site.file import Arm, Plan
    from r8.lab.site.transfer import WorkPlan

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

    `life` names the engine start it belongs to: every cell of a life runs on the same engines and
    the same populate, one after another, each on sessions no other cell reads.
    """

    block: int
    order: int  # of the life inside its block
    life: str
    arm: str
    concurrency: int
    index: int  # of the cell inside its life
    first_session: int
    sessions: int
    balanced: bool

    @property
    def name(self) -> str:
        """As tests, run ids and tables name it."""
        return f"b{self.block}-{self.arm}-c{self.concurrency}"


def plan_for(plan: Plan, arm: Arm) -> Plan:
    """The plan as one arm runs it: on the instances the arm names, or on all of them."""
    return msgspec.structs.replace(plan, instances=arm.instances) if arm.instances else plan


def levels_of(plan: Plan | WorkPlan, arm: str) -> tuple[int, ...]:
    """The levels one arm is run at, lowest first."""
    return tuple(sorted(plan.levels.get(arm, plan.concurrency)))


def lives_of(arm_names: Sequence[str], arms: Mapping[str, Arm]) -> dict[str, list[str]]:
    """Arms by the life they share, in the order the plan names them."""
    lives: dict[str, list[str]] = {}
    for name in arm_names:
        lives.setdefault(arms[name].life or name, []).append(name)
    return lives


def check_lives(arm_names: Sequence[str], arms: Mapping[str, Arm], where: str) -> None:
    """Arms of one life run on one engine: what an engine is started with must not differ.

    Raises:
        SiteError: naming the life and the key.

    """
    for life, members in lives_of(arm_names, arms).items():
        for key in ("device", "patch", "lmcache", "kv", "env", "extra_config", "instances"):
            if len({repr(getattr(arms[name], key)) for name in members}) > 1:
                raise SiteError(
                    f"arms {', '.join(members)} share the life {life} and differ in {key}",
                    where=where,
                    next_step="give them the same, or lives of their own",
                )


def places(
    plan: Plan, arms: Mapping[str, Arm], arm_names: Sequence[str], blocks: int, seed: int
) -> list[Place]:
    """Every cell of every block, in the order it is to be run.

    Lives stand in Williams order; inside a life the arms follow the plan, each with its levels from
    the lowest up. Session numbers depend on the plan alone, so that a resumed life reads what the
    interrupted one would have read.

    Raises:
        SiteError: a level that the instances cannot share evenly.

    """
    lives = lives_of(arm_names, arms)
    cells = {
        life: _cells(plan_for(plan, arms[members[0]]), members) for life, members in lives.items()
    }
    return [
        Place(
            block=step.block,
            order=step.order,
            life=step.arm,
            arm=arm,
            concurrency=level,
            index=index,
            first_session=first,
            sessions=sessions,
            balanced=step.balanced,
        )
        for step in steps(tuple(lives), blocks, seed)
        for index, (arm, level, first, sessions) in enumerate(cells[step.arm])
    ]


def _cells(plan: Plan, members: Sequence[str]) -> list[tuple[str, int, int, int]]:
    found: list[tuple[str, int, int, int]] = []
    first = 0
    for arm in members:
        for level in levels_of(plan, arm):
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


def life_sessions(plan: Plan, members: Sequence[str]) -> int:
    """Sessions one life populates to be measured, all instances together."""
    cells = _cells(plan, members)
    return cells[-1][2] + cells[-1][3] if cells else 0


_NEVER_FOUND = ("disk", "other")


def control_place(cells: Sequence[Place], arms: Mapping[str, Arm], plan: Plan) -> Place | None:
    """The cell of one block after which its negative controls run; `None`: no KV in the block.

    The last one, so that nothing judged comes after them on those engines. Before that: one whose
    engine reads through the page cache, as O_DIRECT goes past what makes a read warm. Never one
    that looks on local disk for what another engine stored while there is another: that is the
    published negative result, which takes part in no claim.
    """
    with_kv = [one for one in cells if arms[one.arm].kv != "none"]
    buffered = [
        one
        for one in with_kv
        if not (plan.extra_config | arms[one.arm].extra_config).get("use_odirect")
    ]
    judged = [one for one in buffered if (arms[one.arm].kv, arms[one.arm].reads) != _NEVER_FOUND]
    return next(reversed(judged or buffered or with_kv), None)


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
