"""Verdicts: the statistics, over a fake session that stands in where metrics are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from r8.errors import UsageError
from r8.message import Answer, Check, Message
from r8.model import Basis, Finding, KvRun, Outcome
from r8.report.words import render_reasons
from r8.tests.support.findings import finding_of
from r8.tests.verdict.told_session import (
    KEYS,
    STEADY,
    blocks,
    cluster_run,
    facts,
    ids,
    judged,
    ratio_claim,
    session_of,
    value_claim,
)
from r8.verdict.judge import exit_code, headline, ordered


def test_a_ratio_that_reaches_the_claim_is_reproduced() -> None:
    verdict = judged(session_of(blocks(5), STEADY), ratio_claim())
    assert verdict.outcome is Outcome.REPRODUCED
    assert verdict.estimate == pytest.approx(4.10, abs=0.02)
    assert verdict.low is not None
    assert verdict.low > 4.1 * 0.95
    assert verdict.confidence == pytest.approx(0.975)
    assert verdict.n_blocks == 5
    assert ids(verdict)[:2] == ["verdict-value", "verdict-point-check"]
    assert verdict.estimator == "t-log-ratios-one-sided"
    assert len(verdict.run_ids) == 10


def test_more_than_claimed_is_reproduced_too() -> None:
    slow = {"unpatched": [v * 2 for v in STEADY["unpatched"]], "patched": STEADY["patched"]}
    assert judged(session_of(blocks(5), slow), ratio_claim()).outcome is Outcome.REPRODUCED


def test_a_ratio_wholly_below_the_claim_deviates() -> None:
    fast = {"unpatched": [v / 2 for v in STEADY["unpatched"]], "patched": STEADY["patched"]}
    verdict = judged(session_of(blocks(5), fast), ratio_claim())
    assert verdict.outcome is Outcome.DEVIATES
    assert exit_code([verdict]) == 1


def test_noise_over_the_limit_is_inconclusive() -> None:
    noisy = {"unpatched": [30.0, 46.0, 38.0, 33.0, 44.0], "patched": STEADY["patched"]}
    verdict = judged(session_of(blocks(5), noisy), ratio_claim())
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert exit_code([verdict]) == 2


@pytest.mark.parametrize("n", [1, 4])
def test_too_few_blocks_are_inconclusive_however_good(n: int) -> None:
    verdict = judged(session_of(blocks(n), STEADY), ratio_claim())
    assert verdict.outcome is Outcome.INCONCLUSIVE
    enough = verdict.reasons[0]
    assert isinstance(enough, Check)
    assert (enough.message, enough.measured, enough.limit) == ("verdict-blocks", n, 5)
    assert verdict.estimate is not None


@pytest.mark.parametrize(
    ("factor", "outcome"),
    [(1.0, Outcome.REPRODUCED), (1.2, Outcome.DEVIATES), (0.8, Outcome.DEVIATES)],
)
def test_an_absolute_value_fails_in_both_directions(factor: float, outcome: Outcome) -> None:
    ttft = {arm: [v * factor for v in values] for arm, values in STEADY.items()}
    verdict = judged(session_of(blocks(5), ttft), value_claim())
    assert verdict.outcome is outcome
    deviation = (38.04 * factor - 37.97) / 37.97
    (said,) = [one for one in verdict.reasons if getattr(one, "id", "") == "verdict-deviation"]
    assert isinstance(said, Message)
    assert said.facts["from_deviation"] == pytest.approx(deviation, abs=1e-4)


def test_a_band_is_widened_by_its_tolerance_on_both_sides() -> None:
    session = session_of(blocks(5), STEADY)
    inside = ratio_claim(kind="band", low=4.2, high=4.3)
    assert judged(session, inside).outcome is Outcome.REPRODUCED
    outside = ratio_claim(kind="band", low=3.0, high=3.5)
    assert judged(session, outside).outcome is Outcome.DEVIATES


@pytest.mark.parametrize(
    ("per_cent", "ratio", "outcome"),
    [
        (29.0, 1.29, Outcome.REPRODUCED),
        (29.0, 1.10, Outcome.DEVIATES),
        # -26 % of the faster arm: the slower one takes 1 / 0.74 = 1.351 of it.
        (-26.0, 1.35, Outcome.REPRODUCED),
        (-26.0, 1.20, Outcome.DEVIATES),
    ],
)
def test_a_change_in_per_cent_is_judged_as_a_ratio(
    per_cent: float, ratio: float, outcome: Outcome
) -> None:
    told = {"unpatched": [10.0 * ratio] * 5, "patched": [10.0] * 5}
    claim = ratio_claim(low=per_cent, unit="%", tolerance=0.05)
    verdict = judged(session_of(blocks(5), told), claim)
    assert verdict.outcome is outcome, render_reasons(verdict.reasons)


def test_a_modelled_run_is_not_comparable_with_a_published_claim() -> None:
    runs = [replace(run, basis=Basis.MODELLED) for run in blocks(5)]
    verdict = judged(session_of(runs, STEADY), ratio_claim())
    assert verdict.outcome is Outcome.NOT_COMPARABLE
    assert facts(verdict, "verdict-basis") == {"run": "campaign-1-b0-unpatched-c16"}
    assert verdict.basis is Basis.MODELLED
    assert exit_code([verdict]) == 5


def test_a_rehearsal_on_an_unshaped_disk_is_not_comparable_either() -> None:
    runs = [replace(run, fallback_level="directory") for run in blocks(5)]
    verdict = judged(session_of(runs, STEADY), ratio_claim())
    assert verdict.outcome is Outcome.NOT_COMPARABLE
    assert facts(verdict, "verdict-fallback-level") == {"run": "campaign-1-b0-unpatched-c16"}


def test_a_differing_key_is_named_with_both_values() -> None:
    runs = [replace(run, comparability={**KEYS, "model": "other"}) for run in blocks(5)]
    session = session_of(runs, STEADY)
    verdict = judged(session, value_claim())
    assert verdict.outcome is Outcome.NOT_COMPARABLE
    (key,) = verdict.reasons
    assert isinstance(key, Check)
    assert (key.quantity, key.limit, key.measured) == ("model", "M", "other")
    assert judged(session, ratio_claim()).outcome is Outcome.REPRODUCED


def test_runs_of_another_workload_are_not_pooled() -> None:
    runs = blocks(5)
    last = runs[-1]
    assert isinstance(last, KvRun)
    runs[-1] = replace(last, expectation=replace(last.expectation, prompt_tokens=2049))
    verdict = judged(session_of(runs, STEADY), ratio_claim())
    assert verdict.outcome is Outcome.NOT_COMPARABLE
    (different,) = verdict.reasons
    assert isinstance(different, Check)
    assert (different.quantity, different.limit, different.measured) == (
        "prompt_tokens",
        1025,
        2049,
    )


def test_absolute_values_of_unlike_machines_are_not_pooled_and_ratios_are() -> None:
    """In a key the claim does not name: the array that one of the blocks ran on."""
    runs = [
        replace(run, comparability=KEYS | {"array": "old" if run.block else "new"})
        for run in blocks(5)
    ]
    session = session_of(runs, STEADY)
    verdict = judged(session, value_claim())
    assert verdict.outcome is Outcome.NOT_COMPARABLE
    (different,) = verdict.reasons
    assert isinstance(different, Check)
    assert (different.quantity, different.limit, different.measured) == ("array", "new", "old")
    assert judged(session, ratio_claim()).outcome is Outcome.REPRODUCED


@pytest.mark.parametrize("answer", [Answer.REFUTED, Answer.UNKNOWN])
def test_a_rule_that_is_not_held_makes_the_claim_invalid(answer: Answer) -> None:
    verdict = judged(session_of(blocks(5), STEADY, C4=answer), ratio_claim())
    assert verdict.outcome is Outcome.INVALID
    assert len(verdict.reasons) == 10
    first = verdict.reasons[0]
    assert isinstance(first, Finding)
    assert (first.rule_id, first.answer) == ("C4", answer)
    text = render_reasons(verdict.reasons)
    assert text.startswith("rule C4 in campaign-1-b0-unpatched-c16: ")
    assert text.endswith("; and 7 more findings")
    assert exit_code([verdict]) == 3


def test_what_explains_other_findings_comes_first_and_refuted_before_unknown() -> None:
    refuted, unknown = Answer.REFUTED, Answer.UNKNOWN
    found = [
        *(finding_of("C4", "run", unknown), finding_of("E1", "run", unknown)),
        *(finding_of("C1", "run", refuted), finding_of("Q1", "run", refuted)),
        *(finding_of("Q2", "run", refuted), finding_of("C3", "run", unknown)),
    ]
    assert [one.rule_id for one in ordered(found)] == ["Q1", "Q2", "C1", "E1", "C4", "C3"]


def test_a_model_of_what_was_measured_is_modelled_anywhere() -> None:
    verdict = judged(session_of(blocks(5), STEADY), value_claim(metric="utilisation_modelled"))
    assert verdict.basis is Basis.MODELLED
    assert judged(session_of(blocks(5), STEADY), value_claim()).basis is Basis.MEASURED
    assert judged(session_of([], STEADY), value_claim()).basis is Basis.MEASURED


@pytest.mark.parametrize(
    ("n", "outcome"),
    [(1, Outcome.INCONCLUSIVE), (2, Outcome.REPRODUCED), (3, Outcome.REPRODUCED)],
)
def test_the_fewest_blocks_of_a_plan_are_enough(n: int, outcome: Outcome) -> None:
    claim = ratio_claim(low=3.0, min_blocks=2, looks=1)
    assert judged(session_of(blocks(n), STEADY), claim).outcome is outcome


def test_a_claim_of_r8s_own_may_be_judged_on_a_rehearsal() -> None:
    runs = [replace(run, basis=Basis.MODELLED) for run in blocks(5)]
    verdict = judged(session_of(runs, STEADY), ratio_claim(source="rehearsal"))
    assert verdict.outcome is Outcome.REPRODUCED


def test_a_rule_that_does_not_apply_does_not_touch_the_claim() -> None:
    verdict = judged(session_of(blocks(5), STEADY, C4=Answer.NOT_APPLICABLE), ratio_claim())
    assert verdict.outcome is Outcome.REPRODUCED


def test_a_missing_number_is_invalid_and_named() -> None:
    session = session_of(blocks(5), STEADY)
    del session.told["campaign-1-b3-patched-c16", "ttft"]
    verdict = judged(session, ratio_claim())
    assert verdict.outcome is Outcome.INVALID
    assert ids(verdict) == ["verdict-no-number", "no_values"]
    absent = {"run": "campaign-1-b3-patched-c16", "metric": "ttft p50"}
    assert facts(verdict, "verdict-no-number") == absent


def test_an_infinite_percentile_is_no_number() -> None:
    session = session_of(blocks(5), STEADY)
    session.told["campaign-1-b3-patched-c16", "ttft"] = (float("inf"), "ns")
    assert judged(session, ratio_claim()).outcome is Outcome.INVALID


def test_no_run_of_an_arm_is_not_measured() -> None:
    verdict = judged(session_of(blocks(5), STEADY), ratio_claim(numerator_arm="upstream-4"))
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert facts(verdict, "verdict-no-arm") == {"arm": "upstream-4"}
    other = judged(session_of(blocks(5), STEADY), ratio_claim(level="c32"))
    assert other.outcome is Outcome.NOT_MEASURED


def test_an_incomplete_last_block_is_left_out_by_name() -> None:
    runs = [*blocks(5), cluster_run(5, "patched")]
    ttft = {arm: [*values, 1.0] for arm, values in STEADY.items()}
    verdict = judged(session_of(runs, ttft), ratio_claim())
    assert verdict.outcome is Outcome.REPRODUCED
    gap = {"campaign": "campaign-1", "block": 5, "arms": "unpatched"}
    assert facts(verdict, "verdict-left-out") == gap
    assert verdict.n_blocks == 5


def test_blocks_may_not_be_picked() -> None:
    runs = [run for run in blocks(5) if run.block != 2]
    verdict = judged(session_of(runs, STEADY), ratio_claim(min_blocks=2))
    assert verdict.outcome is Outcome.INVALID
    assert ids(verdict) == ["verdict-blocks-picked", "verdict-gap"]
    gap = {"campaign": "campaign-1", "block": 2, "arms": "unpatched, patched"}
    assert facts(verdict, "verdict-gap") == gap


def test_a_claim_of_any_level_refuses_to_mix_levels() -> None:
    runs = [*blocks(2), *[replace(r, run_id=r.run_id + "x", concurrency=8) for r in blocks(2)]]
    with pytest.raises(UsageError, match="meets levels c8, c16"):
        judged(session_of(runs, STEADY), ratio_claim(level="any"))


def test_the_worst_outcome_decides_the_exit_code() -> None:
    session = session_of(blocks(5), STEADY)
    good = judged(session, ratio_claim())
    codes = {outcome: exit_code([good, replace(good, outcome=outcome)]) for outcome in Outcome}
    assert codes == {
        Outcome.REPRODUCED: 0,
        Outcome.DEVIATES: 1,
        Outcome.INCONCLUSIVE: 2,
        Outcome.INVALID: 3,
        Outcome.NOT_COMPARABLE: 0,
        Outcome.NOT_MEASURED: 0,
    }
    assert exit_code([]) == 5
    assert headline([good]) == "1 claims: 1 REPRODUCED"
    invalid = replace(good, outcome=Outcome.INVALID)
    assert headline([good, invalid, good]) == "3 claims: 2 REPRODUCED, 1 INVALID"
    assert headline([]) == "0 claims: none"
    deviates, noisy = (
        replace(good, outcome=one) for one in (Outcome.DEVIATES, Outcome.INCONCLUSIVE)
    )
    assert [exit_code(one) for one in ([noisy, deviates], [deviates, invalid])] == [1, 3]
