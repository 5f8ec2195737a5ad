"""From blocks to one interval: what each kind of claim divides by what, and its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.claims.interpretation import interpreted
from r8.claims.reader import is_published
from r8.message import Answer, Check, Message, parse_reason
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

    from r8.message import Facts
    from r8.model import Claim, Reason, Run
    from r8.verdict.session import Block, Session

PREDICTED = "predicted_ttft"
# The prediction adds the device's time to the warm TTFT, so the warm reads must have spent none: a
# tenth of the KV bytes is the most that is called warm (O_DIRECT readers exceed it by nature).
WARM_DEVICE_SHARE_MAX = 0.10
# One-sided kinds: more than claimed is reported, not failed.
ONE_SIDED = frozenset({"at-least", "prediction"})
PER_CENT = "%"
RATIO = "x"
# Unit of a quotient of two numbers of one unit, which is printed without one.
QUOTIENT = "quotient"
_CONVERSIONS: dict[tuple[str, str], Callable[[float], float]] = {
    ("ns", "s"): s_from_ns,
    ("ns", "ms"): ms_from_ns,
    ("tokens/s", "tok/s"): float,  # as the reports print it
    ("", "%"): lambda share: 100 * share,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the numbers of the blocks say about one claim."""

    estimate: float | None
    interval: Interval | None  # None: fewer than two blocks
    limits: tuple[float, float | None]  # the interval is held against these; no highest: None
    confidence: float  # of the interval as this kind of claim uses it
    estimator: str
    arithmetic: tuple[Reason, ...]  # what was divided by what; then the ends against the limits


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberMissing(Exception):  # noqa: N818  # an answer, not an error
    """A run lacks the number a claim needs, or has one that cannot be divided; and why."""

    reasons: tuple[Reason, ...]


def judge_numbers(
    session: Session,
    claim: Claim,
    blocks: Sequence[Block],
    reference: Session | None,
    reference_blocks: Sequence[Block],
) -> Judged:
    """The claim's estimate and interval over its blocks, with the limits they are held against.

    Raises:
        NumberMissing: a run has no such number.

    """
    alpha = alpha_per_look(claim.looks)
    values = [_block_value(session, claim, block) for block in blocks]
    if claim.kind == "prediction":
        return _prediction(session, claim, blocks, values, alpha)
    if claim.kind == "equivalence" and reference is not None:
        theirs = [_block_value(reference, claim, block) for block in reference_blocks]
        return _equivalence(claim, values, theirs, alpha)
    return _plain(claim, values, alpha)


def held_values(session: Session, claim: Claim, blocks: Sequence[Block]) -> list[float]:
    """What each block gives to be held against the claim's limits, or against a reference's blocks.

    Raises:
        NumberMissing: a run has no such number.

    """
    values = [_block_value(session, claim, block) for block in blocks]
    if claim.kind == "prediction":
        return _over(values, _predicted(session, claim, blocks))
    return values


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
        NumberMissing: a run has no such number.

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
        facts = {"metric": claim.metric, "unit": unit, "claimed": claim.unit}
        raise NumberMissing(reasons=(Message(id="verdict-other-unit", facts=facts),))
    return _CONVERSIONS[unit, claim.unit](value)


def _number(session: Session, run: Run, metric: str, statistic: str | None) -> tuple[float, str]:
    found = session.value(run, metric, statistic)
    name = f"{metric} {statistic or ''}".strip()
    if found.value is None:
        raise _absent(run, name, found.reason)
    if not (math.isfinite(found.value) and found.value > 0):
        facts: Facts = {"run": run.run_id, "metric": name, "value": found.value}
        raise NumberMissing(reasons=(Message(id="verdict-not-positive", facts=facts),))
    return found.value, found.unit


def _absent(run: Run, metric: str, reason: str | None) -> NumberMissing:
    absent = Message(id="verdict-no-number", facts={"run": run.run_id, "metric": metric})
    return NumberMissing(reasons=(absent, *([parse_reason(reason)] if reason else ())))


def _plain(claim: Claim, values: list[float], alpha: float) -> Judged:
    """At-least, band and value claims: the blocks' own values against the claim's limits."""
    interval = log_interval(values, alpha)
    estimate = geometric_mean(values)
    ratio = claim.interpretation or (claim.unit == PER_CENT and claim.denominator_arm)
    unit = RATIO if ratio else claim.unit or QUOTIENT
    facts = {"estimate_value": estimate, "claimed": claim.as_printed, **_ends(interval)}
    entry = "verdict-value" if interval else "verdict-value-alone"
    what: list[Reason] = [Message(id=entry, facts={**facts, "unit": unit})]
    if claim.kind == "value" and estimate is not None:
        deviation = (estimate - claim.low) / claim.low
        what.append(Message(id="verdict-deviation", facts={"from_deviation": deviation}))
    if is_published(claim):
        what.append(Message(id="verdict-point-check"))
    return _judged(claim, estimate, interval, alpha, what, unit)


def _prediction(
    session: Session, claim: Claim, blocks: Sequence[Block], ratios: list[float], alpha: float
) -> Judged:
    """Measured ratio over predicted ratio, block by block."""
    for run in (run for block in blocks for run in block.runs):
        _require_warm(session, run)
    predicted = _predicted(session, claim, blocks)
    quotients = _over(ratios, predicted)
    interval = log_interval(quotients, alpha)
    estimate = geometric_mean(quotients)
    of_measured = {
        f"measured_{name}": end for name, end in _ends(log_interval(ratios, alpha)).items()
    }
    facts = {
        "measured_value": geometric_mean(ratios),
        "predicted_value": geometric_mean(predicted),
        "estimate_value": estimate,
        "unit": QUOTIENT,
    }
    entry = "verdict-prediction" if interval else "verdict-prediction-alone"
    what = [Message(id=entry, facts={**facts, **of_measured, **_ends(interval)})]
    return _judged(claim, estimate, interval, alpha, what, QUOTIENT)


def _predicted(session: Session, claim: Claim, blocks: Sequence[Block]) -> list[float]:
    return [block_ratio(session, block, PREDICTED, claim.statistic) for block in blocks]


def _over(ratios: Sequence[float], predicted: Sequence[float]) -> list[float]:
    return [ratio / expected for ratio, expected in zip(ratios, predicted, strict=True)]


def _require_warm(session: Session, run: Run) -> None:
    found = session.value(run, "device_read_bytes", phase="warm")
    if found.value is None:
        raise _absent(run, "device_read_bytes (warm)", found.reason)
    warm = Check(
        quantity="device_read_bytes of the warm reads",
        measured=found.value,
        op="<=",
        limit=WARM_DEVICE_SHARE_MAX * run.expected_bytes,
        unit="bytes",
        message="verdict-warm-reads",
        facts={"run": run.run_id},
    )
    if warm.answer is not Answer.HELD:
        raise NumberMissing(reasons=(warm,))


def _equivalence(claim: Claim, ours: list[float], theirs: list[float], alpha: float) -> Judged:
    """Our blocks against the reference's blocks, both with their variance (TOST by Welch)."""
    interval = welch_interval(ours, theirs, alpha)
    mine, reference = geometric_mean(ours), geometric_mean(theirs)
    estimate = None if mine is None or reference is None else mine / reference
    facts = {
        "ours_value": mine,
        "reference_value": reference,
        "reference_blocks": len(theirs),
        "estimate_value": estimate,
        "unit": QUOTIENT,
    }
    entry = "verdict-equivalence" if interval else "verdict-equivalence-alone"
    what = [Message(id=entry, facts={**facts, **_ends(interval)})]
    return _judged(claim, estimate, interval, alpha, what, QUOTIENT)


def _ends(interval: Interval | None) -> dict[str, float | None]:
    if interval is None:
        return {"low_value": None, "high_value": None}
    return {"low_value": interval.low, "high_value": interval.high}


def _judged(
    claim: Claim,
    estimate: float | None,
    interval: Interval | None,
    alpha: float,
    what: Sequence[Reason],
    unit: str,
) -> Judged:
    one_sided = claim.kind in ONE_SIDED
    limits = limits_of(claim)
    method = "welch-t" if claim.kind == "equivalence" else "t"
    values = "log-ratios" if claim.denominator_arm else "log-values"
    return Judged(
        estimate=estimate,
        interval=interval,
        limits=limits,
        confidence=1 - alpha if one_sided else 1 - 2 * alpha,
        estimator=f"{method}-{values}-{'one-sided' if one_sided else 'two-sided'}",
        arithmetic=(*what, *_held_against(interval, limits, unit)),
    )


def _held_against(
    interval: Interval | None, limits: tuple[float, float | None], unit: str
) -> list[Check]:
    """The ends of the interval against the claim's limits; unknown where there is no interval."""
    low, high = limits
    ends = [
        Check(
            quantity="interval_low",
            measured=None if interval is None else interval.low,
            op=">=",
            limit=low,
            unit=unit,
            message="verdict-low-end",
            facts={"unit": unit},
        )
    ]
    if high is not None:
        ends.append(
            Check(
                quantity="interval_high",
                measured=None if interval is None else interval.high,
                op="<=",
                limit=high,
                unit=unit,
                message="verdict-high-end",
                facts={"unit": unit},
            )
        )
    return ends
