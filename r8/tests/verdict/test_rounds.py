"""Rounds against each other: a true A/A never deviates, a slower or faster device always does."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from r8.errors import UsageError
from r8.model import Basis, Outcome, Run
from r8.roles import Role
from r8.tests.support.run_factory import SyntheticRun, synthetic_run
from r8.tests.verdict.told_session import FakeSession, session_of
from r8.verdict.rounds import compare_sessions, round_claims, spread

BLOCKS = 5
# TTFT p50 in s of the three blocks of an arm, as rehearsals of R1 on a shaped device recorded them
# (basis: modelled; two machines' loads, five arms). What they differ by inside an arm is the noise
# the synthetic rounds below are drawn from; nothing else of them is used.
RECORDED = (
    (9.046, 9.153, 8.981),
    (8.834, 8.955, 9.346),
    (45.674, 45.965, 44.926),
    (15.595, 16.642, 16.581),
    (14.910, 15.990, 15.902),
)


def residuals() -> list[float]:
    """Log deviations from each arm's own mean, widened by what the mean took of their spread."""
    found = []
    for values in RECORDED:
        logs = [math.log(value) for value in values]
        mean, widened = math.fsum(logs) / len(logs), math.sqrt(len(logs) / (len(logs) - 1))
        found += [(value - mean) * widened for value in logs]
    return found


def round_of(campaign: str, seed: int, factor: float = 1.0) -> FakeSession:
    """Synthetic: five blocks of one arm of 10 s TTFT times a factor, with recorded noise."""
    noise = random.Random(seed)  # noqa: S311
    runs: list[Run] = []
    for block in range(BLOCKS):
        spec = SyntheticRun(
            campaign_id=campaign,
            block=block,
            arm="patched",
            basis=Basis.MEASURED,
            fallback_level="cluster",
            concurrency=16,
        )
        runs.append(replace(synthetic_run(spec), comparability={"platform": "P"}))
    drawn = noise.choices(residuals(), k=BLOCKS)
    values = [10.0 * factor * math.exp(one) for one in drawn]
    return session_of(runs, {"patched": values})


def outcome(first: FakeSession, second: FakeSession) -> Outcome:
    found = {one.claim.metric: one for one in compare_sessions(first, second)}
    return found["ttft"].outcome


def test_a_true_a_a_never_deviates_in_twenty_of_twenty() -> None:
    found = [outcome(round_of("a", seed), round_of("b", 100 + seed)) for seed in range(20)]
    assert set(found) <= {Outcome.REPRODUCED, Outcome.INCONCLUSIVE}
    assert found.count(Outcome.REPRODUCED) >= 5, "a test that never says yes shows nothing"


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_a_fifth_slower_or_faster_deviates_in_twenty_of_twenty(factor: float) -> None:
    found = [outcome(round_of("a", seed), round_of("b", 100 + seed, factor)) for seed in range(20)]
    assert set(found) == {Outcome.DEVIATES}


def test_the_spread_is_the_largest_difference_of_each_metric() -> None:
    verdicts = compare_sessions(round_of("a", 1), round_of("b", 2, 1.2))
    assert spread(verdicts)["ttft p50"] == pytest.approx(0.2, abs=0.03)


def test_a_round_is_not_compared_with_itself() -> None:
    with pytest.raises(UsageError, match="campaign a is judged and a reference at once"):
        compare_sessions(round_of("a", 1), round_of("a", 2))


def test_a_recompute_arm_has_no_share_of_a_device() -> None:
    run = replace(synthetic_run(SyntheticRun()), arm="recompute", role=Role.RECOMPUTE)
    assert {claim.metric for claim in round_claims([run])} == {"ttft", "output_throughput"}


def test_a_round_is_equivalent_within_five_per_cent_from_two_blocks_on() -> None:
    claims = round_claims([synthetic_run(SyntheticRun(arm="patched"))])
    assert {one.tolerance for one in claims} == {0.05}
    assert {(one.low, one.high, one.min_blocks, one.looks) for one in claims} == {(1.0, None, 2, 1)}
    assert {one.as_printed for one in claims} == {"+-5%"}
    assert [(one.metric, one.statistic, one.unit) for one in claims] == [
        *(("ttft", "p50", "s"), ("ttft", "max", "s")),
        *(("output_throughput", "", "tokens/s"), ("ceiling_fraction", "mean", "")),
    ]


def test_the_spread_takes_the_larger_difference_of_either_sign() -> None:
    (verdict, *_) = compare_sessions(round_of("a", 1), round_of("b", 2))
    found = [replace(verdict, estimate=one) for one in (1.01, 0.97, 1.02, None)]
    assert spread(found) == {"ttft p50": pytest.approx(0.03)}
    assert spread([]) == {}


def test_p50_and_the_last_ttft_are_claims_of_their_own() -> None:
    names = [claim.claim_id for claim in round_claims([synthetic_run(SyntheticRun(arm="patched"))])]
    assert len(set(names)) == len(names)
    assert {"round.patched.c4.ttft.p50", "round.patched.c4.ttft.max"} <= set(names)
