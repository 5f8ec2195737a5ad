"""The arithmetic of the cross-check: a client that is slow to stamp is seen."""

from __future__ import annotations

import pytest

from r8.lab.campaign.cross_check import OURS, THEIRS, Burst
from r8.scenarios.test_cross_check import TOLERANCE, compared, p50


def burst(tool: str, round_: int, *ttft_s: float, failed: int = 0) -> Burst:
    return Burst(
        tool=tool, round=round_, ttft_s=ttft_s, prompt_tokens=(788,) * len(ttft_s), failed=failed
    )


def test_the_median_is_one_of_the_values_and_not_between_two() -> None:
    assert p50([4.0, 1.0, 3.0, 2.0]) == 2.0
    assert p50([3.0, 1.0, 2.0]) == 2.0


@pytest.mark.parametrize(("late_s", "same"), [(0.02, True), (0.2, False), (-0.2, False)])
def test_clients_agree_within_the_tolerance_or_not(late_s: float, same: bool) -> None:  # noqa: FBT001
    found = [
        burst(tool, round_, 1.9 + shift, 2.0 + shift, 2.1 + shift)
        for round_ in (1, 2)
        for tool, shift in ((OURS, 0.0), (THEIRS, late_s))
    ]
    ratio, table = compared(found)
    assert ratio == pytest.approx((2.0 + late_s) / 2.0)
    assert (abs(ratio - 1) <= TOLERANCE) is same
    assert table.count(THEIRS) == 3, "each round and all of them together"


def test_requests_are_pooled_and_not_the_medians_of_rounds() -> None:
    found = [
        burst(OURS, 1, 1.0, 1.0, 9.0),
        burst(OURS, 2, 2.0, 9.0, 9.0),
        burst(THEIRS, 1, 2.0),
    ]
    assert compared(found)[0] == 1.0
