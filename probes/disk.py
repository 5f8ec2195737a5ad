"""The disk probe: raw counters of the named block devices and of every layer below them.

The devices are resolved once at the start. Their identity (`diskseq`) is read again with every
sample, their composition every few seconds by `TopologyProbe`; both feed the same epochs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .diskstats import COUNTERS, GAUGES, DiskLine, parse_diskstats
from .epochs import EpochTracker
from .errors import reason_of
from .kernel_files import KeptFile
from .readings import Reading, Sample, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .topology import Device, Sysfs

_ABSENT = DiskLine(missing=dict.fromkeys(COUNTERS, "absent: no line in diskstats"))


class WatchedDevices:
    """The devices being read, with their epochs; shared by the disk and the topology probe.

    The two run in threads of their own. `lock` is held while epochs are taken or made; the only
    files read meanwhile are those of `diskseq`, which no driver answers for.
    """

    def __init__(self, names: tuple[str, ...], sysfs: Sysfs) -> None:
        self._named = names
        self._sysfs = sysfs
        self.epochs = EpochTracker()
        self.lock = threading.Lock()
        self.devices: dict[str, Device | None] = dict.fromkeys(names)
        self._names = frozenset(names)

    @property
    def names(self) -> frozenset[str]:
        """Every device watched. Once watched, always watched: a disappearance is evidence too."""
        return self._names

    def resolve(self) -> dict[str, str]:
        """Resolve all layers again; device -> cause for every epoch this ended."""
        layers = self._sysfs.layers(self._named, self._sysfs.mounts())
        with self.lock:
            return self._take(layers)

    def _take(self, layers: dict[str, Device | None]) -> dict[str, str]:
        causes = {}
        for name in dict.fromkeys((*self.devices, *layers)):
            device = layers.get(name)
            self.devices[name] = device
            if device is None:
                self.epochs.gone(name)
                continue
            cause = self.epochs.identity(name, "composition", device.composition())
            if cause is not None:
                causes[name] = cause
        self._names = frozenset(self.devices)
        return causes

    def check_diskseq(self, name: str) -> str | None:
        """Read the diskseq now; the cause when it ends an epoch. A partition has its disk's."""
        device = self.devices.get(name)
        holder = device.parent if device and device.kind == "partition" else name
        diskseq = self._sysfs.diskseq(holder or name)
        return self.epochs.identity(name, "diskseq", None if diskseq is None else str(diskseq))


class DiskProbe:
    """One read of /proc/diskstats a sample, and one of each device's diskseq."""

    name = "disk"

    def __init__(self, watched: WatchedDevices, proc_root: Path) -> None:
        self._watched = watched
        self._file = KeptFile(str(proc_root / "diskstats"))

    def sample(self) -> Sequence[Sample]:
        """Every counter of every watched device, null with its reason where there is none."""
        watch = Stopwatch()
        names = self._watched.names
        try:
            data = self._file.read()
        except OSError as error:
            lost = DiskLine(missing=dict.fromkeys(COUNTERS, reason_of(error)))
            found = dict.fromkeys(names, lost)
        else:
            watch.stop()
            found = parse_diskstats(data, names)
        readings: list[Reading] = []
        with self._watched.lock:
            for name in sorted(names):
                readings.extend(self._readings(name, found.get(name)))
        return [watch.sample(self.name, readings)]

    def _readings(self, name: str, line: DiskLine | None) -> list[Reading]:
        epochs = self._watched.epochs
        if line is None:
            epochs.gone(name)
            line = _ABSENT
        causes = [self._watched.check_diskseq(name)]
        growing = {key: val for key, val in line.counters.items() if key not in GAUGES}
        if growing:
            causes.append(epochs.counters(name, growing))
        epoch = epochs.current(name)
        readings = [
            Reading(device=name, counter=counter, value=value, epoch=epoch)
            for counter, value in line.counters.items()
        ]
        readings += [
            Reading(device=name, counter=counter, reason=reason, epoch=epoch)
            for counter, reason in line.missing.items()
        ]
        readings += [cause_reading(name, cause, epoch) for cause in causes if cause]
        return readings


def cause_reading(device: str, cause: str, epoch: int) -> Reading:
    """The row that says why an epoch ended."""
    return Reading(device=device, counter="epoch_cause", text=cause, epoch=epoch)


class TopologyProbe:
    """What each watched device is and is made of: at the start, and again every few seconds."""

    name = "topology"

    def __init__(self, watched: WatchedDevices) -> None:
        self._watched = watched

    def sample(self) -> Sequence[Sample]:
        """One row a fact; an absent device has `kind` null with its reason."""
        watch = Stopwatch()
        causes = self._watched.resolve()
        watch.stop()
        readings: list[Reading] = []
        for name, device in self._watched.devices.items():
            epoch = self._watched.epochs.current(name)
            if device is None:
                gone = "absent: the kernel has no block device of this name"
                readings.append(Reading(device=name, counter="kind", reason=gone, epoch=epoch))
            else:
                readings.extend(_facts(device, epoch))
            if name in causes:
                readings.append(cause_reading(name, causes[name], epoch))
        return [watch.sample(self.name, readings)]


def _facts(device: Device, epoch: int) -> list[Reading]:
    words = {"kind": device.kind, "members": ",".join(device.members), **device.facts}
    if device.major_minor is not None:
        words["major_minor"] = device.major_minor
    if device.parent is not None:
        words["parent"] = device.parent
    readings = [
        Reading(device=device.name, counter=counter, text=text, epoch=epoch)
        for counter, text in words.items()
    ]
    if device.diskseq is not None:
        readings.append(
            Reading(device=device.name, counter="diskseq", value=device.diskseq, epoch=epoch)
        )
    readings += [
        Reading(device=device.name, counter=counter, reason=reason, epoch=epoch)
        for counter, reason in device.reasons.items()
    ]
    return readings
