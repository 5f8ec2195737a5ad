"""How many blocks tell: the chance of each outcome before hours are spent, by simulation.

A pilot (the reference runs, or a campaign of one's own) gives what its blocks spread. Campaigns are
drawn from a normal law of the logarithms with that covariance over the claims, so that claims that
move together end together, and with the spread between the pilot's campaigns where it has several.
Each is judged by the formulas of `intervals`: own blocks against as many drawn reference blocks for
a claim of equivalence, own blocks against the claim's limits for every other.

Cannot show: what the pilot did not meet, another CPU or a neighbour among it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from r8.verdict.addressed import addressed
from r8.verdict.intervals import MIN_BLOCKS_FOR_INTERVAL, alpha_per_look, t_quantile
from r8.verdict.numbers import NumberMissing, held_values, limits_of
from r8.verdict.session import arms_of, blocks_of, relevant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from r8.model import Claim
    from r8.verdict.session import Session

    Floats = NDArray[np.float64]
    Moments = tuple[Floats, Floats, int]  # means, squared standard errors, blocks

# A chance of 0.9 is then known within 0.01 (two standard errors).
DRAWS = 4000
SEED = 17
# More blocks than anybody would run in one campaign: R2's take five hours then.
BLOCKS_MAX = 60
EQUIVALENCE = "equivalence"
# Chances that are usual in planning: what is seen in 80 and in 90 of 100 campaigns.
AT = (0.8, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """What claims did in the blocks of earlier campaigns."""

    claims: tuple[Claim, ...]
    within: Floats  # blocks x claims: logarithms less their campaign's mean
    means: Floats  # campaigns x claims: mean logarithms

    @property
    def spreads(self) -> Floats:
        """Standard deviation of one block's logarithm within a campaign, for each claim."""
        freedom = len(self.within) - len(self.means)
        found: Floats = np.sqrt((self.within**2).sum(axis=0) / freedom)
        return found

    @property
    def campaign_spreads(self) -> Floats | None:
        """The same between campaigns, what blocks alone explain taken off; None of one campaign."""
        if len(self.means) < MIN_BLOCKS_FOR_INTERVAL:
            return None
        each = len(self.within) / len(self.means)
        own = self.means.var(axis=0, ddof=1) - self.spreads**2 / each
        found: Floats = np.sqrt(np.maximum(0.0, own))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """What a plan of so many blocks tells about each claim of a pilot, if nothing deviates."""

    blocks: int
    reference_blocks: int
    reproduced: tuple[float, ...]  # chance for each claim, 0 to 1
    all_reproduced: float  # chance that every claim is: such a run ends with exit code 0
    # For each claim the share it must move by to be a deviation with each chance of `AT`; None: the
    # claim wants more blocks.
    told: tuple[tuple[float | None, ...], ...]


def pilot_of(session: Session, claims: Iterable[Claim]) -> Pilot | None:
    """The claims that every whole block of the session's campaigns has a number for; None: none."""
    asked = [one for claim in claims for one in addressed(claim, session.runs)]
    logs = [(claim, _logs(session, claim)) for claim in asked]
    logs = [(claim, found) for claim, found in logs if found]
    places = set.intersection(*({*found} for _, found in logs)) if logs else set()
    tables = [
        np.array([[found[at] for _, found in logs] for at in sorted(places) if at[0] == campaign])
        for campaign in sorted({campaign for campaign, _ in places})
    ]
    tables = [one for one in tables if len(one) >= MIN_BLOCKS_FOR_INTERVAL]
    if not tables:
        return None
    return Pilot(
        claims=tuple(claim for claim, _ in logs),
        within=np.concatenate([one - one.mean(axis=0) for one in tables]),
        means=np.array([one.mean(axis=0) for one in tables]),
    )


def assumed(claim: Claim, spread: float) -> Pilot:
    """A pilot nobody ran: one claim whose blocks spread so much (0.02 is 2 %)."""
    return Pilot(
        claims=(claim,),
        within=np.array([[spread / math.sqrt(2)], [-spread / math.sqrt(2)]]),
        means=np.zeros((1, 1)),
    )


def chances(pilot: Pilot, blocks: int, reference_blocks: int) -> Chances:
    """Draw campaigns of so many blocks and judge them.

    Raises:
        ValueError: fewer than two blocks have no interval.

    """
    if min(blocks, reference_blocks) < MIN_BLOCKS_FOR_INTERVAL:
        raise ValueError(f"{blocks} and {reference_blocks} blocks: an interval needs two")
    dice = np.random.default_rng(SEED)
    ours = _moments(pilot, blocks, 1, dice)
    theirs = _moments(pilot, reference_blocks, len(pilot.means), dice)
    inside, told = [], []
    for at, claim in enumerate(pilot.claims):
        low_end, high_end = _interval(pilot, at, ours, theirs)
        low, high = (_log(one) for one in limits_of(claim))
        enough = blocks >= claim.min_blocks
        inside.append((low_end >= low) & (high_end <= high) & enough)
        told.append([_told(low_end, high_end, (low, high), one) if enough else None for one in AT])
    return Chances(
        blocks=blocks,
        reference_blocks=reference_blocks,
        reproduced=tuple(float(one.mean()) for one in inside),
        all_reproduced=float(np.logical_and.reduce(inside).mean()),
        told=tuple(tuple(one) for one in told),
    )


def blocks_for(pilot: Pilot, chance: float, reference_blocks: int | None = None) -> int | None:
    """The fewest blocks at which every claim is reproduced with that chance.

    Without a number the reference has as many. None: `BLOCKS_MAX` are not enough.
    """

    def short(blocks: int) -> bool:
        return chances(pilot, blocks, reference_blocks or blocks).all_reproduced < chance

    # More blocks never make it worse, so halving finds the first that are enough.
    blocks = bisect_left(range(BLOCKS_MAX + 1), 0, MIN_BLOCKS_FOR_INTERVAL, key=lambda n: -short(n))
    return blocks if blocks <= BLOCKS_MAX else None


def _logs(session: Session, claim: Claim) -> dict[tuple[str, int], float]:
    """Logarithm of what each whole block gives the claim; empty where it is not measured."""
    runs = [run for run in relevant(claim, session.runs) if run.arm in arms_of(claim)]
    if {run.arm for run in runs} != set(arms_of(claim)):
        return {}
    blocks = blocks_of(claim, runs)[0]
    try:
        values = held_values(session, claim, blocks)
    except NumberMissing:
        return {}
    return {
        (block.campaign_id, block.block): math.log(value)
        for block, value in zip(blocks, values, strict=True)
    }


def _moments(pilot: Pilot, blocks: int, campaigns: int, dice: np.random.Generator) -> Moments:
    """Mean and squared standard error of so many drawn blocks: draws x claims each."""
    freedom = len(pilot.within) - len(pilot.means)
    normal = dice.standard_normal((DRAWS, blocks, len(pilot.within)))
    # Rows of residuals mixed by normal weights have the residuals' covariance, whatever its rank.
    drawn = normal @ (pilot.within / math.sqrt(freedom))
    if pilot.campaign_spreads is not None:
        shifts = (
            dice.standard_normal((DRAWS, campaigns, len(pilot.claims))) * pilot.campaign_spreads
        )
        drawn += shifts[:, np.arange(blocks) % campaigns]
    return drawn.mean(axis=1), drawn.var(axis=1, ddof=1) / blocks, blocks


def _interval(pilot: Pilot, at: int, ours: Moments, theirs: Moments) -> tuple[Floats, Floats]:
    """Both ends of the claim's interval in each draw, as `intervals` has them, in logarithms."""
    claim = pilot.claims[at]
    alpha = alpha_per_look(claim.looks)
    (mean, square, n), (their_mean, their_square, m) = (
        (one[0][:, at], one[1][:, at], one[2]) for one in (ours, theirs)
    )
    freedom: Floats | float = n - 1.0
    if claim.kind == EQUIVALENCE:
        mean = mean - their_mean
        total = square + their_square
        freedom = total**2 / (square**2 / (n - 1) + their_square**2 / (m - 1))
        square = total
    else:
        mean = mean + pilot.means[:, at].mean()
    half = t_quantile(alpha, freedom) * np.sqrt(square)
    return mean - half, mean + half


def _told(low_end: Floats, high_end: Floats, limits: tuple[float, float], chance: float) -> float:
    """The share by which a value must truly move to be a deviation in that many of the draws.

    The worse of both directions, where the claim has limits in both.
    """
    low, high = limits
    down = -math.expm1(-np.quantile(high_end - low, chance))
    return down if math.isinf(high) else max(down, math.expm1(np.quantile(high - low_end, chance)))


def _log(limit: float | None) -> float:
    return math.inf if limit is None else math.log(limit) if limit > 0 else -math.inf
