"""The only place that converts units. Inside R8: integers of nanoseconds and of bytes."""

from __future__ import annotations

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
BYTES_PER_GB = 1_000_000_000
BYTES_PER_MB = 1_000_000
BYTES_PER_GBIT = 125_000_000
BYTES_PER_GIB = 1 << 30
BYTES_PER_MIB = 1 << 20
# The kernel counts block IO in units of 512 bytes whatever the device's own block size is.
BYTES_PER_SECTOR = 512


def s_from_ns(duration_ns: float) -> float:
    """Seconds from nanoseconds."""
    return duration_ns / NS_PER_S


def ms_from_ns(duration_ns: float) -> float:
    """Milliseconds from nanoseconds."""
    return duration_ns / NS_PER_MS


def gb_per_s(rate_bytes_per_s: float, gb_bytes: int = BYTES_PER_GB) -> float:
    """Gigabytes per second: decimal ones, or those a page prints (`unit_base` of the ledger)."""
    return rate_bytes_per_s / gb_bytes


def mb_per_s(rate_bytes_per_s: float) -> float:
    """Decimal megabytes per second."""
    return rate_bytes_per_s / BYTES_PER_MB
