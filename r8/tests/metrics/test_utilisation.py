"""The utilisation model: a share of an hour, falling in both arguments, and an error beyond it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r8.errors import MetricError
from r8.metrics.utilisation import CURVE, load_s_of, utilisation

SWITCHES = st.floats(min_value=0, max_value=60)
LOADS = st.floats(min_value=0, max_value=60)


@given(SWITCHES, LOADS)
def test_utilisation_is_a_share_of_the_hour(switches: float, load_s: float) -> None:
    assert 0 <= utilisation(switches, load_s) <= 1


@given(SWITCHES, SWITCHES, LOADS)
def test_more_switches_never_leave_more_of_the_hour(one: float, two: float, load_s: float) -> None:
    few, many = sorted((one, two))
    assert utilisation(many, load_s) <= utilisation(few, load_s)


@given(SWITCHES, LOADS, LOADS)
def test_a_slower_load_never_leaves_more_of_the_hour(n: float, one: float, two: float) -> None:
    fast, slow = sorted((one, two))
    assert utilisation(n, slow) <= utilisation(n, fast)


@given(st.floats(min_value=1, max_value=60), st.floats(min_value=0, max_value=1))
def test_a_load_time_read_from_a_utilisation_gives_it_back(n: float, used: float) -> None:
    assert utilisation(n, load_s_of(n, used) * (1 - 1e-12)) == pytest.approx(used, abs=1e-9)


@given(st.floats(min_value=1, max_value=1000), st.floats(min_value=1.001, max_value=1000))
def test_loads_longer_than_the_hour_are_an_error_that_says_so(n: float, factor: float) -> None:
    with pytest.raises(MetricError, match="more than the hour"):
        utilisation(n, 3600 / n * factor)


@pytest.mark.parametrize(("n", "load_s"), [(-1, 1), (1, -1), (float("nan"), 1), (1, float("inf"))])
def test_what_is_no_number_of_switches_or_seconds_is_refused(n: float, load_s: float) -> None:
    with pytest.raises(MetricError):
        utilisation(n, load_s)


def test_the_published_pair_is_two_load_times_thirty_per_cent_apart() -> None:
    before, after = load_s_of(20, 0.467), load_s_of(20, 0.628)
    assert before == pytest.approx(95.94)
    assert after == pytest.approx(66.96)
    assert 1 - after / before == pytest.approx(0.302, abs=0.001)
    assert (min(CURVE), max(CURVE)) == (1, 60)
