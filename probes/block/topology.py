"""The topology probe: what each watched block device is and is made of, every few seconds.

It shares its devices and their epochs with the disk probe, which counts on every layer found here.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..epochs import EpochTracker
from ..kernel_files import names_in
from ..plan import Setting, names
from ..probe import Context, Probe, Sampler, Status, Thread
from ..samples import Batch, Sample, Stopwatch, samples_of
from .sysfs import Device, Sysfs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "topology"


def kernel_name(device: str) -> str:
    """`/dev/mapper/kv` or `/dev/md0` as the kernel calls it; a bare name stays as it is."""
    return Path(os.path.realpath(device)).name if device.startswith("/") else device


def _block_devices(value: Any) -> tuple[str, ...] | None:
    given = names(value)
    return None if given is None else tuple(dict.fromkeys(kernel_name(name) for name in given))


BLOCK_DEVICES: Setting[tuple[str, ...]] = Setting(
    key="block_devices",
    default=(),
    accept=_block_devices,
    example='kernel names: ["md0", "nvme0n1"]',
)


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


def watched_devices(context: Context) -> WatchedDevices | None:
    """The devices of the plan with the layers below them; None when the plan names none."""
    named = context.plan[BLOCK_DEVICES]
    if not named:
        return None
    watched = WatchedDevices(named, Sysfs(context.sys_root, context.proc_root))
    # Resolved before the first sample, so that the layers below are in it. When that fails, the
    # topology probe's own first sample says why.
    with contextlib.suppress(OSError):
        watched.resolve()
    return watched


class TopologySampler:
    """Facts of every watched device, and the epochs that a change of them began."""

    def __init__(self, watched: WatchedDevices) -> None:
        self._watched = watched

    def sample(self) -> Sequence[Batch]:
        """One sample a fact; an absent device has its `kind` with a reason."""
        watch = Stopwatch()
        causes = self._watched.resolve()
        watch.stop()
        samples: list[Sample] = []
        for name, device in self._watched.devices.items():
            epoch = self._watched.epochs.current(name)
            cause = causes.get(name)
            if device is None:
                gone = {"kind": "absent: the kernel has no block device of this name"}
                samples += samples_of(name, reasons=gone, epoch=epoch, causes=[cause])
            else:
                samples += _facts(device, epoch, cause)
        return [watch.batch(NAME, samples)]


def _facts(device: Device, epoch: int, cause: str | None) -> list[Sample]:
    texts = {"kind": device.kind, "members": ",".join(device.members), **device.facts}
    if device.major_minor is not None:
        texts["major_minor"] = device.major_minor
    if device.parent is not None:
        texts["parent"] = device.parent
    values = {} if device.diskseq is None else {"diskseq": device.diskseq}
    return samples_of(device.name, values, texts, device.reasons, epoch=epoch, causes=[cause])


def _start(context: Context) -> Mapping[str, Sampler]:
    watched = context.once(watched_devices)
    return {NAME: TopologySampler(watched)} if watched else {}


def _check(context: Context) -> Status:
    sysfs = Sysfs(context.sys_root, context.proc_root)
    mounts = sysfs.mounts()
    found = [sysfs.device(name, mounts) for name in names_in(f"{context.sys_root}/class/block")]
    devices = [device for device in found if device]
    without = sum(device.diskseq is None for device in devices)
    frozen = [device.name for device in devices if device.facts.get("iostats") == "0"]
    detail = f"{len(devices)} devices"
    detail += f", {without} without diskseq" if without else ", all with diskseq"
    if frozen:
        detail += f"; counters of {','.join(frozen)} are switched off (queue/iostats is 0)"
    return Status(works="partly" if without or frozen or not devices else "yes", detail=detail)


TOPOLOGY = Probe(name=NAME, start=_start, check=_check, rate_hz=0.2, thread=Thread.PATIENT)
