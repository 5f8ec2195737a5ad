"""The best storage device this machine can offer a rehearsal, and what it cannot show.

A level that fails while it is being built is taken down again and the next one is tried, its reason
kept in the note.
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.lab.rehearsal.device import (
    StageError,
    available_memory_bytes,
    backing,
    directory,
    fuse_mount,
    loop_device,
    require_space,
    xfs_mount,
)
from r8.lab.site.machines import DROP_CACHES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.rehearsal.control import Control
    from r8.lab.rehearsal.shape import Shape

_CAP_SYS_ADMIN = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One kind of device: the capabilities it needs, and what runs on it cannot show."""

    name: str
    needs: tuple[str, ...]
    cannot: str


LOOP = Level(
    name="loop-xfs",
    needs=("root", "fuse", "mfusepy", "loop", "xfs"),
    cannot="measured speeds: the shape decides them, so every number is modelled",
)
FUSE = Level(
    name="fuse",
    needs=("fuse", "mfusepy"),
    cannot="C1 and C4: no block device of its own, so no device bytes; such a run is INVALID",
)
PLAIN = Level(
    name="plain",
    needs=(),
    cannot="the published ratio: the device is not shaped, other users of the disk count as reads",
)
LEVELS = (LOOP, FUSE, PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing a level needs; `saw` says where it was looked for and what to type to get it."""

    name: str
    present: bool
    saw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedDevice:
    """A storage device for KV files, ready to use. `control` is None where nothing is shaped."""

    name: str
    level: Level
    kv_dir: Path  # below the root of its file system
    block_device: str | None
    control: Control | None
    shape: Shape | None
    note: str
    drop_command: tuple[str, ...]


def capabilities() -> tuple[Capability, ...]:
    """What this machine can do; looks, and changes nothing."""

    def has(tool: str) -> bool:
        return shutil.which(tool) is not None

    def open_to_us(path: str) -> bool:
        return os.access(path, os.R_OK | os.W_OK)

    fuse = open_to_us("/dev/fuse") and (os.geteuid() == 0 or has("fusermount3"))
    loop = open_to_us("/dev/loop-control") and has("losetup")
    drop = os.access("/proc/sys/vm/drop_caches", os.W_OK)
    found = (
        ("root", _may_mount(), "CAP_SYS_ADMIN of this process"),
        ("fuse", fuse, "/dev/fuse and fusermount3; apt-get install fuse3"),
        ("mfusepy", _has_mfusepy(), "libfuse3 and mfusepy"),
        ("loop", loop, "/dev/loop-control and losetup"),
        ("xfs", has("mkfs.xfs"), "mkfs.xfs; apt-get install xfsprogs"),
        ("drop_caches", drop, "/proc/sys/vm/drop_caches writable"),
        ("fio", has("fio"), "fio; without it R8's own readers measure; apt-get install fio"),
    )
    return tuple(Capability(name=name, present=there, saw=saw) for name, there, saw in found)


def best_level(found: tuple[Capability, ...]) -> tuple[Level, str]:
    """The best level whose needs are met, and why the better ones are not taken."""
    present = {capability.name for capability in found if capability.present}
    missing = {one: [name for name in one.needs if name not in present] for one in LEVELS}
    best = next(one for one in LEVELS if not missing[one])
    better = LEVELS[: LEVELS.index(best)]
    return best, "; ".join(f"{one.name} needs {', '.join(missing[one])}" for one in better)


@contextmanager
def shaped_device(
    shape: Shape, supervisor: Supervisor, work_dir: Path, name: str, size_bytes: int
) -> Iterator[ShapedDevice]:
    """The best device this machine can build, taken down again at the end.

    Everything lies under `work_dir`/`name`, which must not exist. `size_bytes` is the size of the
    file system, not of the KV bytes that fit.

    Raises:
        SiteError: not even a plain directory could be made.
    """
    level, passed_over = best_level(capabilities())
    notes = [passed_over] if passed_over else []
    home = (work_dir / name).absolute()
    for candidate in LEVELS[LEVELS.index(level) :]:
        with ExitStack() as stack:
            try:
                device = _build(candidate, shape, supervisor, home, size_bytes, stack)
            except (StageError, OSError) as error:
                notes.append(f"{candidate.name} failed: {error}")
                continue
            yield replace(device, name=name, note="; ".join([device.note, *notes]))
            return
    raise SiteError(
        f"no storage device for {name}: {'; '.join(notes)}",
        where=str(work_dir),
        next_step="give a directory that can be written, or free the space it needs",
    )


def _build(
    level: Level, shape: Shape, supervisor: Supervisor, home: Path, size: int, stack: ExitStack
) -> ShapedDevice:
    mount = work = stack.enter_context(directory(supervisor, home))
    block: str | None = None
    control: Control | None = None
    if level is LOOP:
        memory, note = backing(size, available_memory_bytes())
        source = ["--image-bytes", str(size)]
        if not memory:
            require_space(work, size)
            source += ["--backing", str(work / "backing")]
        fuse, control = stack.enter_context(fuse_mount(supervisor, work, shape, source))
        block = stack.enter_context(loop_device(supervisor, fuse / "image", shape))
        mount = stack.enter_context(xfs_mount(supervisor, block, work / "xfs"))
    else:
        require_space(work, size)
        note = "unshaped directory"
    if level is FUSE:
        note, files = "FUSE directory", work / "files"
        files.mkdir()
        source = ["--directory", str(files)]
        mount, control = stack.enter_context(fuse_mount(supervisor, work, shape, source))
    kv_dir = mount / "kv"
    kv_dir.mkdir()
    return ShapedDevice(
        name="",
        level=level,
        kv_dir=kv_dir,
        block_device=block,
        control=control,
        shape=None if control is None else shape,
        note=note,
        drop_command=drop_command(kv_dir),
    )


def drop_command(kv_dir: Path) -> tuple[str, ...]:
    """Empties the page cache: all of it where allowed, else of the files in `kv_dir`."""
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        return DROP_CACHES
    return (sys.executable, "-m", "probes", "evict", "--dir", str(kv_dir))


def _may_mount() -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_ADMIN & 1)
    return False


def _has_mfusepy() -> bool:
    try:
        import mfusepy  # noqa: F401, PLC0415 - it loads libfuse at import, which may be missing
    except (ImportError, OSError):
        return False
    return ctypes.util.find_library("fuse3") is not None
