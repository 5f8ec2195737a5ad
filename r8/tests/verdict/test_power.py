"""What so many blocks can tell: drawn campaigns judged by the intervals that judge real ones."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from r8.model import Outcome
from r8.tests.verdict.told_session import STEADY, blocks, ratio_claim, session_of, value_claim
from r8.verdict.intervals import log_interval, welch_interval
from r8.verdict.judge import outcome_of
from r8.verdict.numbers import limits_of
from r8.verdict.power import AT, BLOCKS_MAX, Pilot, assumed, blocks_for, chances, pilot_of

SAME = ratio_claim(kind="equivalence", low=1.0, tolerance=0.05, min_blocks=2, looks=1)
LEAST = ratio_claim(kind="at-least", low=1.0, tolerance=0.05, min_blocks=2, looks=1)


def counted(spread: float, ours: int, theirs: int, shift: float = 0.0) -> dict[Outcome, float]:
    """The outcomes of 1500 campaigns, each judged by the judge's own functions."""
    dice = random.Random(3)  # noqa: S311 - to be repeated
    found = dict.fromkeys(Outcome, 0.0)
    for _ in range(1500):
        mine = [math.exp(dice.gauss(shift, spread)) for _ in range(ours)]
        reference = [math.exp(dice.gauss(0, spread)) for _ in range(theirs)]
        interval = welch_interval(mine, reference)
        assert interval is not None
        found[outcome_of(interval, limits_of(SAME))] += 1 / 1500
    return found


@pytest.mark.parametrize(("spread", "ours", "theirs"), [(0.02, 3, 6), (0.02, 5, 5), (0.01, 3, 3)])
def test_the_chance_is_what_the_judge_says_of_drawn_campaigns(
    spread: float, ours: int, theirs: int
) -> None:
    found = chances(assumed(SAME, spread), ours, theirs)
    assert found.reproduced[0] == found.all_reproduced
    # Three standard errors of 1500 and of 4000 draws.
    assert found.all_reproduced == pytest.approx(
        counted(spread, ours, theirs)[Outcome.REPRODUCED], abs=0.045
    )
    for chance, told in zip(AT, found.told[0], strict=True):
        assert told is not None
        seen = counted(spread, ours, theirs, math.log1p(told))[Outcome.DEVIATES]
        assert seen == pytest.approx(chance, abs=0.045)


def test_a_claim_with_one_limit_stands_where_the_pilot_stood() -> None:
    def pilot(mean: float) -> Pilot:
        return replace(assumed(LEAST, 0.01), means=np.array([[mean]]))

    assert chances(pilot(0.5), 5, 5).all_reproduced == 1
    assert chances(pilot(-0.5), 5, 5).all_reproduced == 0
    # On its limit the claim is reproduced as often as the one-sided bound is wrong.
    edge = chances(pilot(math.log(0.95)), 5, 5)
    assert edge.all_reproduced == pytest.approx(0.05, abs=0.015)
    dice = random.Random(5)  # noqa: S311 - to be repeated
    drawn = [[math.exp(dice.gauss(0.1, 0.01)) for _ in range(5)] for _ in range(1500)]
    (told, _), *_ = chances(pilot(0.1), 5, 5).told
    assert told is not None
    moved = [log_interval([one * (1 - told) for one in values]) for values in drawn]
    refuted = sum(outcome_of(one, limits_of(LEAST)) is Outcome.DEVIATES for one in moved if one)
    assert refuted / 1500 == pytest.approx(AT[0], abs=0.045)


def test_claims_that_move_together_end_together() -> None:
    one = assumed(SAME, 0.02)
    twice = replace(
        one, claims=(SAME, SAME), within=np.repeat(one.within, 2, axis=1), means=np.zeros((1, 2))
    )
    each = np.kron(np.eye(2), one.within) * math.sqrt(3)
    apart = replace(twice, within=each.astype(np.float64))
    alone = chances(one, 3, 6).all_reproduced
    assert chances(twice, 3, 6).all_reproduced == pytest.approx(alone, abs=0.03)
    assert chances(apart, 3, 6).all_reproduced == pytest.approx(alone**2, abs=0.045)


def test_what_differs_between_campaigns_is_drawn_as_well() -> None:
    quiet = assumed(SAME, 0.005)
    moved = replace(quiet, within=np.tile(quiet.within, (2, 1)), means=np.array([[-0.02], [0.02]]))
    assert moved.campaign_spreads is not None
    assert float(moved.campaign_spreads[0]) == pytest.approx(0.0283, abs=0.0005)
    assert quiet.campaign_spreads is None
    assert chances(quiet, 3, 4).all_reproduced == 1
    assert chances(moved, 3, 4).all_reproduced < 0.8


@pytest.mark.parametrize("chance", AT)
def test_the_fewest_blocks_are_enough_and_one_less_is_not(chance: float) -> None:
    pilot = assumed(SAME, 0.02)
    blocks_needed = blocks_for(pilot, chance)
    assert blocks_needed is not None
    assert chances(pilot, blocks_needed, blocks_needed).all_reproduced >= chance
    fewer = blocks_needed - 1
    assert chances(pilot, fewer, fewer).all_reproduced < chance
    assert blocks_for(assumed(SAME, 0.4), chance) is None
    assert blocks_for(assumed(replace(SAME, min_blocks=7), 0.001), chance) == 7
    assert blocks_for(assumed(replace(SAME, min_blocks=BLOCKS_MAX + 1), 0.001), chance) is None


def test_an_honest_plan_ends_with_zero_at_the_promised_spreads() -> None:
    """1 % at three blocks and 2 % at five: nine of ten honest campaigns, against as many blocks."""
    for spread, blocks_planned in ((0.01, 3), (0.02, 5)):
        assert chances(assumed(SAME, spread), blocks_planned, blocks_planned).all_reproduced >= 0.9


def test_fewer_than_two_blocks_have_no_interval() -> None:
    for ours, theirs in ((1, 2), (2, 1)):
        with pytest.raises(ValueError, match="an interval needs two"):
            chances(assumed(SAME, 0.01), ours, theirs)
    told = chances(assumed(replace(SAME, min_blocks=3), 0.01), 2, 2)
    assert (told.all_reproduced, told.told) == (0, ((None, None),))


def test_a_pilot_is_what_every_whole_block_has_a_number_for() -> None:
    session = session_of(blocks(5), STEADY)
    pilot = pilot_of(session, [ratio_claim(), value_claim(), ratio_claim(metric="nothing")])
    assert pilot is not None
    assert [one.metric for one in pilot.claims] == ["ttft", "ttft"]
    assert pilot.within.shape == (5, 2)
    assert pilot.means.shape == (1, 2)
    assert pilot.within.sum(axis=0) == pytest.approx([0, 0])
    assert pilot_of(session, [ratio_claim(metric="nothing")]) is None
    assert pilot_of(session_of(blocks(1), STEADY), [ratio_claim()]) is None
