from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field

import pytest

from load_client.clock import STEP_TOLERANCE_NS, Clock, OffsetSample, clock_map, window
from load_client.record.capture import (
    Capture,
    Reads,
    arrivals,
    impossible_stamp,
    kernel_instants_ns,
    kernel_wall_ns,
    untrusted_kernel_clock,
)

S = 1_000_000_000
OFFSET = 1_700_000_000 * S


def sample(mono_ns: int, offset_ns: int = OFFSET) -> OffsetSample:
    return OffsetSample(mono_ns=mono_ns, offset_ns=offset_ns, width_ns=100)


Receive = tuple[int, int | None, bytes]


def capture(*receives: Receive, sent_ns: int = 10 * S) -> Capture:
    return Capture(
        request_id="r", instance="i", phase="measure", session=0, endpoint="completions",
        prompt_tokens_planned=1, output_tokens_planned=1, request_bytes=1, scheduled_ns=sent_ns,
        connected_ns=sent_ns, sent_ns=sent_ns, sent_done_ns=sent_ns, ended="eof",
        ended_ns=20 * S, ended_detail=None,
        reads=Reads(*map(list, zip(*receives, strict=True))),
    )  # fmt: skip


def read(arrived_ns: int, *, delay_ns: int = 5_000, wall_shift_ns: int = 0) -> Receive:
    return arrived_ns + delay_ns, arrived_ns + OFFSET + wall_shift_ns, b"x"


def distrust(*captures: Capture) -> str | None:
    instants_ns = [kernel_instants_ns(one, CLOCK) for one in captures]
    return untrusted_kernel_clock(captures, CLOCK, instants_ns)


def stamped(one: Capture) -> tuple[str, list[int]]:
    stamp, instants_ns = arrivals(one, kernel_instants_ns(one, CLOCK))
    return stamp, list(instants_ns)


CLOCK = clock_map([sample(10 * S), sample(20 * S)])


@dataclass
class InterruptedClocks:
    """Clocks at a fixed offset where all but one sandwich is interrupted for a millisecond."""

    good_try: int
    now_ns: int = 0
    calls: itertools.count[int] = field(default_factory=itertools.count)

    def mono_ns(self) -> int:
        self.now_ns += 100
        return self.now_ns

    def wall_ns(self) -> int:
        wall_ns = self.now_ns + OFFSET
        self.now_ns += 100 if next(self.calls) == self.good_try else 1_000_000
        return wall_ns


def test_the_narrowest_sandwich_gives_the_offset() -> None:
    clocks = InterruptedClocks(good_try=9)
    found = Clock(mono_ns=clocks.mono_ns, wall_ns=clocks.wall_ns).sample()
    assert found.width_ns == 200
    assert abs(found.offset_ns - OFFSET) <= 200


def test_the_real_clocks_of_this_host_agree_with_themselves() -> None:
    clock = Clock()
    assert not clock_map([clock.sample(), clock.sample()]).stepped


def test_a_drift_is_followed_by_a_straight_line() -> None:
    drifting = clock_map([sample(0), sample(10 * S, OFFSET + 10_000)])
    assert not drifting.stepped
    assert drifting.mono_ns(5 * S + OFFSET + 5_000) == pytest.approx(5 * S, abs=2)


@pytest.mark.parametrize("moved_ns", [-3600 * S, -60_000, 60_000, 3600 * S])
def test_an_offset_that_moved_is_a_step_even_when_it_came_back(moved_ns: int) -> None:
    stayed = clock_map([sample(0), sample(S, OFFSET + moved_ns)])
    came_back = clock_map([sample(0), sample(S, OFFSET + moved_ns), sample(2 * S)])
    assert stayed.stepped
    assert came_back.stepped


@pytest.mark.parametrize(("beyond_ns", "stepped"), [(0, False), (1, True)])
def test_an_offset_may_move_by_the_tolerance_and_both_widths(
    *, beyond_ns: int, stepped: bool
) -> None:
    moved_ns = STEP_TOLERANCE_NS + 2 * sample(0).width_ns + beyond_ns
    assert clock_map([sample(0), sample(S, OFFSET + moved_ns)]).stepped is stepped
    assert clock_map([sample(0), sample(S, OFFSET - moved_ns)]).stepped is stepped


def test_a_window_begins_with_the_last_sample_before_its_begin() -> None:
    samples = [sample(i * S) for i in range(5)]
    assert window(samples, 2 * S + 1) == samples[2:]
    assert window(samples, 0) == samples
    assert window(samples, None) == samples


def test_kernel_stamps_are_shifted_to_the_monotonic_clock() -> None:
    one = capture(read(11 * S), read(12 * S))
    assert distrust(one) is None
    assert stamped(one) == ("kernel", [11 * S, 12 * S])


def test_a_read_without_a_kernel_stamp_makes_the_whole_request_user_stamped() -> None:
    one = capture(read(11 * S), (12 * S, None, b"x"))
    assert stamped(one) == ("user", [11 * S + 5_000, 12 * S])


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (capture(read(11 * S, wall_shift_ns=STEP_TOLERANCE_NS + 6_000)), "after it was read"),
        (capture(read(11 * S, wall_shift_ns=3600 * S)), "after it was read"),
        (capture(read(11 * S, wall_shift_ns=-3600 * S)), "before it could arrive"),
        (capture(read(12 * S), read(12 * S, wall_shift_ns=-S, delay_ns=S)), "before it could"),
    ],
)
def test_impossible_kernel_stamps_are_not_used(one: Capture, why: str) -> None:
    reason = impossible_stamp(one, kernel_instants_ns(one, CLOCK))
    assert reason is not None
    assert why in reason
    assert distrust(capture(read(11 * S)), one) is not None


@pytest.mark.parametrize(("beyond_ns", "possible"), [(0, True), (1, False)])
def test_a_stamp_may_be_off_by_the_tolerance(*, beyond_ns: int, possible: bool) -> None:
    off_ns = STEP_TOLERANCE_NS + beyond_ns
    for one, instants_ns in (
        (capture(read(11 * S, delay_ns=0)), [11 * S + off_ns]),
        (capture(read(11 * S)), [10 * S - off_ns]),
        (capture(read(11 * S), read(12 * S)), [11 * S, 11 * S - off_ns]),
    ):
        assert (impossible_stamp(one, instants_ns) is None) is possible


def test_a_late_program_is_no_reason_to_distrust_the_kernel() -> None:
    one = capture(read(11 * S, delay_ns=3 * S))
    assert stamped(one) == ("kernel", [11 * S])
    assert distrust(one) is None


def test_a_timespec_is_nanoseconds_and_an_absent_one_is_none() -> None:
    assert kernel_wall_ns(struct.pack("@ll", 3, 7)) == 3 * S + 7
    assert kernel_wall_ns(b"") is None
