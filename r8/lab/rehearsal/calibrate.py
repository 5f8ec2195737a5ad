"""What a shaped device gives, and tuning its latency until the published ratio is met.

The shape is right when ceiling : serial is the published 5.23 : 0.98.
"""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.lab.instruments.readers import CEILING, SERIAL, Calibration, Reading, read_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.lab.rehearsal.control import Control
    from r8.lab.rehearsal.fallback import ShapedDevice

PUBLISHED_CEILING_GB_PER_S = 5.23
PUBLISHED_SERIAL_GB_PER_S = 0.98
PUBLISHED_RATIO = PUBLISHED_CEILING_GB_PER_S / PUBLISHED_SERIAL_GB_PER_S
RATIO_TOLERANCE = 0.02
# Tuning goes on until this: a first reading that is barely inside leaves nothing for its noise.
RATIO_AIM = 0.01
MAX_STEPS = 3
ATTEMPTS = 3
# A busy machine lowers a ceiling and never raises it: of two readings the better is the device's.
CEILING_READINGS = 2
# At these lengths the start and the tail of a reading (one latency each) stay below half a percent.
_CEILING_S = 3.0
_SERIAL_S = 3.0
_UNSHAPED_BYTES = 512 << 20
_CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedCalibrator:
    """Measures one device of a rehearsal before every block; the first time it tunes the shape."""

    device: ShapedDevice
    chunk_bytes: int
    target_ratio: float | None  # None: no serial bandwidth was published, nothing is tuned
    raw_dir: Path  # for fio's own JSON of the first time
    say: Callable[[str], None]

    def measure(self, *, first: bool) -> Calibration:
        """Both readings on files of one chunk each, which are gone afterwards.

        A miss that stays after `ATTEMPTS` of tuning is returned as one (`within` False).

        Raises:
            SiteError: the device gave out no bytes, or the page cache could not be dropped.

        """
        against = " against its published ratio" if first and self.target_ratio else ""
        self.say(f"{'calibrating' if first else 'measuring'} {self.device.name}{against}")
        # There already when a calibration failed and the next block tries again.
        self.raw_dir.mkdir(parents=True, exist_ok=True)
        with _chunk_files(self.device, self.chunk_bytes) as files:
            few = files[: self._serial_files(len(files))]

            def read(kind: str) -> Reading:
                wanted = files if kind == CEILING else few
                return _cold(
                    self.device, kind, wanted, self.chunk_bytes, self.raw_dir if first else None
                )

            found = self._found(read, first=first)
        missed = "" if found.within is not False else "; MISSED: a busy machine, or a wrong shape"
        self.say(f"{self.device.name}: ceiling : serial = {found.ratio:.2f}, {found.note}{missed}")
        return found

    def _found(self, read: Callable[[str], Reading], *, first: bool) -> Calibration:
        control = self.device.control
        if not first or control is None or self.target_ratio is None:
            # Files of an unshaped device are read once: the second time its caches would answer.
            times = 1 if control is None else CEILING_READINGS
            ceilings = sorted(
                (read(CEILING) for _ in range(times)), key=lambda one: one.bytes_per_s
            )
            return self._result(ceilings.pop(), read(SERIAL), tuple(ceilings))
        for _ in range(ATTEMPTS):
            found = self._result(*_tuned(control, read, self.target_ratio))
            if found.within:
                break
        return found

    def _result(
        self, ceiling: Reading, serial: Reading, lesser: tuple[Reading, ...] = ()
    ) -> Calibration:
        within, note = None, "no ratio was published: measured only"
        if self.device.control is None:
            note = "unshaped: measured only"
        elif self.target_ratio is not None:
            within = _is_within(ceiling, serial, self.target_ratio, RATIO_TOLERANCE)
            note = f"target {self.target_ratio:.3f}, tolerance {RATIO_TOLERANCE:.0%}"
        return Calibration(ceiling=ceiling, serial=serial, within=within, note=note, lesser=lesser)

    def _serial_files(self, at_most: int) -> int:
        """Enough chunks for a serial reading of about `_SERIAL_S`."""
        if self.device.shape is None:
            return at_most
        bandwidth = self.device.shape.read_bandwidth_bytes_per_s
        wanted = bandwidth / (self.target_ratio or PUBLISHED_RATIO) * _SERIAL_S
        return min(at_most, max(2, -(-int(wanted) // self.chunk_bytes)))


def _tuned(
    control: Control, read: Callable[[str], Reading], target_ratio: float
) -> tuple[Reading, Reading]:
    """One measured ceiling, and the serial reading after the latency was tuned to fit it."""
    ceiling, serial = read(CEILING), read(SERIAL)
    # (latency, seconds a byte): for a serial reader the second is linear in the first.
    points = [(0.0, 1 / ceiling.bytes_per_s)]
    for _ in range(MAX_STEPS):
        latency_ns = control.shape().read_latency_ns
        points.append((float(latency_ns), 1 / serial.bytes_per_s))
        too_slow = ceiling.bytes_per_s / serial.bytes_per_s > target_ratio
        if _is_within(ceiling, serial, target_ratio, RATIO_AIM) or (too_slow and not latency_ns):
            break
        wanted_ns = _next_latency(points[-2:], target_ratio / ceiling.bytes_per_s)
        if wanted_ns == latency_ns:
            break  # as near as it gets on a noisy machine; whether that is near enough is said
        control.set_shape(read_latency_ns=wanted_ns)
        serial = read(SERIAL)
    return ceiling, serial


def _next_latency(points: list[tuple[float, float]], target_s_per_byte: float) -> int:
    """Where the straight line through two points meets the target; never below zero."""
    (x0, y0), (x1, y1) = points
    if x1 == x0 or y1 == y0:
        raise SiteError(
            "the latency of the shaped device does not change its serial bandwidth",
            where="calibration",
            next_step="give the shape a latency above 0, and read shaped_fs.log",
        )
    return max(0, round(x1 + (target_s_per_byte - y1) * (x1 - x0) / (y1 - y0)))


def _is_within(ceiling: Reading, serial: Reading, target_ratio: float, tolerance: float) -> bool:
    ratio = ceiling.bytes_per_s / serial.bytes_per_s
    return abs(ratio / target_ratio - 1) <= tolerance


def _cold(
    device: ShapedDevice, kind: str, files: list[Path], chunk_bytes: int, raw_dir: Path | None
) -> Reading:
    done = subprocess.run(
        device.drop_command, cwd=_CHECKOUT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SiteError(
            f"dropping the page cache failed: {done.stderr.strip()}",
            where=" ".join(device.drop_command),
            next_step="run that command by hand; it needs root, or to own the KV directory",
        )
    return read_files(kind, files, chunk_bytes, raw_dir)


@contextmanager
def _chunk_files(device: ShapedDevice, chunk_bytes: int) -> Iterator[list[Path]]:
    """Files of one chunk each on the device, durable, enough for a ceiling reading."""
    wanted = _UNSHAPED_BYTES
    if device.shape is not None:
        wanted = round(device.shape.read_bandwidth_bytes_per_s * _CEILING_S)
    # Inside the KV directory: where only that may be evicted, these files must be too.
    folder = device.kv_dir / f"calibration-{time.monotonic_ns()}"
    folder.mkdir()
    files = [folder / f"{number}.bin" for number in range(max(2, -(-wanted // chunk_bytes)))]
    try:
        for path in files:
            with path.open("wb", buffering=0) as handle:
                # Each its own: a disk that finds equal blocks must gain nothing.
                handle.write(os.urandom(chunk_bytes))
                os.fsync(handle.fileno())
        yield files
    finally:
        for path in files:
            path.unlink(missing_ok=True)
        folder.rmdir()
