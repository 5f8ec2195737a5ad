"""Claims that compare: with a prediction, and with runs of a reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.errors import UsageError
from r8.message import Answer, Check
from r8.model import Claim, Outcome
from r8.tests.verdict.told_session import (
    STEADY,
    S,
    blocks,
    facts,
    ids,
    judged,
    ratio_claim,
    session_of,
)
from r8.verdict.judge import exit_code

if TYPE_CHECKING:
    from r8.model import Verdict


def prediction(factor: float, warm_device_bytes: float = 0.0) -> Verdict:
    session = session_of(blocks(3), STEADY)
    for run in session.runs:
        seconds = STEADY[run.arm][run.block] * (factor if run.arm == "unpatched" else 1)
        session.told[run.run_id, "predicted_ttft"] = (seconds * S, "ns")
        session.told[run.run_id, "device_read_bytes"] = (warm_device_bytes, "bytes")
    claim = ratio_claim(
        source="rehearsal", kind="prediction", low=1.0, tolerance=0.1, min_blocks=3, looks=1
    )
    return judged(session, claim)


def test_a_measured_ratio_of_nine_tenths_of_the_predicted_one_is_reproduced() -> None:
    verdict = prediction(1.05)
    assert verdict.outcome is Outcome.REPRODUCED
    assert verdict.confidence == pytest.approx(0.95)
    told = facts(verdict, "verdict-prediction")
    assert told["measured_value"] == pytest.approx(4.1, abs=0.05)
    assert told["predicted_value"] == pytest.approx(4.3, abs=0.05)
    assert exit_code([verdict]) == 0


def test_a_measured_ratio_below_nine_tenths_of_the_predicted_one_deviates() -> None:
    assert prediction(1.2).outcome is Outcome.DEVIATES


def test_a_prediction_from_warm_reads_that_touched_the_device_is_invalid() -> None:
    verdict = prediction(1.0, warm_device_bytes=1e9)
    assert verdict.outcome is Outcome.INVALID
    (warm,) = verdict.reasons
    assert isinstance(warm, Check)
    assert (warm.message, warm.measured, warm.unit) == ("verdict-warm-reads", 1e9, "bytes")


def equivalence_claim() -> Claim:
    return ratio_claim(source="reference", kind="equivalence", low=1.0, looks=1, min_blocks=3)


def test_equivalence_without_reference_runs_is_not_measured() -> None:
    verdict = judged(session_of(blocks(5), STEADY), equivalence_claim())
    assert verdict.outcome is Outcome.NOT_MEASURED
    assert ids(verdict) == ["verdict-no-reference"]


@pytest.mark.parametrize(
    ("factor", "outcome"), [(1.0, Outcome.REPRODUCED), (1.1, Outcome.DEVIATES)]
)
def test_equivalence_is_judged_against_the_references_own_blocks(
    factor: float, outcome: Outcome
) -> None:
    theirs = [replace(r, campaign_id="ref", run_id=r.run_id + "-ref") for r in blocks(5)]
    ttft = {"unpatched": [v * factor for v in STEADY["unpatched"]], "patched": STEADY["patched"]}
    reference = session_of(theirs, ttft)
    verdict = judged(session_of(blocks(5), STEADY), equivalence_claim(), reference)
    assert verdict.outcome is outcome
    assert facts(verdict, "verdict-equivalence")["reference_blocks"] == 5
    assert verdict.estimator == "welch-t-log-ratios-two-sided"


def test_an_invalid_reference_proves_nothing() -> None:
    theirs = [replace(r, campaign_id="ref", run_id=r.run_id + "-ref") for r in blocks(5)]
    reference = session_of(theirs, STEADY, C3=Answer.REFUTED)
    verdict = judged(session_of(blocks(5), STEADY), equivalence_claim(), reference)
    assert verdict.outcome is Outcome.INVALID


def test_a_campaign_is_never_its_own_reference() -> None:
    session = session_of(blocks(5), STEADY)
    with pytest.raises(UsageError, match="judged and a reference at once"):
        judged(session, equivalence_claim(), session)
