"""Intervals over blocks."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import stats

from r8.verdict.intervals import (
    ALPHA,
    MIN_BLOCKS_FOR_INTERVAL,
    alpha_per_look,
    geometric_mean,
    log_interval,
    welch_interval,
)


def test_interval_of_three_ratios_is_the_t_interval_by_hand() -> None:
    interval = log_interval([4.0, 4.2, 4.1])
    assert interval is not None
    logs = [math.log(v) for v in (4.0, 4.2, 4.1)]
    mean = sum(logs) / 3
    sd = math.sqrt(sum((v - mean) ** 2 for v in logs) / 2)
    # t(0.95, 2) from a printed table
    half = 2.9199856 * sd / math.sqrt(3)
    assert interval.estimate == pytest.approx(math.exp(mean))
    assert interval.low == pytest.approx(math.exp(mean - half))
    assert interval.high == pytest.approx(math.exp(mean + half))
    assert interval.n == 3
    assert interval.one_sided_confidence == pytest.approx(0.95)
    assert interval.two_sided_confidence == pytest.approx(0.90)


def test_one_block_has_an_estimate_and_no_interval() -> None:
    assert log_interval([4.0]) is None
    assert geometric_mean([4.0]) == pytest.approx(4.0)


def test_no_block_has_neither() -> None:
    assert log_interval([]) is None
    assert geometric_mean([]) is None


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_value_without_logarithm_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="no logarithm"):
        log_interval([1.0, bad])


def test_two_looks_share_the_error_rate_and_widen_the_interval() -> None:
    assert alpha_per_look(2) == pytest.approx(0.025)
    one = log_interval([4.0, 4.2, 4.1, 4.3, 4.0], alpha_per_look(1))
    two = log_interval([4.0, 4.2, 4.1, 4.3, 4.0], alpha_per_look(2))
    assert one is not None
    assert two is not None
    assert two.low < one.low
    assert two.high > one.high


def test_a_plan_without_looks_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        alpha_per_look(0)


def test_welch_interval_is_wider_when_the_reference_is_noisy() -> None:
    ours = [1.00, 1.01, 0.99, 1.00, 1.00]
    calm = welch_interval(ours, [1.00, 1.01, 0.99, 1.00, 1.00])
    noisy = welch_interval(ours, [1.10, 0.90, 1.05, 0.95, 1.00])
    assert calm is not None
    assert noisy is not None
    assert calm.low > 0.95
    assert calm.high < 1.05
    assert noisy.low < 0.95


def test_welch_needs_two_blocks_on_each_side() -> None:
    assert welch_interval([1.0, 1.0], [1.0]) is None
    assert welch_interval([1.0], [1.0, 1.0]) is None


def test_welch_is_scipys_welch_on_the_logarithms() -> None:
    """Degrees of freedom and both ends, against another implementation."""
    ours, theirs = [1.02, 0.97, 1.05, 1.0, 0.99], [1.1, 0.9, 1.2]
    interval = welch_interval(ours, theirs, 0.025)
    test = stats.ttest_ind(np.log(ours), np.log(theirs), equal_var=False)
    ends = test.confidence_interval(0.95)
    assert interval is not None
    assert interval.low == pytest.approx(math.exp(ends.low))
    assert interval.high == pytest.approx(math.exp(ends.high))
    assert interval.estimate == pytest.approx(math.exp(np.log(ours).mean() - np.log(theirs).mean()))
    assert (interval.n, interval.alpha) == (3, 0.025)
    other = welch_interval(theirs, ours, 0.025)
    assert other is not None
    assert other.n == 3
    assert other.low == pytest.approx(1 / interval.high)


def test_the_error_rate_of_one_judgement_is_five_per_cent() -> None:
    assert alpha_per_look(1) == ALPHA == 0.05
    assert alpha_per_look(4) == pytest.approx(0.0125)
    assert MIN_BLOCKS_FOR_INTERVAL == 2
    assert log_interval([4.0, 4.2]) is not None


def test_identical_blocks_give_an_interval_without_width() -> None:
    interval = welch_interval([2.0, 2.0], [1.0, 1.0])
    assert interval is not None
    assert interval.low == interval.high == pytest.approx(2.0)


def test_coverage_of_the_lower_bound_is_what_it_says() -> None:
    # Five blocks with 3 % spread: a bound at 95 % lies above the truth in about 5 % of campaigns.
    draw = random.Random(8)  # noqa: S311  # a simulation, not a secret
    misses = 0
    for _ in range(1000):
        ratios = [4.1 * math.exp(draw.gauss(0, 0.03)) for _ in range(5)]
        interval = log_interval(ratios)
        assert interval is not None
        misses += interval.low > 4.1
    assert 0.03 < misses / 1000 < 0.07
