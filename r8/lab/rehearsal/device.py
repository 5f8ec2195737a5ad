"""The stages of a shaped device: image on FUSE, loop device on the image, XFS on the loop device.

Every stage notes its undoing in the supervisor before it acts, and raises `StageError` with the
words of the tool that refused, so that a lower level can be tried and say why.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.instruments.probes import CHECKOUT
from r8.lab.rehearsal.control import Control
from r8.lab.rehearsal.teardown import loop_devices_on, undo_argv
from r8.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from r8.lab.machine.supervisor import Process, Supervisor
    from r8.lab.rehearsal.shape import Shape

# An engine with its KV space, LMCache's CPU tier and the load client, all on the same machine.
ENGINE_RESERVE_BYTES = 8 * BYTES_PER_GIB
# Mounting takes tens of milliseconds; a daemon that has not answered by then will not.
_DAEMON_START_S = 15.0
_TOOL_TIMEOUT_S = 60.0
_DAEMON_GRACE_S = 3.0
DAEMON = "r8.lab.rehearsal.shaped_fs"


class StageError(Exception):
    """A stage could not be built on this machine; the message says which tool refused and why."""


def backing(size_bytes: int, available_bytes: int) -> tuple[bool, str]:
    """Whether the image lies in memory, which must hold it beside the engine; and why, in words."""
    gib = f"{size_bytes / BYTES_PER_GIB:.1f} GiB image"
    free = f"{available_bytes / BYTES_PER_GIB:.1f} GiB of memory available"
    if available_bytes >= size_bytes + ENGINE_RESERVE_BYTES:
        return True, f"image in memory: {gib}, {free}; the machine's disk stays out"
    return False, f"image in file: {gib}, only {free}; the machine's own disk must outrun the shape"


def require_space(path: Path, size_bytes: int) -> None:
    """StageError when a directory has less room."""
    free = shutil.disk_usage(path).free
    if free < size_bytes:
        raise StageError(f"{path} has {free} bytes free, {size_bytes} are needed")


def available_memory_bytes() -> int:
    """MemAvailable of this machine."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


@contextmanager
def directory(supervisor: Supervisor, path: Path) -> Iterator[Path]:
    """A directory that is removed with everything in it."""
    token = supervisor.on_exit(undo_argv("remove", path), f"directory {path.name}")
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        supervisor.undo(token)


@contextmanager
def fuse_mount(
    supervisor: Supervisor, work: Path, shape: Shape, source: Sequence[str]
) -> Iterator[tuple[Path, Control]]:
    """The shaped file system, mounted at `work`/fuse and answering orders.

    `source` is what it serves: `--image-bytes N [--backing FILE]` or `--directory DIR`.
    """
    mount, socket, log = work / "fuse", work / "control", work / "shaped_fs.log"
    mount.mkdir()
    undo = undo_argv("unmount", mount)
    # Noted on both sides of the start: the mount must be undone before the daemon is ended, and
    # also when this process is killed before it can note it after the start.
    early = supervisor.on_exit(undo, f"mount {mount}")
    argv = [sys.executable, "-m", DAEMON, str(mount)]
    argv += ["--control", str(socket), "--shape", json.dumps(asdict(shape)), *source]
    daemon = supervisor.spawn(
        "shaped_fs", argv, log_path=log, cwd=CHECKOUT, grace_s=_DAEMON_GRACE_S
    )
    late = supervisor.on_exit(undo, f"mount {mount}")
    try:
        control = Control(socket)
        _await_answer(control, daemon, log)
        yield mount, control
    finally:
        supervisor.undo_from(late)
        supervisor.stop(daemon, _DAEMON_GRACE_S)
        supervisor.undo(early)


@contextmanager
def loop_device(supervisor: Supervisor, image: Path, shape: Shape) -> Iterator[str]:
    """A loop device with direct IO on `image`; yields its kernel name, `loop0`."""
    token = supervisor.on_exit(undo_argv("detach", image), f"loop device on {image}")
    try:
        _tool("losetup", "--find", "--direct-io=on", str(image))
        (path,) = loop_devices_on(image)
        name = Path(path).name
        block = Path("/sys/block") / name
        # Through the page cache of the image a second read would not reach the shaped layer.
        if (block / "loop/dio").read_text().strip() != "1":
            raise StageError(f"losetup: {path} does not do direct IO on the FUSE image")
        (block / "queue/max_sectors_kb").write_text(str(shape.max_sectors_kib))
        (block / "queue/read_ahead_kb").write_text(str(shape.read_ahead_kib))
        yield name
    except OSError as error:
        raise StageError(f"loop device: {error}") from error
    finally:
        supervisor.undo(token)


@contextmanager
def xfs_mount(supervisor: Supervisor, block_device: str, mount: Path) -> Iterator[Path]:
    """A fresh XFS on a loop device, mounted at `mount`."""
    # The image is new and sparse: discarding it would only take time. No reflink, no reverse map:
    # less metadata to read cold beside the KV bytes.
    _tool("mkfs.xfs", "-q", "-f", "-K", "-m", "reflink=0,rmapbt=0", f"/dev/{block_device}")
    mount.mkdir()
    token = supervisor.on_exit(undo_argv("unmount", mount), f"mount {mount}")
    try:
        _tool("mount", "-t", "xfs", "-o", "noatime", f"/dev/{block_device}", str(mount))
        yield mount
    finally:
        supervisor.undo_from(token)


def _await_answer(control: Control, daemon: Process, log: Path) -> None:
    deadline = time.monotonic() + _DAEMON_START_S
    while True:
        try:
            control.shape()
        except OSError as error:
            if daemon.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace").strip().splitlines()[-1:] or [str(error)]
                raise StageError(f"shaped_fs: {said[0]}") from error
            time.sleep(0.02)
        else:
            return


def _tool(*argv: str) -> None:
    """Run a system tool. StageError with its last words when it fails or is missing."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_TOOL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StageError(f"{argv[0]}: {error}") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
        raise StageError(f"{' '.join(argv)}: exit code {done.returncode}, {words[0]}")
