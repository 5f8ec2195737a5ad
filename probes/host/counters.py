"""The host probe: CPU time, memory, pressure, paging. Context for a verdict, never its basis.

Units as the kernel counts them: CPU in jiffies (`clk_tck_hz` a second), pressure in microseconds,
vmstat in pages except `pgpgin` and `pgpgout`, which are KiB. Memory is converted from kB to bytes.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import reason_of
from ..kernel_files import counter_of, no_counter, read_whole, read_word
from ..probe import Context, Probe, Sampler, Status, Thread
from ..samples import Batch, Sample, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME = "host"
_CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_MEMORY = {
    "MemTotal": "mem_total_bytes",
    "MemFree": "mem_free_bytes",
    "MemAvailable": "mem_available_bytes",
    "Buffers": "mem_buffers_bytes",
    "Cached": "mem_cached_bytes",
    "Dirty": "mem_dirty_bytes",
    "Writeback": "mem_writeback_bytes",
    "AnonPages": "mem_anon_bytes",
    "Shmem": "mem_shmem_bytes",  # /dev/shm: a cache that page-cache tools cannot see
    "Hugetlb": "mem_hugetlb_bytes",  # likewise
    "Unevictable": "mem_unevictable_bytes",
    "SwapTotal": "mem_swap_total_bytes",
    "SwapFree": "mem_swap_free_bytes",
}
_VMSTAT = {
    "pgpgin": "vmstat_pgpgin_kib",
    "pgpgout": "vmstat_pgpgout_kib",
    "pswpin": "vmstat_pswpin_pages",
    "pswpout": "vmstat_pswpout_pages",
    "pgmajfault": "vmstat_pgmajfault",
    "workingset_refault_file": "vmstat_workingset_refault_file_pages",
    "workingset_refault_anon": "vmstat_workingset_refault_anon_pages",
}
_PRESSURE = ("io", "cpu", "memory")
_LOADS = ("load_1m", "load_5m", "load_15m")
_BYTES_PER_KB = 1024
_NOT_THERE = "absent: not in this kernel's file"


def _integer(text: bytes, counter: str, scale: int = 1) -> Sample:
    value = counter_of(text, scale)
    if value is None:
        return _without(counter, no_counter(text))
    return Sample(device="-", counter=counter, value=value)


def _without(counter: str, reason: str = _NOT_THERE) -> Sample:
    return Sample(device="-", counter=counter, reason=reason)


def parse_cpu(data: bytes) -> list[Sample]:
    """The line of all CPUs together in /proc/stat."""
    lines = [line.split() for line in data.split(b"\n")[:-1] if line.startswith(b"cpu ")]
    values = lines[0][1:] if lines else []
    return [
        _integer(values[position], f"cpu_{mode}_jiffies")
        if position < len(values)
        else _without(f"cpu_{mode}_jiffies")
        for position, mode in enumerate(_CPU_MODES)
    ]


def _named_lines(data: bytes) -> dict[bytes, list[bytes]]:
    # The last piece has no newline behind it: its number may be cut.
    lines = (line.split() for line in data.split(b"\n")[:-1])
    return {columns[0].rstrip(b":"): columns[1:] for columns in lines if columns}


def _picked(data: bytes, names: dict[str, str], scale: int, unit: bytes | None) -> list[Sample]:
    lines = _named_lines(data)
    samples = []
    for name, counter in names.items():
        values = lines.get(name.encode())
        if not values:
            samples.append(_without(counter))
        elif unit is not None and values[1:] != [unit]:
            samples.append(_without(counter, f"failed: the unit is not {unit.decode()}"))
        else:
            samples.append(_integer(values[0], counter, scale))
    return samples


def parse_meminfo(data: bytes) -> list[Sample]:
    """/proc/meminfo in bytes."""
    return _picked(data, _MEMORY, _BYTES_PER_KB, b"kB")


def parse_vmstat(data: bytes) -> list[Sample]:
    """/proc/vmstat."""
    return _picked(data, _VMSTAT, 1, None)


def parse_pressure(data: bytes, resource: str) -> list[Sample]:
    """Total stall time of one /proc/pressure file; `full` of cpu is absent on older kernels."""
    lines = _named_lines(data)
    samples = []
    for share in ("some", "full"):
        counter = f"psi_{resource}_{share}_total_us"
        totals = [part for part in lines.get(share.encode(), []) if part.startswith(b"total=")]
        if totals:
            samples.append(_integer(totals[0].removeprefix(b"total="), counter))
        else:
            samples.append(_without(counter))
    return samples


def parse_loadavg(data: bytes) -> list[Sample]:
    """Run-queue averages; they are not integers at their source."""
    words = data.split()
    samples = []
    for position, counter in enumerate(_LOADS):
        word = words[position] if position < len(words) else b""
        if word.replace(b".", b"", 1).isdigit():
            samples.append(Sample(device="-", counter=counter, value=float(word)))
        else:
            samples.append(_without(counter))
    return samples


class HostSampler:
    """Seven small kernel files a sample. What is constant is written with the first one."""

    def __init__(self, proc_root: Path = Path("/proc")) -> None:
        self._sources: list[tuple[str, Callable[[bytes], list[Sample]]]] = [
            (str(proc_root / "stat"), parse_cpu),
            (str(proc_root / "meminfo"), parse_meminfo),
            (str(proc_root / "vmstat"), parse_vmstat),
            (str(proc_root / "loadavg"), parse_loadavg),
        ]
        for resource in _PRESSURE:
            path = str(proc_root / "pressure" / resource)
            self._sources.append((path, partial(parse_pressure, resource=resource)))
        self._boot_id = f"{proc_root}/sys/kernel/random/boot_id"
        self._first = True

    def sample(self) -> Sequence[Batch]:
        """All counters of the host; those of a file that cannot be read have its reason."""
        watch = Stopwatch()
        samples: list[Sample] = self._constants() if self._first else []
        self._first = False
        taken: list[tuple[bytes | OSError, Callable[[bytes], list[Sample]]]] = []
        for path, parse in self._sources:
            try:
                taken.append((read_whole(path), parse))
            except OSError as error:
                taken.append((error, parse))
        watch.stop()
        for content, parse in taken:
            samples += _parsed(content, parse)
        return [watch.batch(NAME, samples)]

    def _constants(self) -> list[Sample]:
        hz = Sample(device="-", counter="clk_tck_hz", value=os.sysconf("SC_CLK_TCK"))
        try:
            return [hz, Sample(device="-", counter="boot_id", text=read_word(self._boot_id))]
        except OSError as error:
            return [hz, _without("boot_id", reason_of(error))]


def _parsed(content: bytes | OSError, parse: Callable[[bytes], list[Sample]]) -> list[Sample]:
    if isinstance(content, bytes):
        return parse(content)
    # The counters this file would have given, each with the reason of the whole file.
    return [_without(empty.counter, reason_of(content)) for empty in parse(b"")]


def _start(context: Context) -> Mapping[str, Sampler]:
    return {NAME: HostSampler(context.proc_root)}


def _check(context: Context) -> Status:
    samples = [one for batch in HostSampler(context.proc_root).sample() for one in batch.samples]
    lost = [one for one in samples if one.reason is not None]
    if not lost:
        return Status(works="yes", detail=f"{len(samples)} counters")
    names = ", ".join(one.counter for one in lost)
    return Status(works="partly", detail=f"{names}: {lost[0].reason}")


HOST = Probe(name=NAME, start=_start, check=_check, rate_hz=1.0, thread=Thread.PATIENT)
