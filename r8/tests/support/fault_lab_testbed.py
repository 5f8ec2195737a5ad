"""The loop devices a fault lab stands on."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from r8.tests.support.fault_lab import Device, Fault, run_cell
from r8.tests.support.judged_run import findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.evidence.reader import Evidence
    from r8.model import Finding

# The least XFS takes; the image is sparse.
IMAGE_BYTES = 320 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedBed:
    """Two mounted devices, and one that only hangs there."""

    root: Path
    array: Device
    local: Device
    spare: str
    spare_image: Path

    def run(self, name: str, **fault: Any) -> Evidence:
        root = self.root / name
        root.mkdir()
        return run_cell(root, self.array, Fault(**fault))

    def judge(self, name: str, **fault: Any) -> dict[str, Finding]:
        return findings(self.run(name, **fault))


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{words[0]} does not work here: {done.stderr.strip()}")
    return done.stdout.strip()


def make_bed() -> Iterator[ShapedBed]:
    """Attach, format and mount; everything is taken down again afterwards."""
    if os.geteuid() != 0:
        pytest.skip("needs root for loop devices and mounts")
    # Others must be able to look in: residency is also read as somebody else.
    root = Path(tempfile.mkdtemp(prefix="r8-fault-lab-"))
    root.chmod(0o755)
    attached: list[str] = []
    mounted: list[Path] = []
    try:
        devices = []
        for name in ("array", "local"):
            image, mount = root / f"{name}.img", root / f"{name}-mount"
            with image.open("wb") as file:
                file.truncate(IMAGE_BYTES)
            mount.mkdir()
            attached.append(_run("losetup", "--find", "--show", str(image)))
            _run("mkfs.xfs", "-q", attached[-1])
            _run("mount", attached[-1], str(mount))
            mounted.append(mount)
            devices.append(Device(path=attached[-1], image=image, mount=mount))
        spare = root / "spare.img"
        spare.write_bytes(bytes(1 << 20))
        attached.append(_run("losetup", "--find", "--show", str(spare)))
        array, local = devices
        yield ShapedBed(root=root, array=array, local=local, spare=attached[-1], spare_image=spare)
    finally:
        for mount in mounted:
            subprocess.run(["umount", str(mount)], check=False)
        for device in attached:
            subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)
        shutil.rmtree(root, ignore_errors=True)
