"""The NVMe probe: controller states, addresses and array states, from sysfs, twice a second.

Disk counters do not show a link that is down: they stand still, and md still says `clean`. The
controller's own state shows it within seconds. Neither root nor a tool is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..epochs import EpochTracker
from ..errors import reason_of
from ..kernel_files import counter_in, names_in, read_word, word_or_none
from ..probe import Context, Probe, Sampler, Status, Thread
from ..samples import Batch, Sample, Stopwatch, samples_of
from .topology import WatchedDevices, watched_devices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NAME = "nvme"
# A change of one of these is another controller, and begins an epoch.
_IDENTITY = ("transport", "address", "subsysnqn", "cntlid")
# Does not change while the controller lives: written with the first sample only.
_SETTINGS = (
    *("model", "firmware_rev", "numa_node", "ctrl_loss_tmo", "reconnect_delay"),
    *("fast_io_fail_tmo", "kato", "queue_count", "sqsize"),
)
# Other kinds have neither an array's state nor a path's; their diskseq is read by the disk probe.
_OF_ARRAYS = ("md", "nvme")
_NO_NVME = "absent: this kernel has no NVMe controller"


class NvmeSampler:
    """Every controller of the host, and the state of each watched block device."""

    def __init__(self, watched: WatchedDevices | None, sys_root: Path) -> None:
        self._watched = watched
        self._class = f"{sys_root}/class/nvme"
        self._block = f"{sys_root}/class/block"
        self._epochs = EpochTracker()
        self._known: set[str] = set()
        self._said_none = False

    def sample(self) -> Sequence[Batch]:
        """One sample a fact; a controller that was there and is gone has a reason."""
        watch = Stopwatch()
        names = [name for name in names_in(self._class) if _is_controller(name)]
        samples: list[Sample] = []
        if not (names or self._known or self._said_none):
            # Once: a host without NVMe has nothing to say twice a second.
            self._said_none = True
            samples += samples_of("-", reasons={"controllers": _NO_NVME})
        for name in sorted({*names, *self._known}):
            samples += self._controller(name) if name in names else self._gone(name)
        for name in sorted(self._watched.names) if self._watched else ():
            if name.startswith(_OF_ARRAYS):
                samples += self._device(name)
        return [watch.batch(NAME, samples)] if samples else []

    def _gone(self, name: str) -> list[Sample]:
        self._epochs.gone(name)
        gone = {"state": "absent: the controller is gone"}
        return samples_of(name, reasons=gone, epoch=self._epochs.current(name))

    def _controller(self, name: str) -> list[Sample]:
        root = f"{self._class}/{name}"
        identity = " ".join(word_or_none(f"{root}/{fact}") or "-" for fact in _IDENTITY)
        cause = self._epochs.identity(name, "controller", identity)
        # A controller that was removed and added again is another one even at the same address.
        cause = self._epochs.counters(name, {"seen": 0}) or cause
        texts: dict[str, str] = {}
        reasons: dict[str, str] = {}
        for fact in ("state", *_IDENTITY, *(() if name in self._known else _SETTINGS)):
            try:
                texts[fact] = read_word(f"{root}/{fact}")
            except OSError as error:
                reasons[fact] = reason_of(error)
        self._known.add(name)
        epoch = self._epochs.current(name)
        return samples_of(name, texts=texts, reasons=reasons, epoch=epoch, causes=[cause])

    def _device(self, name: str) -> list[Sample]:
        root = f"{self._block}/{name}"
        diskseq = counter_in(f"{root}/diskseq")
        facts = {
            "array_state": word_or_none(f"{root}/md/array_state"),
            "ana_state": word_or_none(f"{root}/ana_state"),
        }
        texts = {fact: text for fact, text in facts.items() if text is not None}
        return samples_of(name, {} if diskseq is None else {"diskseq": diskseq}, texts)


def _is_controller(name: str) -> bool:
    return name.startswith("nvme") and name.removeprefix("nvme").isdigit()


def _start(context: Context) -> Mapping[str, Sampler]:
    return {NAME: NvmeSampler(context.once(watched_devices), context.sys_root)}


def _check(context: Context) -> Status:
    samples = [
        one for batch in NvmeSampler(None, context.sys_root).sample() for one in batch.samples
    ]
    states = [one for one in samples if one.counter == "state"]
    if not states:
        return Status(works="no", detail=samples[0].reason or "absent")
    shown = ", ".join(f"{one.device} {one.text or one.reason}" for one in states)
    return Status(works="yes", detail=shown)


NVME = Probe(name=NAME, start=_start, check=_check, rate_hz=2.0, thread=Thread.PATIENT)
