"""Intervals over blocks: t on log ratios, one-sided bounds, and equivalence by two one-sided tests.

The unit is the block, never the request: requests of one burst share one queue. With five blocks a
percentile bootstrap covers far less than it promises, so nothing here resamples. Every function
takes positive finite values; fewer than two of them have no interval, and the answer is `None`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

# The error rate of one judgement: one-sided 95 % bounds, and so two-sided 90 % intervals.
ALPHA = 0.05
MIN_BLOCKS_FOR_INTERVAL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A geometric mean with its two-sided interval; each end is also a one-sided bound."""

    estimate: float
    low: float
    high: float
    alpha: float  # error rate of each end
    n: int

    @property
    def two_sided_confidence(self) -> float:
        """Coverage of low..high together, for example 0.90."""
        return 1 - 2 * self.alpha

    @property
    def one_sided_confidence(self) -> float:
        """Coverage of low, or of high, alone, for example 0.95."""
        return 1 - self.alpha


def alpha_per_look(looks: int, alpha: float = ALPHA) -> float:
    """Error rate of one look when a plan allows `looks` of them: the rate is split evenly.

    Raises:
        ValueError: fewer than one look.

    """
    if looks < 1:
        raise ValueError(f"{looks} looks: a plan has at least one")
    return alpha / looks


def geometric_mean(values: Sequence[float]) -> float | None:
    """Geometric mean of positive values; `None` of none.

    Raises:
        ValueError: a value is not positive and finite.

    """
    logs = _logs(values)
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def log_interval(values: Sequence[float], alpha: float = ALPHA) -> Interval | None:
    """Interval by t of the geometric mean of `values` (paired ratios, or one arm's block values).

    Formula: exp(mean(log v) +- t(1 - alpha, n - 1) * sd(log v) / sqrt(n)).

    Raises:
        ValueError: a value is not positive and finite.

    """
    logs = _logs(values)
    if len(logs) < MIN_BLOCKS_FOR_INTERVAL:
        return None
    mean, variance = _mean_and_variance(logs)
    half = float(t_quantile(alpha, len(logs) - 1)) * math.sqrt(variance / len(logs))
    return Interval(
        estimate=math.exp(mean),
        low=math.exp(mean - half),
        high=math.exp(mean + half),
        alpha=alpha,
        n=len(logs),
    )


def welch_interval(
    measured: Sequence[float], reference: Sequence[float], alpha: float = ALPHA
) -> Interval | None:
    """Interval of measured / reference with both sides' own variance (Welch-Satterthwaite).

    Equivalence within a tolerance (TOST) is exactly that this interval lies inside
    1 - tolerance .. 1 + tolerance. `n` is the smaller of the two sample sizes.

    Raises:
        ValueError: a value is not positive and finite.

    """
    ours, theirs = _logs(measured), _logs(reference)
    if min(len(ours), len(theirs)) < MIN_BLOCKS_FOR_INTERVAL:
        return None
    our_mean, our_variance = _mean_and_variance(ours)
    their_mean, their_variance = _mean_and_variance(theirs)
    a, b = our_variance / len(ours), their_variance / len(theirs)
    half = 0.0
    if a + b > 0:
        degrees = (a + b) ** 2 / (a**2 / (len(ours) - 1) + b**2 / (len(theirs) - 1))
        half = float(t_quantile(alpha, degrees)) * math.sqrt(a + b)
    difference = our_mean - their_mean
    return Interval(
        estimate=math.exp(difference),
        low=math.exp(difference - half),
        high=math.exp(difference + half),
        alpha=alpha,
        n=min(len(ours), len(theirs)),
    )


def _logs(values: Sequence[float]) -> list[float]:
    bad = [value for value in values if not (math.isfinite(value) and value > 0)]
    if bad:
        raise ValueError(f"no logarithm of {bad[0]}: a ratio needs positive finite values")
    return [math.log(value) for value in values]


def _mean_and_variance(logs: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(logs) / len(logs)
    return mean, math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1)


def t_quantile(alpha: float, degrees: ArrayLike) -> Any:
    """The value that Student's t of so many degrees of freedom exceeds with chance `alpha`."""
    # What scipy.stats.t.ppf calls, without half a second of importing scipy.stats.
    from scipy import special  # noqa: PLC0415 - a fifth of the start of verbs that judge nothing

    return special.stdtrit(degrees, 1 - alpha)
