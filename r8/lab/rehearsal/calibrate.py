"""What the device itself gives, and turning its latency until the published ratio is met.

`ceiling` is the best the device gives: many large direct reads in flight. `serial` is exactly what
LMCache's own base does: whole chunk files through the page cache, one after another. The shape is
right when ceiling : serial is the published 5.23 : 0.98.
"""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.lab.instruments.readers import CEILING, SERIAL, Reading, read_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.lab.rehearsal.control import Control
    from r8.lab.rehearsal.fallback import ShapedDevice
    from r8.lab.rehearsal.shape import Shape

PUBLISHED_CEILING_GB_PER_S = 5.23
PUBLISHED_SERIAL_GB_PER_S = 0.98
PUBLISHED_RATIO = PUBLISHED_CEILING_GB_PER_S / PUBLISHED_SERIAL_GB_PER_S
RATIO_TOLERANCE = 0.02
# Turning goes on until this: a first reading that is barely inside leaves nothing for its noise.
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
class Calibration:
    """The last readings, the shape they were taken on, and what they came to.

    `ratio` is ceiling over serial. `within` is None where nothing could be turned. `lesser` are
    ceilings that came out lower: they are in the table, of which the best counts.
    """

    ceiling: Reading
    serial: Reading
    shape: Shape | None
    ratio: float
    within: bool | None
    note: str
    lesser: tuple[Reading, ...] = ()

    def rows(self, device: str) -> list[dict[str, object]]:
        """Rows of the calibration table."""
        return [one.row(device) for one in (*self.lesser, self.ceiling, self.serial)]


def calibrate(
    device: ShapedDevice,
    chunk_bytes: int,
    target_ratio: float | None = PUBLISHED_RATIO,
    raw_dir: Path | None = None,
) -> Calibration:
    """Measure, turn the latency, measure again; at most `MAX_STEPS` turns, under 40 seconds.

    What misses the ratio is measured anew, up to `ATTEMPTS` times, and a miss that stays is
    returned as one (`within` False), not hidden.
    Without a target nothing is turned: the device is measured as it was shaped.
    The files it reads lie in the device's file system and are gone afterwards. `raw_dir` keeps
    fio's own JSON.

    Raises:
        SiteError: the device gave out no bytes, or the page cache could not be dropped.
    """
    with _chunk_files(device, chunk_bytes) as files:
        ratio = target_ratio or PUBLISHED_RATIO
        few = files[: _serial_files(device, chunk_bytes, ratio, len(files))]

        def read(kind: str) -> Reading:
            wanted = files if kind == CEILING else few
            return _cold(device, kind, wanted, chunk_bytes, raw_dir)

        if device.control is None or target_ratio is None:
            return _measured(device, read, target_ratio)
        for _ in range(ATTEMPTS):
            found = _turn(device.control, read, target_ratio)
            if found.within:
                break
        return found


def measure_again(
    device: ShapedDevice, chunk_bytes: int, target_ratio: float | None = PUBLISHED_RATIO
) -> Calibration:
    """Both readings once more, nothing turned: what the device gives before a later block.

    Raises:
        SiteError: as `calibrate`.
    """
    with _chunk_files(device, chunk_bytes) as files:
        ratio = target_ratio or PUBLISHED_RATIO
        few = files[: _serial_files(device, chunk_bytes, ratio, len(files))]

        def read(kind: str) -> Reading:
            wanted = files if kind == CEILING else few
            return _cold(device, kind, wanted, chunk_bytes, None)

        return _measured(device, read, target_ratio)


def _measured(
    device: ShapedDevice, read: Callable[[str], Reading], target_ratio: float | None
) -> Calibration:
    """Both readings, nothing turned. Files of an unshaped device are read once: it has caches."""
    control = device.control
    times = 1 if control is None else CEILING_READINGS
    *lesser, ceiling = sorted(
        (read(CEILING) for _ in range(times)), key=lambda one: one.bytes_per_s
    )
    shape = None if control is None else control.shape()
    found = _result(ceiling, read(SERIAL), shape, target_ratio)
    return replace(found, lesser=tuple(lesser))


def _turn(control: Control, read: Callable[[str], Reading], target_ratio: float) -> Calibration:
    """One measured ceiling, and the latency turned until the serial reading fits it."""
    ceiling, serial = read(CEILING), read(SERIAL)
    # (latency, seconds a byte): for a serial reader the second is linear in the first.
    points = [(0.0, 1 / ceiling.bytes_per_s)]
    for _ in range(MAX_STEPS):
        latency_ns = control.shape().read_latency_ns
        points.append((float(latency_ns), 1 / serial.bytes_per_s))
        too_slow = ceiling.bytes_per_s / serial.bytes_per_s > target_ratio
        if _is_within(ceiling, serial, target_ratio, RATIO_AIM) or (too_slow and not latency_ns):
            break
        turned = _next_latency(points[-2:], target_ratio / ceiling.bytes_per_s)
        if turned == latency_ns:
            break  # as near as it gets on a noisy machine; whether that is near enough is said
        control.set_shape(read_latency_ns=turned)
        serial = read(SERIAL)
    return _result(ceiling, serial, control.shape(), target_ratio)


def _next_latency(points: list[tuple[float, float]], target_s_per_byte: float) -> int:
    """Where the straight line through two points meets the target; never below zero."""
    (x0, y0), (x1, y1) = points
    if x1 == x0 or y1 == y0:
        raise SiteError(
            "the latency of the shaped device does not change its serial bandwidth",
            where="calibration",
            next_step="give the shape a latency above 0, and look at shaped_fs.log",
        )
    return max(0, round(x1 + (target_s_per_byte - y1) * (x1 - x0) / (y1 - y0)))


def _is_within(
    ceiling: Reading, serial: Reading, target_ratio: float, tolerance: float = RATIO_TOLERANCE
) -> bool:
    ratio = ceiling.bytes_per_s / serial.bytes_per_s
    return abs(ratio / target_ratio - 1) <= tolerance


def _result(
    ceiling: Reading, serial: Reading, shape: Shape | None, target_ratio: float | None
) -> Calibration:
    within: bool | None = None
    note = "unshaped: measured only" if shape is None else "no ratio was published: measured only"
    if shape is not None and target_ratio is not None:
        within = _is_within(ceiling, serial, target_ratio)
        note = f"target {target_ratio:.3f}, tolerance {RATIO_TOLERANCE:.0%}"
    return Calibration(
        ceiling=ceiling,
        serial=serial,
        shape=shape,
        ratio=ceiling.bytes_per_s / serial.bytes_per_s,
        within=within,
        note=note,
    )


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
            next_step="run as root, or let the ladder take the plain rung",
        )
    return read_files(kind, files, chunk_bytes, raw_dir)


def _serial_files(device: ShapedDevice, chunk_bytes: int, ratio: float, at_most: int) -> int:
    """Enough chunks for a serial reading of about `_SERIAL_S`."""
    if device.shape is None:
        return at_most
    wanted = device.shape.read_bandwidth_bytes_per_s / ratio * _SERIAL_S
    return min(at_most, max(2, -(-int(wanted) // chunk_bytes)))


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
