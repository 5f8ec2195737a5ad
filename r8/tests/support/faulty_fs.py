"""The shaped file system with faults it can be told to make, and counters of what it did.

    {"op": "fault", "fault": {"kind": "eio", ...}}   -> {"ok": true, "number": 1}
    {"op": "clear"} {"op": "counters"} {"op": "reset"}

`faulty_device` is `shaped_device` on this file system, `control_of` its control.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

import mfusepy as fuse

from r8.lab.rehearsal import device as devices
from r8.lab.rehearsal.control import Control, Plant
from r8.lab.rehearsal.fallback import shaped_device
from r8.lab.rehearsal.shaped_fs import (
    DirectoryOperations,
    ImageOperations,
    ShapedOperations,
    main,
    sleep_until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.rehearsal.fallback import ShapedDevice
    from r8.lab.rehearsal.shape import Shape

EIO = "eio"
SHORT = "short"
DELAY = "delay"
KINDS = frozenset({EIO, SHORT, DELAY})
READ, WRITE, FSYNC = "read", "write", "fsync"
OPERATIONS = frozenset({READ, WRITE, FSYNC})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, for every operation that matches all of its conditions.

    `on` names the operation: `read`, `write`, or `fsync`, which has no bytes of its own. `path` as
    the mount shows it (`/image`), None for any; bytes [offset, offset + length), None for any;
    every n-th matching one, 1 for each; `count` times in all, None without end. `short` returns
    `keep_bytes` only, `delay` adds `delay_ns`. Beneath a loop device the kernel itself repeats a
    short read, so there it is seen by the device and not by the reader of a file.
    """

    kind: str
    on: str = READ
    path: str | None = None
    offset: int = 0
    length: int | None = None
    every: int = 1
    count: int | None = None
    keep_bytes: int = 0
    delay_ns: int = 0

    def __post_init__(self) -> None:
        """Refuse a fault that could never happen."""
        if self.kind not in KINDS:
            raise ValueError(f"unknown fault {self.kind!r}, known are {sorted(KINDS)}")
        if self.on not in OPERATIONS:
            raise ValueError(f"a fault cannot be on {self.on!r}, but on {sorted(OPERATIONS)}")
        if self.kind == SHORT and self.on != READ:
            raise ValueError("the fault `short` is one of reads")
        if self.every < 1 or (self.count is not None and self.count < 1):
            raise ValueError("`every` and `count` count from 1")

    def touches(self, path: str, size: int, offset: int, on: str = READ) -> bool:
        """Whether an operation on `size` bytes at `offset` meets the fault's file and bytes."""
        if self.on != on or (self.path is not None and self.path != path):
            return False
        if on == FSYNC:
            return True
        ends_before = offset + size <= self.offset
        begins_after = self.length is not None and offset >= self.offset + self.length
        return not (ends_before or begins_after)


class Faults:
    """The faults in force; `due` is asked once an operation."""

    def __init__(self) -> None:
        """None at first."""
        self._guard = threading.Lock()
        self._faults: dict[int, Fault] = {}
        self._met: dict[int, int] = {}
        self._next = 1

    def add(self, fault: Fault) -> int:
        """Put a fault in force; returns its number."""
        with self._guard:
            number = self._next
            self._next += 1
            self._faults[number] = fault
            self._met[number] = 0
            return number

    def clear(self) -> None:
        """No fault any more."""
        with self._guard:
            self._faults.clear()
            self._met.clear()

    def due(self, path: str, size: int, offset: int, on: str = READ) -> list[Fault]:
        """The faults this operation suffers."""
        if not self._faults:
            return []
        with self._guard:
            return [
                fault
                for number, fault in self._faults.items()
                if fault.touches(path, size, offset, on) and self._meets(number, fault)
            ]

    def _meets(self, number: int, fault: Fault) -> bool:
        self._met[number] += 1
        times, rest = divmod(self._met[number], fault.every)
        return rest == 0 and (fault.count is None or times <= fault.count)


@dataclass(slots=True, kw_only=True)
class _Totals:
    reads: int = 0
    read_bytes: int = 0
    writes: int = 0
    write_bytes: int = 0
    fsyncs: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    faults: int = 0
    max_late_ns: int = 0


class Counters:
    """What a shaped file system did since the last reset. Sizes in bytes, `late` in ns."""

    def __init__(self) -> None:
        """All zero."""
        self._guard = threading.Lock()
        self._totals = _Totals()

    def read_begins(self, size: int) -> None:
        """A read arrived."""
        with self._guard:
            totals = self._totals
            totals.reads += 1
            totals.read_bytes += size
            totals.in_flight += 1
            totals.max_in_flight = max(totals.max_in_flight, totals.in_flight)

    def read_ends(self, late_ns: int, faults: int) -> None:
        """A read was answered, `late_ns` after the instant its shape says."""
        with self._guard:
            totals = self._totals
            totals.in_flight -= 1
            totals.faults += faults
            totals.max_late_ns = max(totals.max_late_ns, late_ns)

    def wrote(self, size: int) -> None:
        """A write was answered."""
        with self._guard:
            self._totals.writes += 1
            self._totals.write_bytes += size

    def synced(self) -> None:
        """A flush was asked for."""
        with self._guard:
            self._totals.fsyncs += 1

    def failed(self, faults: int) -> None:
        """A write or a flush was refused, or held up."""
        with self._guard:
            self._totals.faults += faults

    def snapshot(self) -> dict[str, Any]:
        """The totals by name."""
        with self._guard:
            return asdict(self._totals)

    def reset(self) -> None:
        """Zero, but for the reads now in flight."""
        with self._guard:
            now = self._totals.in_flight
            self._totals = _Totals(in_flight=now, max_in_flight=now)


class FaultyPlant(Plant):
    """A plant with faults and counters."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.faults = Faults()
        self.counters = Counters()

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        match order.pop("op", None):
            case None:
                return super().obey(order)
            case "fault":
                return {"number": self.faults.add(Fault(**order["fault"]))}
            case "clear":
                self.faults.clear()
            case "counters":
                return {"counters": self.counters.snapshot()}
            case "reset":
                self.counters.reset()
            case unknown:
                raise ValueError(f"unknown order {unknown!r}")
        return {}


class FaultControl(Control):
    """The other end of such a plant."""

    def inject(self, fault: Fault) -> int:
        """Put a fault in force; returns its number."""
        return int(self.order({"op": "fault", "fault": asdict(fault)})["number"])

    def clear_faults(self) -> None:
        """No fault any more."""
        self.order({"op": "clear"})

    def counters(self) -> dict[str, int]:
        """reads, writes, their bytes, fsyncs, in_flight, max_in_flight, faults, max_late_ns."""
        return dict(self.order({"op": "counters"})["counters"])

    def reset_counters(self) -> None:
        """Count from zero again."""
        self.order({"op": "reset"})


class Faulty(ShapedOperations):
    """Reads, writes and flushes that are counted, and suffer what faults say."""

    _plant: FaultyPlant

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        plant = self._plant
        due_ns = plant.reading.admit(size, time.monotonic_ns())
        plant.counters.read_begins(size)
        faults = plant.faults.due(path, size, offset)
        try:
            data = os.pread(fh, size, offset)
            for fault in faults:
                if fault.kind == DELAY:
                    due_ns += fault.delay_ns
                elif fault.kind == SHORT:
                    data = data[: fault.keep_bytes]
            sleep_until(due_ns)
            if any(fault.kind == EIO for fault in faults):
                raise fuse.FuseOSError(errno.EIO)
            return data
        finally:
            plant.counters.read_ends(max(0, time.monotonic_ns() - due_ns), len(faults))

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """A refused write leaves none of its bytes."""
        self._suffer(self._plant.faults.due(path, len(data), offset, WRITE))
        written = super().write(path, data, offset, fh)
        self._plant.counters.wrote(written)
        return written

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self._plant.counters.synced()
        self._suffer(self._plant.faults.due(path, 0, 0, FSYNC))
        return super().fsync(path, datasync, fh)

    def _suffer(self, faults: list[Fault]) -> None:
        """Wait out every delay; raise what a fault says."""
        time.sleep(sum(one.delay_ns for one in faults if one.kind == DELAY) / 1e9)
        if faults:
            self._plant.counters.failed(len(faults))
        if any(one.kind == EIO for one in faults):
            raise fuse.FuseOSError(errno.EIO)


class FaultyImage(Faulty, ImageOperations):
    """One file for a loop device."""


class FaultyDirectory(Faulty, DirectoryOperations):
    """A directory passed through."""


@contextlib.contextmanager
def faulty_device(
    shape: Shape, supervisor: Supervisor, work_dir: Path, name: str, size_bytes: int
) -> Iterator[ShapedDevice]:
    """The best device this machine can build, able to make faults."""
    with (
        mock.patch.object(devices, "DAEMON", "r8.tests.support.faulty_fs"),
        shaped_device(shape, supervisor, work_dir, name, size_bytes) as device,
    ):
        yield device


def control_of(device: ShapedDevice) -> FaultControl:
    """The control of a device that can make faults."""
    assert device.control is not None
    return FaultControl(device.control.path)


if __name__ == "__main__":
    sys.exit(main(plant=FaultyPlant, image=FaultyImage, directory=FaultyDirectory))
