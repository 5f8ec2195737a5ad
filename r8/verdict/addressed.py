"""Which arms a claim speaks of.

A claim names an arm (`patched`), and is then about the arm of that name and no other; or it names a
role (`role:array`), and is then about every arm of that role that was run at its level: one verdict
each. Nothing stands in for anything else: an arm that has another name than the claim, or a role
that no arm has, is not measured.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from r8.roles import ROLE_PREFIX
from r8.verdict.session import relevant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.model import Claim, Run


def addressed(claim: Claim, runs: Sequence[Run]) -> tuple[Claim, ...]:
    """The claim with the names of arms instead of roles, once for each arm or pair of arms.

    A role that no run has stays as it is, and no run will meet it. Where there are several, their
    names tell the claims apart: `r2.c8.ratio@array-rdma`.
    """
    sides = (claim.numerator_arm, claim.denominator_arm)
    above, below = (_arms(side, claim, runs) for side in sides)
    pairs = [(one, other) for one in above for other in below]
    return tuple(
        replace(
            claim,
            claim_id=claim.claim_id if len(pairs) == 1 else _named(claim, one, other),
            numerator_arm=one or "",
            denominator_arm=other,
        )
        for one, other in pairs
    )


def of_reference(claim: Claim, judged: Claim, runs: Sequence[Run]) -> Claim:
    """The claim as reference runs meet it: by the same names, or by the one arm of each role."""
    found = addressed(claim, runs)
    arms = (judged.numerator_arm, judged.denominator_arm)
    same = (one for one in found if (one.numerator_arm, one.denominator_arm) == arms)
    return next(same, found[0] if len(found) == 1 else judged)


def _arms(side: str | None, claim: Claim, runs: Sequence[Run]) -> list[str | None]:
    if side is None or not side.startswith(ROLE_PREFIX):
        return [side]
    role = side.removeprefix(ROLE_PREFIX)
    names = sorted({run.arm for run in relevant(claim, runs) if run.role == role})
    return [*names] or [side]


def _named(claim: Claim, one: str | None, other: str | None) -> str:
    """The claim's id and the arms that a role stands for in it."""
    sides = ((claim.numerator_arm, one), (claim.denominator_arm, other))
    names = [name for side, name in sides if name and name != side]
    return f"{claim.claim_id}@{'/'.join(names)}"
