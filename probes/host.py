"""The host probe: CPU time, memory, pressure, paging. Context for a verdict, never its ground.

Units as the kernel counts them: CPU in jiffies (`clk_tck_hz` a second), pressure in microseconds,
vmstat in pages except `pgpgin` and `pgpgout`, which are KiB. Memory is converted from kB to bytes.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import reason_of
from .kernel_files import counter_of, read_whole
from .readings import Reading, Sample, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def _integer(text: bytes, counter: str, scale: int = 1) -> Reading:
    value = counter_of(text, scale)
    if value is not None:
        return Reading(device="-", counter=counter, value=value)
    shown = text.decode("ascii", "replace")[:40]
    return Reading(device="-", counter=counter, reason=f"failed: {shown!r} is no counter")


def parse_cpu(data: bytes) -> list[Reading]:
    """The line of all CPUs together in /proc/stat."""
    lines = [line.split() for line in data.split(b"\n")[:-1] if line.startswith(b"cpu ")]
    values = lines[0][1:] if lines else []
    return [
        _integer(values[position], f"cpu_{mode}_jiffies")
        if position < len(values)
        else Reading(device="-", counter=f"cpu_{mode}_jiffies", reason=_NOT_THERE)
        for position, mode in enumerate(_CPU_MODES)
    ]


def _named_lines(data: bytes) -> dict[bytes, list[bytes]]:
    # The last piece has no newline behind it: its number may be cut.
    lines = (line.split() for line in data.split(b"\n")[:-1])
    return {columns[0].rstrip(b":"): columns[1:] for columns in lines if columns}


def _picked(data: bytes, names: dict[str, str], scale: int, unit: bytes | None) -> list[Reading]:
    lines = _named_lines(data)
    readings = []
    for name, counter in names.items():
        values = lines.get(name.encode())
        if not values:
            readings.append(Reading(device="-", counter=counter, reason=_NOT_THERE))
        elif unit is not None and values[1:] != [unit]:
            reason = f"failed: the unit is not {unit.decode()}"
            readings.append(Reading(device="-", counter=counter, reason=reason))
        else:
            readings.append(_integer(values[0], counter, scale))
    return readings


def parse_meminfo(data: bytes) -> list[Reading]:
    """/proc/meminfo in bytes."""
    return _picked(data, _MEMORY, _BYTES_PER_KB, b"kB")


def parse_vmstat(data: bytes) -> list[Reading]:
    """/proc/vmstat."""
    return _picked(data, _VMSTAT, 1, None)


def parse_pressure(data: bytes, resource: str) -> list[Reading]:
    """Total stall time of one /proc/pressure file; `full` of cpu is absent on older kernels."""
    lines = _named_lines(data)
    readings = []
    for share in ("some", "full"):
        counter = f"psi_{resource}_{share}_total_us"
        totals = [part for part in lines.get(share.encode(), []) if part.startswith(b"total=")]
        if totals:
            readings.append(_integer(totals[0].removeprefix(b"total="), counter))
        else:
            readings.append(Reading(device="-", counter=counter, reason=_NOT_THERE))
    return readings


def parse_loadavg(data: bytes) -> list[Reading]:
    """Run-queue averages; they are not integers at their source."""
    words = data.split()
    readings = []
    for position, counter in enumerate(_LOADS):
        word = words[position] if position < len(words) else b""
        if word.replace(b".", b"", 1).isdigit():
            readings.append(Reading(device="-", counter=counter, value_real=float(word)))
        else:
            readings.append(Reading(device="-", counter=counter, reason=_NOT_THERE))
    return readings


class HostProbe:
    """Five small kernel files a sample. What is constant is written with the first one."""

    name = "host"

    def __init__(self, proc_root: Path = Path("/proc")) -> None:
        self._sources: list[tuple[str, Callable[[bytes], list[Reading]]]] = [
            (str(proc_root / "stat"), parse_cpu),
            (str(proc_root / "meminfo"), parse_meminfo),
            (str(proc_root / "vmstat"), parse_vmstat),
            (str(proc_root / "loadavg"), parse_loadavg),
        ]
        for resource in _PRESSURE:
            path = str(proc_root / "pressure" / resource)
            self._sources.append((path, partial(parse_pressure, resource=resource)))
        self._boot_id = proc_root / "sys" / "kernel" / "random" / "boot_id"
        self._first = True

    def sample(self) -> Sequence[Sample]:
        """All counters of the host; a file that cannot be read is null with its reason."""
        watch = Stopwatch()
        readings: list[Reading] = self._constants() if self._first else []
        self._first = False
        taken: list[tuple[bytes | OSError, Callable[[bytes], list[Reading]]]] = []
        for path, parse in self._sources:
            try:
                taken.append((read_whole(path), parse))
            except OSError as error:
                taken.append((error, parse))
        watch.stop()
        for content, parse in taken:
            readings.extend(_parsed(content, parse))
        return [watch.sample(self.name, readings)]

    def _constants(self) -> list[Reading]:
        hz = Reading(device="-", counter="clk_tck_hz", value=os.sysconf("SC_CLK_TCK"))
        try:
            boot_id = self._boot_id.read_text(encoding="ascii").strip()
        except OSError as error:
            return [hz, Reading(device="-", counter="boot_id", reason=reason_of(error))]
        return [hz, Reading(device="-", counter="boot_id", text=boot_id)]


def _parsed(content: bytes | OSError, parse: Callable[[bytes], list[Reading]]) -> list[Reading]:
    if isinstance(content, bytes):
        return parse(content)
    # The counters this file would have given, each with the reason of the whole file.
    reason = reason_of(content)
    return [Reading(device="-", counter=empty.counter, reason=reason) for empty in parse(b"")]
