"""`status`: which probes work on this host, and why the others do not."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .diskstats import COUNTERS, parse_diskstats
from .engine import EngineProbe
from .errors import reason_of
from .gpu import GpuProbe
from .host import HostProbe
from .iostat import iostat_version
from .kernel_files import names_in, read_whole
from .nic import NicProbe, rdma_ports
from .nvme import NvmeProbe
from .pagecache import choose_method
from .process import parse_io
from .topology import Sysfs

if TYPE_CHECKING:
    from collections.abc import Callable

_NET, _RDMA = "/sys/class/net", "/sys/class/infiniband"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One probe here. `works` is "yes", "no" or "partly"; `detail` says how or why not."""

    probe: str
    works: str
    detail: str


def _disk() -> Status:
    data = read_whole("/proc/diskstats")
    names = frozenset(
        line.split()[2].decode()
        for line in data.splitlines()
        if len(line.split()) > 2  # noqa: PLR2004
    )
    lines = parse_diskstats(data, names)
    missing = sorted({name for line in lines.values() for name in line.missing})
    if not lines:
        return Status(probe="disk", works="no", detail="absent: /proc/diskstats lists no device")
    works = "partly" if missing else "yes"
    detail = f"{len(lines)} devices, {len(COUNTERS) - len(missing)} of {len(COUNTERS)} counters"
    return Status(probe="disk", works=works, detail=detail)


def _topology() -> Status:
    sysfs = Sysfs()
    names = sorted(entry.name for entry in Path("/sys/class/block").iterdir())
    mounts = sysfs.mounts()
    devices = [device for name in names if (device := sysfs.device(name, mounts))]
    without = sum(device.diskseq is None for device in devices)
    frozen = [device.name for device in devices if device.facts.get("iostats") == "0"]
    detail = f"{len(devices)} devices"
    detail += f", {without} without diskseq" if without else ", all with diskseq"
    if frozen:
        detail += f"; counters of {','.join(frozen)} are switched off (queue/iostats is 0)"
    works = "partly" if without or frozen or not devices else "yes"
    return Status(probe="topology", works=works, detail=detail)


def _process() -> Status:
    missing = [
        name for name, value in parse_io(read_whole("/proc/self/io")).items() if value is None
    ]
    detail = f"absent: {','.join(missing)}" if missing else "/proc/<pid>/io of own processes"
    if os.geteuid() != 0:
        detail += "; processes of other users are denied without root"
    return Status(probe="process", works="partly" if missing else "yes", detail=detail)


def _host() -> Status:
    readings = [reading for sample in HostProbe().sample() for reading in sample.readings]
    lost = [reading for reading in readings if reading.reason is not None]
    if not lost:
        return Status(probe="host", works="yes", detail=f"{len(readings)} counters")
    names = ", ".join(reading.counter for reading in lost)
    return Status(probe="host", works="partly", detail=f"{names}: {lost[0].reason}")


def _iostat() -> Status:
    text, reason = iostat_version()
    detail = reason or " ".join(text.split()[:3])
    return Status(probe="iostat", works="no" if reason else "yes", detail=detail)


def _residency(directory: Path) -> Status:
    method = choose_method(directory)
    if method.name is None:
        detail = method.reason or "failed"
        return Status(probe="residency", works="no", detail=f"{detail} (in {directory})")
    detail = f"{method.name}, self-test passed in {directory}"
    return Status(probe="residency", works="yes", detail=detail)


def _engine(url: str | None) -> Status:
    if url is None:
        return Status(probe="engine", works="-", detail="give --metrics URL to try one")
    with closing(EngineProbe("status", url)) as probe:
        readings = probe.sample()[0].readings
    if readings[0].reason is not None:
        return Status(probe="engine", works="no", detail=readings[0].reason)
    return Status(probe="engine", works="yes", detail=f"{len(readings) - 1} series at {url}")


def _nvme() -> Status:
    samples = NvmeProbe(None, Path("/sys")).sample()
    readings = [reading for sample in samples for reading in sample.readings]
    states = [reading for reading in readings if reading.counter == "state"]
    if not states:
        return Status(probe="nvme", works="no", detail=readings[0].reason or "absent")
    shown = ", ".join(f"{one.device} {one.text or one.reason}" for one in states)
    return Status(probe="nvme", works="yes", detail=shown)


def _nic() -> Status:
    names = [name for name in names_in("/sys/class/net") if name != "lo"]
    ports = [port for name in names for port in rdma_ports(_RDMA, _NET, name)]
    probe = NicProbe(tuple(names), Path("/sys"))
    with closing(probe):
        readings = [reading for sample in probe.sample() for reading in sample.readings]
    driver = {one.device for one in readings if one.counter.startswith("ethtool.")}
    detail = f"{', '.join(names) or 'no interface'}; driver statistics of {len(driver)}; "
    detail += f"RDMA ports: {', '.join(ports) or 'absent'}"
    return Status(probe="nic", works="yes" if names else "no", detail=detail)


def _gpu() -> Status:
    readings = [reading for sample in GpuProbe().sample() for reading in sample.readings]
    cards = sorted({one.device for one in readings if one.value is not None})
    lost = [f"{one.device}: {one.reason}" for one in readings if one.reason and not cards]
    works = "yes" if cards else "no"
    return Status(probe="gpu", works=works, detail=", ".join(cards) or "; ".join(lost))


def status(directory: Path | None, metrics_url: str | None) -> list[Status]:
    """Try every probe once; none of them can stop the others."""
    place = directory or Path(tempfile.gettempdir())
    tries: dict[str, Callable[[], Status]] = {
        "disk": _disk,
        "topology": _topology,
        "process": _process,
        "host": _host,
        "iostat": _iostat,
        "residency": lambda: _residency(place),
        "engine": lambda: _engine(metrics_url),
        "nvme": _nvme,
        "nic": _nic,
        "gpu": _gpu,
    }
    found = []
    for name, attempt in tries.items():
        try:
            found.append(attempt())
        except Exception as error:  # noqa: BLE001 - what does not work here is the answer
            found.append(Status(probe=name, works="no", detail=reason_of(error)))
    return found


def table(found: list[Status]) -> str:
    """The answer as lines for a person."""
    return "\n".join(f"{one.probe:<10} {one.works:<7} {one.detail}" for one in found)


def as_rows(found: list[Status]) -> list[dict[str, str]]:
    """The answer for a program."""
    return [asdict(one) for one in found]
