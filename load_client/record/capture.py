"""What one request leaves: when it was sent, and the bytes and instants of its response.

Rows are a pure function of captures and a clock map, so anyone can derive them again.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, cast

from ..clock import NS_PER_S, STEP_TOLERANCE_NS, ClockMap

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMESPEC = struct.Struct("@ll")  # what SO_TIMESTAMPNS hands over
KERNEL = "kernel"
USER = "user"
# How bytes get to the server; each way but the first has a calibration of its own.
WAYS = ("plain", "tls", "proxy", "proxy-tls")


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
    path: str = "plain"  # one of WAYS


def redacted(reads: Reads, key: str | None) -> Reads:
    """The reads with every byte of an API key as `*`, also where it spans reads; same sizes.

    A server may repeat the key in its answer, and the answer is kept.
    """
    if key is None:
        return reads
    secret = key.encode("ascii")
    whole = b"".join(reads.data)
    if secret not in whole:
        return reads
    whole = whole.replace(secret, b"*" * len(secret))
    borders = accumulate(map(len, reads.data), initial=0)
    return replace(reads, data=[whole[begin:end] for begin, end in pairwise(borders)])


def kernel_wall_ns(timespec: bytes) -> int | None:
    """Nanoseconds of a SO_TIMESTAMPNS payload; None where the kernel gave none."""
    return kernel_walls_ns(timespec)[0] if timespec else None


def kernel_walls_ns(timespecs: bytes | bytearray) -> list[int | None]:
    """The same of many payloads behind one another; zeros stand where the kernel gave none."""
    return [
        seconds * NS_PER_S + nanoseconds if seconds else None
        for seconds, nanoseconds in TIMESPEC.iter_unpack(timespecs)
    ]


def kernel_instants_ns(capture: Capture, clock: ClockMap) -> list[int] | None:
    """The monotonic instant of every read; None unless the kernel stamped all of them."""
    walls_ns = capture.reads.kernel_wall_ns
    if not walls_ns or None in walls_ns:
        return None
    return clock.monos_ns(cast("Sequence[int]", walls_ns))


def impossible_stamp(capture: Capture, instants_ns: Sequence[int] | None) -> str | None:
    """Why the kernel stamps of this capture cannot be right; None when they can.

    A packet arrives after the request was sent, before it is read, and not before its predecessor.
    `instants_ns` are the capture's `kernel_instants_ns`.
    """
    if instants_ns is None:
        return None
    earliest_ns = instants_ns[0] if capture.sent_ns is None else capture.sent_ns
    for user_ns, arrival_ns in zip(capture.reads.user_ns, instants_ns, strict=True):
        if arrival_ns > user_ns + STEP_TOLERANCE_NS:
            return f"stamped {arrival_ns - user_ns} ns after it was read"
        if arrival_ns < earliest_ns - STEP_TOLERANCE_NS:
            return f"stamped {earliest_ns - arrival_ns} ns before it could arrive"
        earliest_ns = arrival_ns
    return None


def untrusted_kernel_clock(
    captures: Sequence[Capture], clock: ClockMap, instants_ns: Sequence[list[int] | None]
) -> str | None:
    """Why no kernel stamp of this burst is used; None when they are good.

    `instants_ns` holds the `kernel_instants_ns` of every capture.
    """
    if clock.stepped:
        return f"the wall clock was set during the burst (offset moved {clock.spread_ns} ns)"
    for capture, of_capture_ns in zip(captures, instants_ns, strict=True):
        reason = impossible_stamp(capture, of_capture_ns)
        if reason is not None:
            return f"kernel stamps of {capture.request_id} are impossible ({reason})"
    return None


def stamp_of(clock: str, way: str) -> str:
    """The name of a stamp: its clock, and the way where that is not plain TCP."""
    return clock if way == "plain" else f"{clock}-{way}"


def arrivals(capture: Capture, kernel_ns: list[int] | None) -> tuple[str, Sequence[int]]:
    """How arrivals were stamped, and the monotonic instant of every read.

    `kernel_ns` are the trusted `kernel_instants_ns`; without them user stamps stand for all reads:
    the two kinds are never mixed inside one request.
    """
    if kernel_ns is None:
        return stamp_of(USER, capture.path), capture.reads.user_ns
    return stamp_of(KERNEL, capture.path), kernel_ns
