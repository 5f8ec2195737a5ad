from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r8.lab.rehearsal.shape import Line, Shape

MS = 1_000_000
S = 1_000_000_000


def test_one_transfer_takes_its_size_over_the_bandwidth_plus_the_latency() -> None:
    line = Line(100_000_000, 10 * MS)
    assert line.admit(1_000_000, now_ns=5 * S) == 5 * S + 10 * MS + 10 * MS


def test_transfers_in_flight_share_the_line_and_wait_out_their_latencies_together() -> None:
    line = Line(100_000_000, 80 * MS)
    due = [line.admit(1_000_000, now_ns=0) for _ in range(100)]
    assert due[-1] == 100 * 10 * MS + 80 * MS


def test_an_idle_line_saves_nothing_up_for_a_burst() -> None:
    line = Line(100_000_000, 0)
    line.admit(1_000_000, now_ns=0)
    assert line.admit(1_000_000, now_ns=S) == S + 10 * MS


def test_a_line_without_end_costs_its_latency_only() -> None:
    assert Line(None, 3 * MS).admit(10**12, now_ns=7) == 7 + 3 * MS


def test_a_change_takes_hold_with_the_next_transfer() -> None:
    line = Line(100_000_000, 0)
    line.admit(1_000_000, now_ns=0)
    line.set(50_000_000, 1 * MS)
    assert line.admit(1_000_000, now_ns=0) == 10 * MS + 20 * MS + 1 * MS


@given(
    late_ns=st.lists(st.integers(0, 5 * MS), min_size=50, max_size=200),
    window=st.integers(4, 64),
)
def test_late_sleepers_do_not_lower_the_sustained_bandwidth(
    late_ns: list[int], window: int
) -> None:
    """A reader that keeps a window in flight, and wakes late each time, still gets the line."""
    bandwidth, size = 200_000_000, 256 << 10
    line = Line(bandwidth, 6 * MS)
    finished: list[int] = []
    for index, late in enumerate(late_ns):
        now = finished[index - window] if index >= window else 0
        finished.append(line.admit(size, now) + late)
    # Longest gap the window must bridge: one latency, one oversleep, one transfer.
    transfer_ns = size * S // bandwidth
    if window * transfer_ns >= 6 * MS + 5 * MS + transfer_ns:
        ideal_ns = len(late_ns) * transfer_ns + 6 * MS
        assert max(finished) <= ideal_ns + 5 * MS


@pytest.mark.parametrize(
    "wrong",
    [
        {"read_bandwidth_bytes_per_s": 0},
        {"read_latency_ns": -1},
        {"write_bandwidth_bytes_per_s": 0},
        {"max_sectors_kib": 0},
    ],
)
def test_a_shape_that_would_never_answer_is_refused(wrong: dict[str, int]) -> None:
    right = {"read_bandwidth_bytes_per_s": 1, "read_latency_ns": 0}
    with pytest.raises(ValueError, match=r"bandwidth|latency|queue"):
        Shape(**{**right, **wrong})
