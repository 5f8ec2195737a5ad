"""The NVMe probe: controller states, addresses and array states, from sysfs, twice a second.

A link that is down is not seen in disk counters: they stand still, and md still says `clean`. The
controller's own state is where it shows, within seconds. No root and no tool needed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .epochs import EpochTracker
from .errors import reason_of
from .kernel_files import counter_of, names_in, read_whole
from .readings import Reading, Sample, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .disk import WatchedDevices

# Read with every sample; a change of one that says who the controller is begins an epoch.
_STATES = ("state",)
_IDENTITY = ("transport", "address", "subsysnqn", "cntlid")
# Does not change while the controller lives: written with the first sample only.
_SETTINGS = (
    *("model", "firmware_rev", "numa_node", "ctrl_loss_tmo", "reconnect_delay"),
    *("fast_io_fail_tmo", "kato", "queue_count", "sqsize"),
)
# Other kinds have neither an array's state nor a path's; their diskseq is read by the disk probe.
_OF_ARRAYS = ("md", "nvme")
_NO_NVME = "absent: this kernel has no NVMe controller"


class NvmeProbe:
    """Every controller of the host, and the state of each watched block device."""

    name = "nvme"

    def __init__(self, watched: WatchedDevices | None, sys_root: Path) -> None:
        self._watched = watched
        self._class = f"{sys_root}/class/nvme"
        self._block = f"{sys_root}/class/block"
        self._subsystems = f"{sys_root}/class/nvme-subsystem"
        self._epochs = EpochTracker()
        self._known: set[str] = set()
        self._said_none = False

    def sample(self) -> Sequence[Sample]:
        """One row a fact; a controller that was there and is gone has a reason."""
        watch = Stopwatch()
        names = _entries(self._class)
        readings: list[Reading] = []
        if not (names or self._known or self._said_none):
            # Once: a host without NVMe has nothing to say twice a second.
            self._said_none = True
            readings.append(Reading(device="-", counter="controllers", reason=_NO_NVME))
        for name in sorted({*names, *self._known}):
            readings += self._controller(name, present=name in names)
        for name in sorted(self._watched.names) if self._watched else ():
            if name.startswith(_OF_ARRAYS):
                readings += self._device(name)
        return [watch.sample(self.name, readings)] if readings else []

    def _controller(self, name: str, *, present: bool) -> list[Reading]:
        if not present:
            self._epochs.gone(name)
            gone = "absent: the controller is gone"
            epoch = self._epochs.current(name)
            return [Reading(device=name, counter="state", reason=gone, epoch=epoch)]
        root = f"{self._class}/{name}"
        identity = " ".join(_word(f"{root}/{fact}") or "-" for fact in _IDENTITY)
        cause = self._epochs.identity(name, "controller", identity)
        # A controller that was removed and added again is another one even at the same address.
        cause = self._epochs.counters(name, {"seen": 0}) or cause
        epoch = self._epochs.current(name)
        facts = (*_STATES, *_IDENTITY, *(() if name in self._known else _SETTINGS))
        self._known.add(name)
        readings = [_reading(name, fact, f"{root}/{fact}", epoch) for fact in facts]
        if cause is not None:
            readings.append(Reading(device=name, counter="epoch_cause", text=cause, epoch=epoch))
        return readings

    def _device(self, name: str) -> list[Reading]:
        root = f"{self._block}/{name}"
        readings = []
        diskseq = counter_of(_bytes(f"{root}/diskseq"))
        if diskseq is not None:
            readings.append(Reading(device=name, counter="diskseq", value=diskseq))
        for fact, path in (("array_state", "md/array_state"), ("ana_state", "ana_state")):
            text = _word(f"{root}/{path}")
            if text is not None:
                readings.append(Reading(device=name, counter=fact, text=text))
        return readings


def controller_of(sys_root: Path, block_device: str) -> str | None:
    """The controller behind a path or a local namespace: its parent folder in sysfs.

    The number in a head's name is its subsystem's, so a head has no controller of its own.
    """
    link = os.path.realpath(f"{sys_root}/class/block/{block_device}")
    parent = os.path.basename(os.path.dirname(link))  # noqa: PTH119, PTH120 - a sysfs link
    is_controller = parent.startswith("nvme") and parent.removeprefix("nvme").isdigit()
    return parent if is_controller else None


def _reading(device: str, fact: str, path: str, epoch: int) -> Reading:
    try:
        # NVMe pads its strings with blanks.
        text = read_whole(path).decode("utf-8", "replace").strip()
    except OSError as error:
        return Reading(device=device, counter=fact, reason=reason_of(error), epoch=epoch)
    return Reading(device=device, counter=fact, text=text, epoch=epoch)


def _bytes(path: str) -> bytes | None:
    try:
        return read_whole(path).strip()
    except OSError:
        return None


def _word(path: str) -> str | None:
    data = _bytes(path)
    return None if data is None else data.decode("utf-8", "replace")


def _entries(path: str) -> list[str]:
    return [
        name
        for name in names_in(path)
        if name.startswith("nvme") and name.removeprefix("nvme").isdigit()
    ]
