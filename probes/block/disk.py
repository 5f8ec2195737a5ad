"""The disk probe: raw counters of the named block devices and of every layer below them.

One read of /proc/diskstats a sample. Sectors are 512 bytes whatever the device's own block size is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import reason_of
from ..kernel_files import KeptFile, counter_of, no_counter, read_whole
from ..probe import Context, Probe, Sampler, Status, Thread
from ..samples import Batch, Sample, Stopwatch, samples_of
from .topology import BLOCK_DEVICES, WatchedDevices, watched_devices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NAME = "disk"
COUNTERS = (
    *("reads", "reads_merged", "read_sectors", "read_ms"),
    *("writes", "writes_merged", "write_sectors", "write_ms"),
    *("in_flight", "io_ms", "weighted_io_ms"),
    *("discards", "discards_merged", "discard_sectors", "discard_ms"),
    *("flushes", "flush_ms"),
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


def _missing(reason: str) -> DiskLine:
    return DiskLine(missing=dict.fromkeys(COUNTERS, reason))


_ABSENT = _missing("absent: no line in diskstats")


def _line(values: list[bytes], *, torn: bool) -> DiskLine:
    count = len(values)
    if torn:
        return _missing("failed: the line has no end; its last number may be cut")
    if count not in _KNOWN_COUNTS and count < len(COUNTERS):
        return _missing(f"failed: a line of {count} counters fits no known kernel")
    counters: dict[str, int] = {}
    missing: dict[str, str] = {}
    for position, name in enumerate(COUNTERS):
        if position >= count:
            missing[name] = f"absent: this kernel gives {count} counters"
            continue
        value = counter_of(values[position])
        if value is None:
            missing[name] = no_counter(values[position])
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
            found[name] = _missing("failed: two lines carry this name")
            continue
        found[name] = _line(columns[_NAME_COLUMNS:], torn=number == len(lines) - 1)
    return found


class DiskSampler:
    """Counters of every watched device, with its `diskseq` read anew each time."""

    def __init__(self, watched: WatchedDevices, proc_root: Path) -> None:
        self._watched = watched
        self._file = KeptFile(str(proc_root / "diskstats"))

    def sample(self) -> Sequence[Batch]:
        """Every counter of every watched device, or the reason why it has none."""
        watch = Stopwatch()
        names = self._watched.names
        try:
            data = self._file.read()
        except OSError as error:
            found = dict.fromkeys(names, _missing(reason_of(error)))
        else:
            watch.stop()
            found = parse_diskstats(data, names)
        samples: list[Sample] = []
        with self._watched.lock:
            for name in sorted(names):
                samples += self._samples(name, found.get(name))
        return [watch.batch(NAME, samples)]

    def _samples(self, name: str, line: DiskLine | None) -> list[Sample]:
        epochs = self._watched.epochs
        if line is None:
            epochs.gone(name)
            line = _ABSENT
        causes = [self._watched.check_diskseq(name)]
        growing = {key: val for key, val in line.counters.items() if key not in GAUGES}
        if growing:
            causes.append(epochs.counters(name, growing))
        epoch = epochs.current(name)
        return samples_of(name, line.counters, reasons=line.missing, epoch=epoch, causes=causes)


def _start(context: Context) -> Mapping[str, Sampler]:
    watched = context.once(watched_devices)
    return {NAME: DiskSampler(watched, context.proc_root)} if watched else {}


def _check(context: Context) -> Status:
    data = read_whole(str(context.proc_root / "diskstats"))
    columns = [line.split() for line in data.splitlines()]
    names = frozenset(words[2].decode() for words in columns if len(words) >= _NAME_COLUMNS)
    lines = parse_diskstats(data, names)
    missing = {name for line in lines.values() for name in line.missing}
    if not lines:
        return Status(works="no", detail="absent: /proc/diskstats lists no device")
    detail = f"{len(lines)} devices, {len(COUNTERS) - len(missing)} of {len(COUNTERS)} counters"
    return Status(works="partly" if missing else "yes", detail=detail)


# Certificates rest on the counters of disks; what the other probes give is context and is coarser.
DISK = Probe(
    name=NAME,
    start=_start,
    check=_check,
    rate_hz=10.0,
    thread=Thread.URGENT,
    settings=(BLOCK_DEVICES,),
)
