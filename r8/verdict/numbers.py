"""From blocks to one interval: what each kind of claim divides by what, and its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.claims.interpretation import interpreted
from r8.claims.reader import is_published
from r8.units import BYTES_PER_GB, gb_per_s, ms_from_ns, s_from_ns
from r8.verdict.intervals import (
    Interval,
    alpha_per_look,
    geometric_mean,
    log_interval,
    welch_interval,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from r8.model import Claim, Run
    from r8.verdict.session import Block, Session

PREDICTED = "predicted_ttft"
# The prediction adds the device's time to the warm TTFT, so the warm reads must have spent none: a
# tenth of the KV bytes is the most that is called warm (O_DIRECT readers exceed it by nature).
WARM_DEVICE_SHARE_MAX = 0.10
# One-sided kinds: more than claimed is reported, not failed.
ONE_SIDED = frozenset({"at-least", "prediction"})
PER_CENT = "%"
_CONVERSIONS: dict[tuple[str, str], Callable[[float], float]] = {
    ("ns", "s"): s_from_ns,
    ("ns", "ms"): ms_from_ns,
    ("tokens/s", "tok/s"): float,  # as the reports print it
    ("", "%"): lambda share: 100 * share,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the numbers of the blocks say about one claim."""

    estimate: float | None
    interval: Interval | None
    limits: tuple[float, float | None]  # the outcome compares the interval with these
    confidence: float  # of the interval as this kind of claim uses it
    estimator: str
    text: str  # the arithmetic in words
    missing: str | None = None  # the first number that is not there, and why


class _MissingNumberError(Exception):
    """A run without the number a claim needs."""


def read_numbers(
    session: Session,
    claim: Claim,
    blocks: Sequence[Block],
    reference: Session | None,
    reference_blocks: Sequence[Block],
) -> Reading:
    """The claim's estimate and interval over its blocks, with the limits they are held against."""
    alpha = alpha_per_look(claim.looks)
    try:
        values = [_block_value(session, claim, block) for block in blocks]
        if claim.kind == "prediction":
            return _prediction(session, claim, blocks, values, alpha)
        if claim.kind == "equivalence" and reference is not None:
            theirs = [_block_value(reference, claim, block) for block in reference_blocks]
            return _equivalence(claim, values, theirs, alpha)
    except _MissingNumberError as absent:
        return Reading(
            estimate=None,
            interval=None,
            limits=(0.0, None),
            confidence=0.0,
            estimator="",
            text="",
            missing=str(absent),
        )
    return _plain(claim, values, alpha)


def limits_of(claim: Claim) -> tuple[float, float | None]:
    """Lowest and highest value the claim allows, its tolerance applied; no highest: None."""
    claimed = claimed_ratio(claim, claim.low)
    low = claimed * (1 - claim.tolerance)
    if claim.kind in ONE_SIDED:
        return low, None
    high = claimed if claim.high is None else claimed_ratio(claim, claim.high)
    return low, high * (1 + claim.tolerance)


def claimed_ratio(claim: Claim, value: float) -> float:
    """A change in per cent as the ratio the arms must show; other units stay as they are.

    +29 % is 1.29 of the numerator over the denominator. A time that shrinks by 26 % is written with
    the slower arm above: 1 / 0.74. "16 % faster" is read as the claim says. A share of one arm
    alone is no change.
    """
    if claim.interpretation:
        return interpreted(claim.interpretation, value)
    if claim.unit != PER_CENT or claim.denominator_arm is None:
        return value
    return 1 + value / 100 if value >= 0 else 1 / (1 + value / 100)


def block_ratio(session: Session, block: Block, metric: str, statistic: str | None) -> float:
    """Numerator over denominator of one block, or the one arm's value, in the metric's own unit.

    Raises:
        _MissingNumberError: a run has no such number.

    """
    above = _number(session, block.numerator, metric, statistic)[0]
    if block.denominator is None:
        return above
    return above / _number(session, block.denominator, metric, statistic)[0]


def _block_value(session: Session, claim: Claim, block: Block) -> float:
    if block.denominator is not None:
        return block_ratio(session, block, claim.metric, claim.statistic)
    value, unit = _number(session, block.numerator, claim.metric, claim.statistic)
    if unit == claim.unit:
        return value
    if (unit, claim.unit) == ("bytes/s", "GB/s"):
        # A page's own GB where the ledger settled it: `r8 diff` divides by the same.
        return gb_per_s(value, claim.unit_base or BYTES_PER_GB)
    if (unit, claim.unit) not in _CONVERSIONS:
        raise _MissingNumberError(f"{claim.metric} is in {unit!r}, the claim in {claim.unit!r}")
    return _CONVERSIONS[unit, claim.unit](value)


def _number(session: Session, run: Run, metric: str, statistic: str | None) -> tuple[float, str]:
    found = session.value(run, metric, statistic)
    name = f"{metric} {statistic or ''}".strip()
    if found.value is None:
        raise _MissingNumberError(f"{run.run_id} has no {name}: {found.reason}")
    if not (math.isfinite(found.value) and found.value > 0):
        raise _MissingNumberError(f"{run.run_id}: {name} is {found.value}")
    return found.value, found.unit


def _plain(claim: Claim, values: list[float], alpha: float) -> Reading:
    """At-least, band and value claims: the blocks' own values against the claim's limits."""
    limits = limits_of(claim)
    interval = log_interval(values, alpha)
    estimate = geometric_mean(values)
    ratio = claim.interpretation or (claim.unit == PER_CENT and claim.denominator_arm)
    unit = "x" if ratio else claim.unit
    text = f"{_shown(estimate)} {unit}{_range(interval)}, claimed {claim.as_printed}"
    text += f", limit {_shown(limits[0])}"
    text += f" to {_shown(limits[1])}" if limits[1] is not None else " or more"
    if claim.kind == "value" and estimate is not None:
        text += f", deviation {(estimate - claim.low) / claim.low:+.2%}"
    if is_published(claim):
        text += "; point check: the published number carries no variance"
    return _reading(claim, estimate, interval, limits, alpha, text)


def _prediction(
    session: Session, claim: Claim, blocks: Sequence[Block], ratios: list[float], alpha: float
) -> Reading:
    """Measured ratio over predicted ratio, block by block."""
    for run in (run for block in blocks for run in block.runs):
        _require_warm(session, run)
    predicted = [block_ratio(session, block, PREDICTED, claim.statistic) for block in blocks]
    quotients = [ratio / expected for ratio, expected in zip(ratios, predicted, strict=True)]
    limits = limits_of(claim)
    interval = log_interval(quotients, alpha)
    estimate = geometric_mean(quotients)
    text = (
        f"measured {_shown(geometric_mean(ratios))} x{_range(log_interval(ratios, alpha))}, "
        f"predicted {_shown(geometric_mean(predicted))} x, measured / predicted "
        f"{_shown(estimate)}{_range(interval)}, limit {_shown(limits[0])} or more"
    )
    return _reading(claim, estimate, interval, limits, alpha, text)


def _require_warm(session: Session, run: Run) -> None:
    found = session.value(run, "device_read_bytes", phase="warm")
    if found.value is None:
        raise _MissingNumberError(f"{run.run_id}: device bytes of the warm reads: {found.reason}")
    limit = WARM_DEVICE_SHARE_MAX * run.expected_bytes
    if found.value > limit:
        raise _MissingNumberError(
            f"{run.run_id}: its warm reads took {found.value:.0f} B from the device, above "
            f"{limit:.0f} B: a prediction from them would count the device twice"
        )


def _equivalence(claim: Claim, ours: list[float], theirs: list[float], alpha: float) -> Reading:
    """Our blocks against the reference's blocks, both with their variance (TOST by Welch)."""
    interval = welch_interval(ours, theirs, alpha)
    mine, reference = geometric_mean(ours), geometric_mean(theirs)
    estimate = None if mine is None or reference is None else mine / reference
    limits = limits_of(claim)
    text = (
        f"{_shown(mine)} against reference {_shown(reference)} of {len(theirs)} blocks, "
        f"quotient {_shown(estimate)}{_range(interval)}, "
        f"limit {_shown(limits[0])} to {_shown(limits[1])}"
    )
    return _reading(claim, estimate, interval, limits, alpha, text)


def _reading(
    claim: Claim,
    estimate: float | None,
    interval: Interval | None,
    limits: tuple[float, float | None],
    alpha: float,
    text: str,
) -> Reading:
    one_sided = claim.kind in ONE_SIDED
    confidence = 1 - alpha if one_sided else 1 - 2 * alpha
    side = "one-sided" if one_sided else "two-sided"
    what = "paired log ratios" if claim.denominator_arm else "log values"
    method = "Welch t" if claim.kind == "equivalence" else "t"
    return Reading(
        estimate=estimate,
        interval=interval,
        limits=limits,
        confidence=confidence,
        estimator=f"geometric mean over blocks, {method} on {what}, {side} {confidence:.3g}",
        text=text,
    )


def _range(interval: Interval | None) -> str:
    return "" if interval is None else f" [{_shown(interval.low)}, {_shown(interval.high)}]"


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
