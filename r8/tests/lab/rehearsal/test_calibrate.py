from __future__ import annotations

import dataclasses
import json
import shutil
from typing import TYPE_CHECKING

import pytest

from r8.errors import SiteError
from r8.lab.instruments import readers
from r8.lab.instruments.readers import CEILING, SERIAL, Calibration, Reading
from r8.lab.rehearsal import calibrate
from r8.lab.rehearsal.calibrate import PUBLISHED_RATIO, ShapedCalibrator
from r8.lab.rehearsal.fallback import LOOP, PLAIN, ShapedDevice
from r8.lab.rehearsal.shape import Shape
from r8.schema import CALIBRATION

if TYPE_CHECKING:
    from pathlib import Path

CHUNK = 1 << 20
BANDWIDTH = 200_000_000


class FakeControl:
    """Stands in for a running shaped file system: it only remembers its shape."""

    def __init__(self, latency_ns: int) -> None:
        self.latency_ns = latency_ns
        self.turns = 0

    def shape(self) -> Shape:
        return Shape(read_bandwidth_bytes_per_s=BANDWIDTH, read_latency_ns=self.latency_ns)

    def set_shape(self, *, read_latency_ns: int) -> Shape:
        self.latency_ns = read_latency_ns
        self.turns += 1
        return self.shape()


def device(tmp_path: Path, control: FakeControl | None) -> ShapedDevice:
    kv_dir = tmp_path / "kv"
    kv_dir.mkdir()
    return ShapedDevice(
        name="array",
        level=PLAIN if control is None else LOOP,
        kv_dir=kv_dir,
        block_device=None,
        control=control,  # type: ignore[arg-type]
        shape=None
        if control is None
        else Shape(read_bandwidth_bytes_per_s=4 * CHUNK, read_latency_ns=1),
        note="",
        drop_command=("true",),
    )


def measured(
    shaped: ShapedDevice, *, first: bool = True, target_ratio: float | None = PUBLISHED_RATIO
) -> Calibration:
    """As a campaign measures it before a block."""
    calibrator = ShapedCalibrator(
        device=shaped,
        chunk_bytes=CHUNK,
        target_ratio=target_ratio,
        raw_dir=shaped.kv_dir.parent / "raw",
        say=lambda _text: None,
    )
    return calibrator.measure(first=first)


def reading(name: str, bytes_per_s: float) -> Reading:
    return Reading(
        name=name,
        tool="fake",
        read_bytes=1_000_000_000,
        elapsed_ns=round(1e18 / bytes_per_s),
        block_bytes=CHUNK,
        queue_depth=1,
        direct=name == CEILING,
        mono_ns=1,
    )


def fake_reads(
    monkeypatch: pytest.MonkeyPatch, control: FakeControl | None, window: float, floor_s: float
) -> None:
    """A device whose serial time a byte is 1 / bandwidth + latency / window + a fixed cost."""

    def read(kind: str, files: list[Path], chunk_bytes: int, raw_dir: Path | None) -> Reading:
        assert all(path.stat().st_size == chunk_bytes for path in files)
        # An unprivileged drop evicts the KV directory only: elsewhere they would be read warm.
        assert all(path.parents[1].name == "kv" for path in files)
        latency_s = 0.0 if control is None else control.latency_ns / 1e9
        serial = 1 / (1 / BANDWIDTH + latency_s / window + floor_s)
        return reading(kind, BANDWIDTH if kind == CEILING else serial)

    monkeypatch.setattr(calibrate, "read_files", read)


@pytest.mark.parametrize("start_ns", [500_000, 6_000_000, 60_000_000])
def test_the_latency_is_tuned_until_the_published_ratio_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_ns: int
) -> None:
    control = FakeControl(start_ns)
    fake_reads(monkeypatch, control, window=270_000, floor_s=2e-10)
    found = measured(device(tmp_path, control))
    assert found.within is True
    assert found.ratio == pytest.approx(5.23 / 0.98, rel=0.02)
    assert control.turns <= calibrate.MAX_STEPS
    assert list((tmp_path / "kv").iterdir()) == []


def test_a_shape_already_right_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = FakeControl(6_000_000)
    window = 6e-3 * BANDWIDTH / (PUBLISHED_RATIO - 1)
    fake_reads(monkeypatch, control, window=window, floor_s=0.0)
    assert measured(device(tmp_path, control)).within is True
    assert control.turns == 0


def test_a_ratio_out_of_reach_is_said_to_be_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fixed cost alone is more than the target allows: no latency can help."""
    control = FakeControl(6_000_000)
    fake_reads(monkeypatch, control, window=270_000, floor_s=1e-7)
    found = measured(device(tmp_path, control))
    assert found.within is False
    assert control.latency_ns == 0


def test_a_latency_without_effect_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = FakeControl(6_000_000)
    fake_reads(monkeypatch, control, window=float("inf"), floor_s=0.0)
    with pytest.raises(SiteError, match="does not change"):
        measured(device(tmp_path, control))


@pytest.mark.parametrize("busy_at", [0, 1])
def test_a_ceiling_that_a_busy_machine_lowered_is_kept_beside_the_better_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy_at: int
) -> None:
    ceilings = [1.0, 1.0]
    ceilings[busy_at] = 0.95

    def read(kind: str, *_rest: object) -> Reading:
        share = ceilings.pop(0) if kind == CEILING else 0.2
        return reading(kind, BANDWIDTH * share)

    monkeypatch.setattr(calibrate, "read_files", read)
    found = measured(device(tmp_path, FakeControl(6_000_000)), first=False, target_ratio=None)
    assert found.ceiling.bytes_per_s == pytest.approx(BANDWIDTH)
    rows = found.rows("array")
    assert [row["name"] for row in rows] == [CEILING, CEILING, SERIAL]
    assert len({row["elapsed_ns"] for row in rows}) == 3


def test_an_unshaped_device_is_measured_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_reads(monkeypatch, None, window=1.0, floor_s=1e-9)
    monkeypatch.setattr(calibrate, "_UNSHAPED_BYTES", 4 * CHUNK)
    found = measured(device(tmp_path, None))
    assert found.within is None
    assert found.lesser == ()  # read once: the second time a disk's own cache would answer


def test_a_page_cache_that_cannot_be_dropped_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_reads(monkeypatch, None, window=1.0, floor_s=0.0)
    monkeypatch.setattr(calibrate, "_UNSHAPED_BYTES", 2 * CHUNK)
    command = ("sh", "-c", "echo no permission >&2; exit 1")
    stuck = dataclasses.replace(device(tmp_path, None), drop_command=command)
    with pytest.raises(SiteError, match="no permission"):
        measured(stuck)


def test_rows_bear_the_columns_of_the_calibration_table() -> None:
    row = reading(SERIAL, 1e9).row("array")
    assert set(row) <= {column.name for column in CALIBRATION.columns}
    assert row["device"] == "array"


@pytest.fixture
def chunk_files(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"{number}.bin" for number in range(3)]
    for path in files:
        path.write_bytes(b"x" * CHUNK)
    return files


@pytest.mark.parametrize("kind", [CEILING, SERIAL])
def test_own_readers_read_every_byte_and_say_that_they_are_no_fio(
    chunk_files: list[Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    found = readers.read_files(kind, chunk_files, CHUNK, None)
    assert found.read_bytes == 3 * CHUNK
    assert found.tool.startswith("own")
    assert found.elapsed_ns > 0


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("kind", [CEILING, SERIAL])
def test_fio_reads_every_byte_and_its_json_is_kept(
    chunk_files: list[Path], tmp_path: Path, kind: str
) -> None:
    found = readers.read_files(kind, chunk_files, CHUNK, tmp_path)
    assert (found.tool, found.read_bytes) == ("fio", 3 * CHUNK)
    (raw,) = tmp_path.glob("fio-*.json")
    assert json.loads(raw.read_text())["jobs"][0]["read"]["io_bytes"] == 3 * CHUNK


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_takes_as_many_files_as_a_fast_device_needs_in_a_folder_with_a_long_name(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ("calibration" * 10)
    folder.mkdir()
    files = [folder / f"{number}.bin" for number in range(200)]
    for path in files:
        path.write_bytes(b"x" * 4096)
    assert readers.read_files(SERIAL, files, 4096, None).read_bytes == 200 * 4096


def test_a_calibration_that_failed_is_tried_again_in_the_next_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "_UNSHAPED_BYTES", 2 * CHUNK)
    broken = dataclasses.replace(device(tmp_path, None), drop_command=("false",))
    for _block in range(2):
        with pytest.raises(SiteError, match="drop"):
            measured(broken)


def test_a_reader_that_fails_names_the_directory(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="serial failed"):
        readers.read_files(SERIAL, [tmp_path / "gone.bin"], CHUNK, None)
