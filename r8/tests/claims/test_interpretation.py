"""Two readings of "faster", and numbers that two printed figures imply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.claims.interpretation import derived_fault, read_as
from r8.claims.reader import load_claims, load_figures, read_claims
from r8.errors import UsageError
from r8.resources import published_path
from r8.verdict.numbers import claimed_ratio, limits_of

if TYPE_CHECKING:
    from pathlib import Path

FIGURES = load_figures(published_path("figures.csv"))
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
def test_faster_is_judged_in_the_reading_the_claim_is_labelled_with(
    claim_id: str, ratio: float
) -> None:
    (claim,) = (one for one in load_claims("r1-model-load") if one.claim_id == claim_id)
    assert claimed_ratio(claim, claim.low) == pytest.approx(ratio)
    assert claim.reading in claim.as_printed


def test_the_published_pair_implies_its_ratio_and_its_load_times() -> None:
    assert derived_fault("ratio", 1.3448, CITED, FIGURES) is None
    assert derived_fault("inverted load times", 1.4328, CITED, FIGURES) is None
    assert "not the ratio" in str(derived_fault("ratio", 1.4328, CITED, FIGURES))
    assert derived_fault("ratio", 1.3448, CITED[:1], FIGURES) is not None
    assert derived_fault("guess", 1.3448, CITED, FIGURES) is not None
    assert derived_fault("ratio", 1.0, ("r1.ckpt.size", "r1.ckpt.size"), FIGURES) is not None


def test_a_share_of_one_arm_is_no_change() -> None:
    (claim,) = (
        one for one in load_claims("r1-model-switch") if one.claim_id == "r1.switch.util.before"
    )
    low, high = limits_of(claim)
    assert low == pytest.approx(46.7 * 0.95)
    assert high == pytest.approx(46.7 * 1.05)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('reading = "time saved"\n', ""),
        ('reading = "time saved"', 'reading = "quicker"'),
        ("low = 16.0", "low = 17.0"),
    ],
)
def test_a_claim_without_its_reading_or_with_another_number_is_refused(
    tmp_path: Path, old: str, new: str
) -> None:
    text = published_path("claims-r1-model-load.toml").read_text()
    path = tmp_path / "claims.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError):
        read_claims(path, FIGURES)


def test_readings_are_no_other_than_the_two() -> None:
    with pytest.raises(KeyError):
        read_as("quicker", 16)
