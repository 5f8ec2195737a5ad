"""Rounds against each other: a true A/A never deviates, a slower or faster device always does."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from r8.errors import UsageError
from r8.model import Basis, Outcome, Run
from r8.tests.run_factory import SyntheticRun, synthetic_run
from r8.tests.test_verdict import FakeSession, session_of
from r8.verdict_rounds import compare_sessions, round_claims, spread

BLOCKS = 5
# What blocks of one arm differed by in rehearsals: one to two per cent.
NOISE = 0.015


def round_of(campaign: str, seed: int, factor: float = 1.0) -> FakeSession:
    """Five blocks of one arm whose TTFT is 10 s, less noise, times a factor."""
    noise = random.Random(seed)  # noqa: S311
    runs: list[Run] = []
    for block in range(BLOCKS):
        spec = SyntheticRun(
            campaign_id=campaign,
            block=block,
            arm="patched",
            basis=Basis.MEASURED,
            rung="cluster",
            concurrency=16,
        )
        runs.append(replace(synthetic_run(spec), comparability={"platform": "P"}))
    values = [10.0 * factor * noise.lognormvariate(0, NOISE) for _ in range(BLOCKS)]
    return session_of(runs, {"patched": values})


def outcome(first: FakeSession, second: FakeSession) -> Outcome:
    found = {one.claim.metric: one for one in compare_sessions(first, second)}
    return found["ttft"].outcome


def test_a_true_a_a_never_deviates_in_twenty_of_twenty() -> None:
    found = [outcome(round_of("a", seed), round_of("b", 100 + seed)) for seed in range(20)]
    assert set(found) <= {Outcome.REPRODUCED, Outcome.INCONCLUSIVE}
    assert found.count(Outcome.REPRODUCED) > 10


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_a_fifth_slower_or_faster_deviates_in_twenty_of_twenty(factor: float) -> None:
    found = [outcome(round_of("a", seed), round_of("b", 100 + seed, factor)) for seed in range(20)]
    assert set(found) == {Outcome.DEVIATES}


def test_the_spread_is_the_largest_difference_of_each_metric() -> None:
    verdicts = compare_sessions(round_of("a", 1), round_of("b", 2, 1.2))
    assert spread(verdicts)["ttft"] == pytest.approx(0.2, abs=0.03)


def test_a_round_is_not_compared_with_itself() -> None:
    with pytest.raises(UsageError, match="campaign a is judged and a reference at once"):
        compare_sessions(round_of("a", 1), round_of("a", 2))


def test_a_recompute_arm_has_no_share_of_a_device() -> None:
    run = replace(synthetic_run(SyntheticRun()), arm="recompute", recompute=True)
    assert {claim.metric for claim in round_claims([run])} == {"ttft", "output_throughput"}
