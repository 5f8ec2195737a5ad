"""/proc/diskstats as integers. Sectors are 512 bytes whatever the device's own block size is."""

from __future__ import annotations

from dataclasses import dataclass, field

from .kernel_files import counter_of

COUNTERS = (
    "reads",
    "reads_merged",
    "read_sectors",
    "read_ms",
    "writes",
    "writes_merged",
    "write_sectors",
    "write_ms",
    "in_flight",
    "io_ms",
    "weighted_io_ms",
    "discards",
    "discards_merged",
    "discard_sectors",
    "discard_ms",
    "flushes",
    "flush_ms",
)
# Requests in flight rise and fall; every other counter only grows.
GAUGES = frozenset({"in_flight"})
# 11 counters before kernel 4.18, 15 before 5.5, 17 since; later kernels may append more.
_KNOWN_COUNTS = (11, 15, 17)
_NAME_COLUMNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLine:
    """One device's counters, or why its line could not be read."""

    counters: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)  # counter -> reason


def _failed(reason: str) -> DiskLine:
    return DiskLine(missing=dict.fromkeys(COUNTERS, f"failed: {reason}"))


def _line(values: list[bytes], *, torn: bool) -> DiskLine:
    count = len(values)
    if torn:
        return _failed("the line has no end; its last number may be cut")
    if count not in _KNOWN_COUNTS and count < len(COUNTERS):
        return _failed(f"a line of {count} counters fits no known kernel")
    counters: dict[str, int] = {}
    missing: dict[str, str] = {}
    for position, name in enumerate(COUNTERS):
        if position >= count:
            missing[name] = f"absent: this kernel gives {count} counters"
            continue
        text = values[position]
        value = counter_of(text)
        if value is None:
            missing[name] = f"failed: {text.decode('ascii', 'replace')[:40]!r} is no counter"
        else:
            counters[name] = value
    return DiskLine(counters=counters, missing=missing)


def parse_diskstats(data: bytes, devices: frozenset[str]) -> dict[str, DiskLine]:
    """The lines of the named devices. A name that is not in the result has no line.

    A device whose name stands on two lines is unreadable: which one counts cannot be known.
    """
    found: dict[str, DiskLine] = {}
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        columns = line.split()
        if len(columns) < _NAME_COLUMNS:
            continue
        name = columns[2].decode("ascii", "replace")
        if name not in devices:
            continue
        if name in found:
            found[name] = _failed("two lines carry this name")
            continue
        found[name] = _line(columns[_NAME_COLUMNS:], torn=number == len(lines) - 1)
    return found
