"""The probes on loop devices and file systems of the running kernel."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from probes.block.disk import DiskSampler
from probes.block.place import place_of
from probes.block.sysfs import Sysfs
from probes.block.topology import TopologySampler, WatchedDevices
from probes.cache.known_read import known_read
from probes.cache.residency import evict_all, measure
from probes.tests.support.samplers import rows_by_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(name="loop")
def _loop(tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Attach a loop device to a file; called again, attach the same device to the same file."""
    if os.geteuid() != 0:
        pytest.skip("needs root to attach a loop device")
    image = tmp_path / "image"
    image.write_bytes(os.urandom(16 << 20))
    attached: list[str] = []

    def attach() -> str:
        if attached:
            subprocess.run(["losetup", "--detach", attached[0]], check=True)
            subprocess.run(["losetup", attached[0], str(image)], check=True)
            return attached[0]
        command = ["losetup", "--find", "--show", str(image)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"cannot attach a loop device: {done.stderr.decode().strip()}")
        attached.append(done.stdout.decode().strip())
        return attached[0]

    try:
        yield attach
    finally:
        for device in attached:
            subprocess.run(["losetup", "--detach", device], check=True)


def _read_sectors(probe: DiskSampler, name: str) -> float:
    return rows_by_device(probe)[name]["read_sectors"].value or 0


def _read_direct(device: str, size_bytes: int) -> None:
    command = ["dd", f"if={device}", "of=/dev/null", "bs=1M", "iflag=direct", "status=none"]
    subprocess.run([*command, f"count={size_bytes >> 20}"], check=True)


@pytest.mark.root
def test_bytes_read_from_a_real_loop_device_are_counted_to_the_sector(
    loop: Callable[[], str], tmp_path: Path
) -> None:
    path = loop()
    name = Path(path).name
    watched = WatchedDevices((name,), Sysfs())
    watched.resolve()
    probe = DiskSampler(watched, Path("/proc"))

    before = _read_sectors(probe, name)
    _read_direct(path, 8 << 20)
    assert _read_sectors(probe, name) - before == (8 << 20) // 512
    facts = rows_by_device(TopologySampler(watched))[name]
    assert (facts["kind"].text, facts["state"].text) == ("loop", "attached")
    assert facts["backing_file"].text == str(tmp_path / "image")


@pytest.mark.root
def test_a_loop_device_attached_anew_is_another_device_in_a_new_epoch(
    loop: Callable[[], str],
) -> None:
    name = Path(loop()).name
    watched = WatchedDevices((name,), Sysfs())
    watched.resolve()
    probe = DiskSampler(watched, Path("/proc"))
    probe.sample()
    if Sysfs().diskseq(name) is None:
        pytest.skip("this kernel gives no diskseq")
    loop()
    rows = rows_by_device(probe)[name]
    assert rows["reads"].epoch == 1
    assert "diskseq changed" in (rows["epoch_cause"].text or "")


@pytest.fixture(name="mounted")
def _mounted(loop: Callable[[], str], tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A file system on a loop device, mounted: (kernel name, mount point)."""
    device = loop()
    place = tmp_path / "mounted"
    place.mkdir()
    for command in (["mkfs.ext4", "-q", device], ["mount", device, str(place)]):
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"{command[0]} does not work here: {done.stderr.decode().strip()}")
    try:
        yield Path(device).name, place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
def test_an_evicted_file_is_read_again_from_the_very_device_its_row_names(
    mounted: tuple[str, Path],
) -> None:
    name, place = mounted
    (place / "kv").mkdir()
    file = place / "kv" / "a.pt"
    file.write_bytes(os.urandom(4 << 20))
    assert place_of(file, Sysfs())["device"] == name
    assert place_of(file, Sysfs())["mount"] == str(place)
    watched = WatchedDevices((name,), Sysfs())
    watched.resolve()
    probe = DiskSampler(watched, Path("/proc"))

    def read_bytes() -> float:
        before = _read_sectors(probe, name)
        file.read_bytes()
        return (_read_sectors(probe, name) - before) * 512

    assert read_bytes() == 0
    assert evict_all(place / "kv") == []
    row = next(measure(place / "kv", "after_drop", host="here", sysfs=Sysfs()))
    assert (row.device, row.resident_bytes, row.self_test) == (name, 0, True)
    assert read_bytes() == 4 << 20
    row = next(measure(place / "kv", "after_read", host="here", sysfs=Sysfs()))
    assert row.resident_bytes == 4 << 20


@pytest.mark.root
def test_a_known_read_of_a_device_is_what_the_device_counts(loop: Callable[[], str]) -> None:
    path = loop()
    name = Path(path).name
    watched = WatchedDevices((name,), Sysfs())
    watched.resolve()
    probe = DiskSampler(watched, Path("/proc"))
    before = _read_sectors(probe, name)
    assert known_read(Path(path), 8 << 20).read_bytes == 8 << 20
    assert _read_sectors(probe, name) - before == (8 << 20) // 512
