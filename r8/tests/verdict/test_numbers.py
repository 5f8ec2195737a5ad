"""The arithmetic of a verdict at its limits: just below, at, and just above each of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from r8.message import Check
from r8.model import Outcome
from r8.tests.verdict.told_session import (
    STEADY,
    FakeSession,
    S,
    blocks,
    facts,
    ids,
    judged,
    ratio_claim,
    session_of,
    value_claim,
)
from r8.units import NS_PER_S
from r8.verdict.intervals import Interval
from r8.verdict.judge import outcome_of
from r8.verdict.numbers import QUOTIENT, RATIO, WARM_DEVICE_SHARE_MAX, claimed_ratio, limits_of

if TYPE_CHECKING:
    from r8.model import Claim, Verdict

TINY = 1e-9


def interval(low: float, high: float) -> Interval:
    return Interval(estimate=(low + high) / 2, low=low, high=high, alpha=0.05, n=5)


@pytest.mark.parametrize(
    ("low", "high", "limits", "outcome"),
    [
        (1.0, 1.2, (1.0, None), Outcome.REPRODUCED),
        (math.nextafter(1.0, 0), 1.2, (1.0, None), Outcome.INCONCLUSIVE),
        (0.8, 1.0, (1.0, None), Outcome.INCONCLUSIVE),
        (0.8, math.nextafter(1.0, 0), (1.0, None), Outcome.DEVIATES),
        (1.0, 1.5, (1.0, 1.5), Outcome.REPRODUCED),
        (1.0, math.nextafter(1.5, 2), (1.0, 1.5), Outcome.INCONCLUSIVE),
        (1.5, 1.8, (1.0, 1.5), Outcome.INCONCLUSIVE),
        (math.nextafter(1.5, 2), 1.8, (1.0, 1.5), Outcome.DEVIATES),
        (0.9, 1.6, (1.0, 1.5), Outcome.INCONCLUSIVE),
    ],
)
def test_an_interval_is_judged_by_both_of_its_ends(
    low: float, high: float, limits: tuple[float, float | None], outcome: Outcome
) -> None:
    assert outcome_of(interval(low, high), limits) is outcome


@pytest.mark.parametrize(
    ("changes", "limits"),
    [
        ({"low": 4.0, "tolerance": 0.05}, (3.8, None)),
        ({"kind": "prediction", "low": 1.0, "tolerance": 0.1}, (0.9, None)),
        ({"kind": "value", "low": 40.0, "tolerance": 0.05}, (38.0, 42.0)),
        ({"kind": "equivalence", "low": 1.0, "tolerance": 0.05}, (0.95, 1.05)),
        ({"kind": "band", "low": 1.25, "high": 1.5, "tolerance": 0.1}, (1.125, 1.65)),
        ({"kind": "band", "low": 20.0, "high": 50.0, "unit": "%", "tolerance": 0.0}, (1.2, 1.5)),
    ],
)
def test_the_tolerance_widens_each_limit_of_a_claim(
    changes: dict[str, Any], limits: tuple[float, float | None]
) -> None:
    low, high = limits_of(ratio_claim(**changes))
    assert low == pytest.approx(limits[0])
    assert high == (None if limits[1] is None else pytest.approx(limits[1]))


@pytest.mark.parametrize(
    ("value", "changes", "ratio"),
    [
        (0.0, {"unit": "%"}, 1.0),
        (29.0, {"unit": "%"}, 1.29),
        (-20.0, {"unit": "%"}, 1.25),
        (-0.5, {"unit": "%"}, 1 / 0.995),
        (29.0, {"unit": "%", "denominator_arm": None}, 29.0),
        (29.0, {"unit": "x"}, 29.0),
        (16.0, {"unit": "%", "interpretation": "speed-up"}, 1.16),
        (20.0, {"unit": "%", "interpretation": "time saved"}, 1.25),
    ],
)
def test_a_change_in_per_cent_is_a_ratio_of_two_arms(
    value: float, changes: dict[str, Any], ratio: float
) -> None:
    assert claimed_ratio(ratio_claim(**changes), value) == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("ratio", "outcome"),
    [
        (1.0 - TINY, Outcome.DEVIATES),
        (1.0, Outcome.REPRODUCED),
        (1.0 + TINY, Outcome.REPRODUCED),
    ],
)
def test_a_ratio_without_variance_is_judged_to_the_last_digit(
    ratio: float, outcome: Outcome
) -> None:
    told = {"unpatched": [ratio] * 5, "patched": [1.0] * 5}
    claim = ratio_claim(low=1.0, tolerance=0.0)
    assert judged(session_of(blocks(5), told), claim).outcome is outcome


def checks(verdict: Verdict) -> list[tuple[str, object, str, object]]:
    return [
        (one.quantity, one.measured, one.op, one.limit)
        for one in verdict.reasons
        if isinstance(one, Check)
    ]


def test_the_ends_of_the_interval_are_held_against_the_limits() -> None:
    session = session_of(blocks(5), STEADY)
    one_sided = judged(session, ratio_claim())
    assert checks(one_sided) == [("interval_low", one_sided.low, ">=", 4.1 * 0.95)]
    both = judged(session, ratio_claim(kind="band", low=4.0, high=4.2))
    assert checks(both) == [
        ("interval_low", both.low, ">=", 4.0 * 0.95),
        ("interval_high", both.high, "<=", 4.2 * 1.05),
    ]
    alone = judged(session_of(blocks(1), STEADY), ratio_claim(min_blocks=1))
    assert alone.outcome is Outcome.INCONCLUSIVE
    assert checks(alone)[1] == ("interval_low", None, ">=", 4.1 * 0.95)
    assert ids(alone)[:2] == ["verdict-blocks", "verdict-value-alone"]
    assert alone.confidence is None


@pytest.mark.parametrize(
    ("kind", "looks", "confidence", "estimator"),
    [
        ("at-least", 1, 0.95, "t-log-ratios-one-sided"),
        ("at-least", 2, 0.975, "t-log-ratios-one-sided"),
        ("value", 1, 0.90, "t-log-ratios-two-sided"),
        ("band", 2, 0.95, "t-log-ratios-two-sided"),
    ],
)
def test_looks_share_the_error_rate(
    kind: str, looks: int, confidence: float, estimator: str
) -> None:
    claim = ratio_claim(kind=kind, looks=looks, high=4.2 if kind == "band" else None)
    verdict = judged(session_of(blocks(5), STEADY), claim)
    assert verdict.confidence == pytest.approx(confidence)
    assert verdict.estimator == estimator


def test_the_value_of_one_arm_is_converted_into_the_claims_unit() -> None:
    session = session_of(blocks(5), STEADY)
    seconds = judged(session, value_claim())
    assert seconds.estimate == pytest.approx(38.04, abs=0.01)
    assert seconds.estimator == "t-log-values-two-sided"
    ms = judged(session, value_claim(unit="ms", low=37970.0))
    assert ms.estimate == pytest.approx(1000 * (seconds.estimate or 0))
    assert judged(session, value_claim(unit="ns")).estimate == pytest.approx(
        NS_PER_S * (seconds.estimate or 0)
    )
    other = judged(session, value_claim(unit="tok/s"))
    assert other.outcome is Outcome.INVALID
    wrong = {"metric": "ttft", "unit": "ns", "claimed": "tok/s"}
    assert facts(other, "verdict-other-unit") == wrong


@pytest.mark.parametrize(
    ("unit", "claimed", "base", "value"),
    [
        ("bytes/s", "GB/s", None, 2.0),
        ("bytes/s", "GB/s", 1 << 30, 2e9 / (1 << 30)),
        ("tokens/s", "tok/s", None, 2e9),
        ("", "%", None, 2e11),
    ],
)
def test_a_rate_is_read_in_the_unit_the_page_prints(
    unit: str, claimed: str, base: int | None, value: float
) -> None:
    session = session_of(blocks(2), STEADY)
    for run in session.runs:
        session.told[run.run_id, "ttft"] = (2e9, unit)
    claim = value_claim(unit=claimed, unit_base=base, low=value)
    assert judged(session, claim).estimate == pytest.approx(value)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_what_cannot_be_divided_is_no_number(value: float) -> None:
    session = session_of(blocks(5), STEADY)
    session.told["campaign-1-b3-patched-c16", "ttft"] = (value, "ns")
    verdict = judged(session, ratio_claim())
    assert verdict.outcome is Outcome.INVALID
    assert facts(verdict, "verdict-not-positive")["run"] == "campaign-1-b3-patched-c16"
    assert (verdict.n_blocks, verdict.estimate, verdict.estimator) == (5, None, "")


def warm(bytes_of_each: float | None, claim: Claim | None = None) -> Verdict:
    session = session_of(blocks(3), STEADY)
    for run in session.runs:
        session.told[run.run_id, "predicted_ttft"] = (STEADY[run.arm][run.block] * S, "ns")
        if bytes_of_each is None:
            del session.told[run.run_id, "device_read_bytes"]
        else:
            session.told[run.run_id, "device_read_bytes"] = (bytes_of_each, "bytes")
    wanted = ratio_claim(
        source="rehearsal", kind="prediction", low=1.0, tolerance=0.1, min_blocks=3, looks=1
    )
    return judged(session, claim or wanted)


LIMIT = WARM_DEVICE_SHARE_MAX * blocks(1)[0].expected_bytes


@pytest.mark.parametrize(
    ("size", "outcome"),
    [
        (math.nextafter(LIMIT, 0), Outcome.REPRODUCED),
        (LIMIT, Outcome.REPRODUCED),
        (math.nextafter(LIMIT, math.inf), Outcome.INVALID),
        (None, Outcome.INVALID),
    ],
)
def test_warm_reads_may_take_a_tenth_of_the_kv_from_the_device(
    size: float | None, outcome: Outcome
) -> None:
    assert WARM_DEVICE_SHARE_MAX == 0.10
    assert warm(size).outcome is outcome


def test_a_prediction_is_judged_by_measured_over_predicted() -> None:
    verdict = warm(0.0)
    told = facts(verdict, "verdict-prediction")
    assert verdict.estimate == pytest.approx(1.0)
    assert told["measured_value"] == pytest.approx(told["predicted_value"])
    assert told["measured_low_value"] < told["measured_value"] < told["measured_high_value"]
    assert told["low_value"] == verdict.low


def test_a_value_says_how_far_it_is_from_the_printed_one() -> None:
    told = {"unpatched": [22.0] * 5, "patched": [1.0] * 5}
    verdict = judged(session_of(blocks(5), told), value_claim(low=20.0))
    assert facts(verdict, "verdict-deviation")["from_deviation"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("printed", "unit"),
    [("%", RATIO), ("bytes", "bytes"), ("#", "#"), ("", QUOTIENT)],
)
def test_the_words_of_a_value_bear_its_unit(printed: str, unit: str) -> None:
    verdict = judged(session_of(blocks(5), STEADY), ratio_claim(kind="value", unit=printed))
    assert facts(verdict, "verdict-value")["unit"] == unit


def test_a_claim_of_r8s_own_has_no_point_check() -> None:
    verdict = judged(session_of(blocks(5), STEADY), ratio_claim(source="rehearsal"))
    assert "verdict-point-check" not in ids(verdict)


def reference(factor: float = 1.0, n: int = 5, **changes: Any) -> FakeSession:
    theirs = [
        replace(one, campaign_id="ref", run_id=one.run_id + "-ref", **changes) for one in blocks(n)
    ]
    ttft = {"unpatched": [v * factor for v in STEADY["unpatched"]], "patched": STEADY["patched"]}
    return session_of(theirs, ttft)


EQUIVALENCE = ratio_claim(source="reference", kind="equivalence", low=1.0, looks=1, min_blocks=2)


@pytest.mark.parametrize(
    ("factor", "outcome"),
    [
        (1 / 0.95 - TINY, Outcome.REPRODUCED),
        (1 / 0.95 + TINY, Outcome.DEVIATES),
        (1 / 1.05 + TINY, Outcome.REPRODUCED),
        (1 / 1.05 - TINY, Outcome.DEVIATES),
    ],
)
def test_equivalence_is_within_five_per_cent_on_both_sides(factor: float, outcome: Outcome) -> None:
    told = {"unpatched": [1.0] * 3, "patched": [1.0] * 3}
    theirs = [replace(one, campaign_id="r", run_id=one.run_id + "-r") for one in blocks(3)]
    other = session_of(theirs, {"unpatched": [factor] * 3, "patched": [1.0] * 3})
    assert judged(session_of(blocks(3), told), EQUIVALENCE, other).outcome is outcome


def test_the_quotient_is_ours_over_the_references() -> None:
    verdict = judged(session_of(blocks(5), STEADY), EQUIVALENCE, reference(0.8))
    assert verdict.estimate == pytest.approx(1.25)
    told = facts(verdict, "verdict-equivalence")
    assert told["ours_value"] == pytest.approx(1.25 * told["reference_value"])
    alone = judged(session_of(blocks(5), STEADY), EQUIVALENCE, reference(n=1))
    assert (alone.outcome, alone.low) == (Outcome.INCONCLUSIVE, None)
    assert ids(alone)[:2] == ["verdict-blocks", "verdict-equivalence-alone"]


def test_absolute_values_of_a_reference_need_its_keys_and_ratios_do_not() -> None:
    other = {"platform": "P", "model": "another"}
    ours, theirs = session_of(blocks(5), STEADY), reference(comparability=other)
    assert judged(ours, EQUIVALENCE, theirs).outcome is Outcome.REPRODUCED
    absolute = replace(EQUIVALENCE, denominator_arm=None, unit="ns")
    verdict = judged(ours, absolute, theirs)
    assert verdict.outcome is Outcome.NOT_COMPARABLE
    assert ids(verdict) == ["verdict-of-reference", "verdict-unlike"]
    fraction = replace(absolute, unit="")
    session, others = session_of(blocks(5), STEADY), reference(comparability=other)
    for one in (session, others):
        for run in one.runs:
            one.told[run.run_id, "ttft"] = (0.9, "")
    assert judged(session, fraction, others).outcome is Outcome.REPRODUCED
