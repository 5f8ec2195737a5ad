"""The ladder of the rehearsal: the best storage device this machine can offer, and what it proves.

Each rung says in words what it can and cannot certify. A rung that fails while it is being built
is taken down again and the next one is tried, its reason kept in the note.
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.lab.rehearsal.device import (
    StageError,
    available_memory_bytes,
    choose_backing,
    directory,
    fuse_mount,
    loop_device,
    xfs_mount,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.rehearsal.control import Control
    from r8.lab.rehearsal.shape import Shape

_CAP_SYS_ADMIN = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of the ladder; `shaped` makes every number taken on it a modelled one."""

    name: str
    shaped: bool
    needs: tuple[str, ...]
    can: str
    cannot: str


LOOP = Rung(
    name="loop-xfs",
    shaped=True,
    needs=("root", "fuse", "mfusepy", "loop", "xfs"),
    can="the whole certificate: a real block device with its own counters, drop_caches, residency",
    cannot="measured speeds: the shape decides them, so every number is modelled",
)
FUSE = Rung(
    name="fuse",
    shaped=True,
    needs=("fuse", "mfusepy"),
    can="the arms against each other on a shaped device, residency of the KV files",
    cannot="C1 and C4: no block device of its own, so no device bytes; such a run is INVALID",
)
PLAIN = Rung(
    name="plain",
    shaped=False,
    needs=(),
    can="the whole certificate on the machine's own disk, cold by posix_fadvise",
    cannot="the published ratio: the device is not shaped, other users of the disk count as reads",
)
RUNGS = (LOOP, FUSE, PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing a rung needs; `saw` says where it was looked for and what to type to get it."""

    name: str
    present: bool
    saw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedDevice:
    """A storage device for KV files, ready to use. `control` is None where nothing is shaped."""

    name: str
    rung: Rung
    mount: Path
    kv_dir: Path
    block_device: str | None
    control: Control | None
    shape: Shape | None
    note: str
    drop_command: tuple[str, ...]


def capabilities() -> tuple[Capability, ...]:
    """What this machine can do; looks, and changes nothing."""
    fuse_ready = os.access("/dev/fuse", os.R_OK | os.W_OK)
    may_mount_fuse = os.geteuid() == 0 or shutil.which("fusermount3") is not None
    xfs = shutil.which("mkfs.xfs") is not None
    drop = os.access("/proc/sys/vm/drop_caches", os.W_OK)
    return (
        Capability(name="root", present=_may_mount(), saw="CAP_SYS_ADMIN of this process"),
        Capability(
            name="fuse",
            present=fuse_ready and may_mount_fuse,
            saw="/dev/fuse and fusermount3; apt-get install fuse3",
        ),
        Capability(name="mfusepy", present=_has_mfusepy(), saw="libfuse3 and mfusepy"),
        Capability(
            name="loop",
            present=os.access("/dev/loop-control", os.R_OK | os.W_OK)
            and shutil.which("losetup") is not None,
            saw="/dev/loop-control and losetup",
        ),
        Capability(name="xfs", present=xfs, saw="mkfs.xfs; apt-get install xfsprogs"),
        Capability(name="drop_caches", present=drop, saw="/proc/sys/vm/drop_caches writable"),
        Capability(
            name="fio",
            present=shutil.which("fio") is not None,
            saw="fio; own readers measure the ceiling without it; apt-get install fio",
        ),
    )


def first_rung(found: tuple[Capability, ...]) -> tuple[Rung, str]:
    """The best rung whose needs are met, and why the better ones are not taken."""
    present = {capability.name for capability in found if capability.present}
    reasons: list[str] = []
    for rung in RUNGS:
        missing = [name for name in rung.needs if name not in present]
        if not missing:
            return rung, "; ".join(reasons)
        reasons.append(f"{rung.name} needs {', '.join(missing)}")
    raise AssertionError("the last rung needs nothing")


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
    rung, passed_over = first_rung(capabilities())
    notes = [passed_over] if passed_over else []
    for candidate in RUNGS[RUNGS.index(rung) :]:
        with ExitStack() as stack:
            try:
                device = _build(candidate, shape, supervisor, work_dir / name, size_bytes, stack)
            except (StageError, OSError) as error:
                notes.append(f"{candidate.name} failed: {error}")
                continue
            note = "; ".join([device.note, *notes])
            yield _with(device, name=name, note=note)
            return
    raise SiteError(
        f"no storage device for {name}: {'; '.join(notes)}",
        where=str(work_dir),
        next_step="give a directory that can be written, or free the space it needs",
    )


def _build(
    rung: Rung, shape: Shape, supervisor: Supervisor, home: Path, size_bytes: int, stack: ExitStack
) -> ShapedDevice:
    home = home.absolute()
    work = stack.enter_context(directory(supervisor, home))
    if rung is PLAIN:
        _require_space(work, size_bytes)
        return _device(PLAIN, work, None, None, None, "unshaped directory")
    if rung is FUSE:
        _require_space(work, size_bytes)
        (work / "files").mkdir()
        source = ["--directory", str(work / "files")]
        mount, control = stack.enter_context(fuse_mount(supervisor, work, shape, source))
        return _device(FUSE, mount, None, control, shape, "FUSE directory")
    backing = choose_backing(size_bytes, work, available_memory_bytes())
    source = ["--image-bytes", str(size_bytes)]
    if backing.path is not None:
        _require_space(work, size_bytes)
        source += ["--backing", str(backing.path)]
    fuse, control = stack.enter_context(fuse_mount(supervisor, work, shape, source))
    block = stack.enter_context(loop_device(supervisor, fuse / "image", shape))
    mount = stack.enter_context(xfs_mount(supervisor, block, work / "xfs"))
    return _device(LOOP, mount, block, control, shape, f"image in {backing.reason}")


def _device(
    rung: Rung,
    mount: Path,
    block: str | None,
    control: Control | None,
    shape: Shape | None,
    note: str,
) -> ShapedDevice:
    kv_dir = mount / "kv"
    kv_dir.mkdir()
    return ShapedDevice(
        name="",
        rung=rung,
        mount=mount,
        kv_dir=kv_dir,
        block_device=block,
        control=control,
        shape=shape,
        note=note,
        drop_command=drop_command(kv_dir),
    )


def drop_command(kv_dir: Path) -> tuple[str, ...]:
    """Empties the page cache: all of it where allowed, else of the files in `kv_dir`."""
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        return ("sh", "-c", "sync && echo 3 > /proc/sys/vm/drop_caches")
    return (sys.executable, "-m", "probes", "evict", "--dir", str(kv_dir))


def _with(device: ShapedDevice, *, name: str, note: str) -> ShapedDevice:
    fields = {field: getattr(device, field) for field in ShapedDevice.__slots__}
    return ShapedDevice(**(fields | {"name": name, "note": note}))


def _require_space(path: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(path).free
    if free < size_bytes:
        raise StageError(f"{path} has {free} bytes free, {size_bytes} are needed")


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
