"""What the wire showed of one request, and when: the only thing a burst leaves behind.

Rows are a pure function of captures and a clock map, so anyone can derive them again.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from operator import sub
from typing import TYPE_CHECKING, cast

from .clock import STEP_TOLERANCE_NS, ClockMap

if TYPE_CHECKING:
    from collections.abc import Sequence

NS_PER_S = 1_000_000_000
TIMESPEC = struct.Struct("@ll")  # what SO_TIMESTAMPNS hands over
KERNEL = "kernel"
USER = "user"


@dataclass(frozen=True, slots=True)
class Reads:
    """The successful receives of a response, as columns: one receive's figures share a place.

    The kernel stamp is that of the last packet in `data`.
    """

    user_ns: Sequence[int] = ()  # monotonic, just after the receive returned
    kernel_wall_ns: Sequence[int | None] = ()  # CLOCK_REALTIME
    data: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One request and the raw response: instants of the monotonic clock, None where it never came.

    `ended` says why reading stopped: `complete` (the body's own framing ended it), `eof`, `reset`,
    `timeout`, `connect` (never connected) or `interrupted`.
    """

    request_id: str
    instance: str
    phase: str
    session: int
    endpoint: str
    prompt_tokens_planned: int
    output_tokens_planned: int
    request_bytes: int
    scheduled_ns: int | None
    connected_ns: int | None
    sent_ns: int | None
    sent_done_ns: int | None
    ended: str
    ended_ns: int | None
    ended_detail: str | None
    reads: Reads
    path: str = "plain"  # plain, tls, proxy or proxy-tls


def kernel_wall_ns(timespec: bytes) -> int | None:
    """Nanoseconds of a SO_TIMESTAMPNS payload; None where the kernel gave none."""
    if len(timespec) < TIMESPEC.size:
        return None
    seconds, nanoseconds = TIMESPEC.unpack_from(timespec)
    return int(seconds) * NS_PER_S + int(nanoseconds)


def kernel_walls_ns(timespecs: bytes | bytearray) -> list[int | None]:
    """The same of many payloads behind one another; where the kernel gave none, zeros stand."""
    numbers = struct.unpack(f"@{len(timespecs) // TIMESPEC.size * 2}l", timespecs)
    return [
        seconds * NS_PER_S + nanoseconds if seconds else None
        for seconds, nanoseconds in zip(numbers[::2], numbers[1::2], strict=True)
    ]


def kernel_instants_ns(capture: Capture, clock: ClockMap) -> list[int] | None:
    """The monotonic instant of every read; None unless the kernel stamped all of them."""
    walls_ns = capture.reads.kernel_wall_ns
    if not walls_ns or None in walls_ns:
        return None
    return clock.monos_ns(cast("Sequence[int]", walls_ns))


def insane_stamp(
    capture: Capture, clock: ClockMap, instants_ns: list[int] | None = None
) -> str | None:
    """Why the kernel stamps of this capture cannot be right; None when they can.

    A packet arrives after the request was sent, before it is read, and not before its predecessor.
    `instants_ns` are its `kernel_instants_ns`, where somebody has them already.
    """
    if instants_ns is not None and _sane(capture, instants_ns):
        return None
    floor_ns = capture.sent_ns
    for user_ns, wall_ns in zip(capture.reads.user_ns, capture.reads.kernel_wall_ns, strict=True):
        if wall_ns is None:
            continue
        arrival_ns = clock.mono_ns(wall_ns)
        if arrival_ns > user_ns + STEP_TOLERANCE_NS:
            return f"stamped {arrival_ns - user_ns} ns after it was read"
        if floor_ns is not None and arrival_ns < floor_ns - STEP_TOLERANCE_NS:
            return f"stamped {floor_ns - arrival_ns} ns before it could arrive"
        floor_ns = arrival_ns
    return None


def _sane(capture: Capture, instants_ns: list[int]) -> bool:
    """Whether the rule of `insane_stamp` holds of all reads; it names the one that fails."""
    first_ns = instants_ns[0] if capture.sent_ns is None else capture.sent_ns
    waits_ns = map(sub, instants_ns, [first_ns, *instants_ns])
    ahead_ns = map(sub, instants_ns, capture.reads.user_ns)
    return bool(min(waits_ns) >= -STEP_TOLERANCE_NS and max(ahead_ns) <= STEP_TOLERANCE_NS)


def untrusted_kernel_clock(
    captures: Sequence[Capture], clock: ClockMap, instants_ns: Sequence[list[int] | None]
) -> str | None:
    """Why no kernel stamp of this burst is used; None when they are good.

    `instants_ns` holds the `kernel_instants_ns` of every capture.
    """
    if clock.stepped:
        return f"the wall clock was set during the burst (offset moved {clock.spread_ns} ns)"
    for capture, of_capture_ns in zip(captures, instants_ns, strict=True):
        reason = insane_stamp(capture, clock, of_capture_ns)
        if reason is not None:
            return f"kernel stamps of {capture.request_id} are impossible ({reason})"
    return None


def stamp_of(clock: str, way: str) -> str:
    """The name of a stamp: its clock, and the way where that is not plain TCP."""
    return clock if way == "plain" else f"{clock}-{way}"


def arrivals(capture: Capture, kernel_ns: list[int] | None) -> tuple[str, Sequence[int]]:
    """How arrivals were stamped, and the monotonic instant of every read.

    A way other than plain TCP is named beside the stamp: it has a calibration of its own.
    `kernel_ns` are the trusted `kernel_instants_ns`; without them user stamps stand for all reads:
    the two kinds are never mixed inside one request.
    """
    if kernel_ns is None:
        return stamp_of(USER, capture.path), capture.reads.user_ns
    return stamp_of(KERNEL, capture.path), kernel_ns
