"""Two interpretations of "faster", and numbers that two printed figures imply."""

from __future__ import annotations

import pytest

from r8.claims.interpretation import DERIVED_TOLERANCE, derived_fault, interpreted
from r8.claims.ledger import load_ledger
from r8.claims.reader import load_claims
from r8.verdict.numbers import claimed_ratio, limits_of

LEDGER = load_ledger()
CITED = ("r1.switch.util.after", "r1.switch.util.before")


@pytest.mark.parametrize(
    ("claim_id", "ratio"),
    [
        ("r1.load.wall.time-saved", 1 / 0.84),
        ("r1.load.wall.speed-up", 1.16),
        ("r1.load.single.time-saved", 1 / 0.7),
        ("r1.load.single.speed-up", 1.3),
    ],
)
def test_faster_is_judged_in_the_interpretation_the_claim_is_labelled_with(
    claim_id: str, ratio: float
) -> None:
    (claim,) = (one for one in load_claims("r1-model-load") if one.claim_id == claim_id)
    assert claimed_ratio(claim, claim.low) == pytest.approx(ratio)
    assert claim.interpretation in claim.as_printed


def test_the_published_pair_implies_its_ratio_and_its_load_times() -> None:
    assert derived_fault("ratio", 1.3448, CITED, LEDGER) is None
    assert derived_fault("inverted load times", 1.4328, CITED, LEDGER) is None
    assert "not the ratio" in str(derived_fault("ratio", 1.4328, CITED, LEDGER))
    assert "no derivation" in str(derived_fault("ratio", 1.3448, CITED[:1], LEDGER))
    assert "no derivation" in str(derived_fault("guess", 1.3448, CITED, LEDGER))
    assert "of GB and GB" in str(derived_fault("ratio", 1, ["r1.ckpt.size"] * 2, LEDGER))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_derived_number_may_differ_by_its_last_printed_digit(sign: int) -> None:
    implied = 62.8 / 46.7
    within = implied + sign * DERIVED_TOLERANCE * 0.999
    beyond = implied + sign * DERIVED_TOLERANCE * 1.001
    assert derived_fault("ratio", within, CITED, LEDGER) is None
    assert derived_fault("ratio", beyond, CITED, LEDGER) is not None


def test_a_share_of_one_arm_is_no_change() -> None:
    (claim,) = (
        one for one in load_claims("r1-model-switch") if one.claim_id == "r1.switch.util.before"
    )
    low, high = limits_of(claim)
    assert low == pytest.approx(46.7 * 0.95)
    assert high == pytest.approx(46.7 * 1.05)


def test_interpretations_are_no_other_than_the_two() -> None:
    with pytest.raises(KeyError):
        interpreted("quicker", 16)
