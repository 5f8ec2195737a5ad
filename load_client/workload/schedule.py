"""When the requests of an open loop are due: offsets from the start, in nanoseconds.

A pure function of the plan: every shard of it computes the whole schedule and takes its own part.
`constant` spaces evenly, `poisson` draws exponential gaps from the seed, a trace has timestamps.
"""

from __future__ import annotations

import math
import struct
from hashlib import shake_256
from typing import TYPE_CHECKING

from ..clock import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

_DRAW_BYTES = 8
_DRAW_END = float(1 << 64)


def constant_offsets(count: int, rate_per_s: float) -> list[int]:
    """`count` slots, the first at 0."""
    return [round(i * NS_PER_S / rate_per_s) for i in range(count)]


def poisson_offsets(count: int, rate_per_s: float, seed: int) -> list[int]:
    """`count` arrivals of a Poisson process; the first gap counts from 0."""
    digest = shake_256(f"arrivals/{seed}".encode("ascii")).digest(_DRAW_BYTES * count)
    offsets: list[int] = []
    now_ns = 0.0
    for draw in struct.unpack(f"<{count}Q", digest):
        # 1 - u lies in (0, 1]: its logarithm exists.
        now_ns -= math.log(1 - min(draw / _DRAW_END, 1 - 2**-53)) / rate_per_s * NS_PER_S
        offsets.append(round(now_ns))
    return offsets


def trace_offsets(stamps_ns: Sequence[int], time_scale: float) -> list[int]:
    """Offsets from the first stamp; `time_scale` 0.5 replays twice as fast."""
    return [round((stamp_ns - stamps_ns[0]) * time_scale) for stamp_ns in stamps_ns]
