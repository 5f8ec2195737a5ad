"""A file system in user space whose reads take the time a shaped device would take.

    python -m r8.lab.rehearsal.shaped_fs MOUNT --control SOCKET --shape JSON --image-bytes N
    python -m r8.lab.rehearsal.shaped_fs MOUNT --control SOCKET --shape JSON --directory DIR

Either one file, `/image`, for a loop device to stand on, backed by memory (sparse, gone with this
process) or by `--backing FILE`; or a whole directory passed through. Runs in the foreground until
unmounted or told to end by SIGTERM.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import mfusepy as fuse

from r8.lab.rehearsal.control import Plant, serve
from r8.lab.rehearsal.shape import Shape

IMAGE = "image"
# libfuse serves 10 requests at a time and the kernel queues 12 unless told otherwise; both would
# be the ceiling of the modelled device instead of its bandwidth.
MAX_THREADS = 64
MAX_BACKGROUND = 128
CONGESTION_THRESHOLD = 96
_NS_PER_S = 1_000_000_000


class ShapedOperations(fuse.Operations):  # type: ignore[misc]  # mfusepy is skipped by mypy
    """What both forms share: paced reads and writes on open file descriptors.

    Attributes must not bear the name of a FUSE operation: mfusepy takes them for the handler.
    """

    use_ns = True

    def __init__(self, plant: Plant, control_path: Path) -> None:
        """The control socket opens once the file system is mounted."""
        self._plant = plant
        self._control_path = control_path

    def init_with_config(self, conn_info: Any, config_3: Any) -> None:  # noqa: ARG002
        """Lift the kernel's limits on requests in flight, then answer orders."""
        if conn_info is not None:
            conn_info.max_background = MAX_BACKGROUND
            conn_info.congestion_threshold = CONGESTION_THRESHOLD
        serve(self._plant, self._control_path)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:  # noqa: ARG002
        """The bytes, at the instant the shape gives them out."""
        due_ns = self._plant.reading.admit(size, time.monotonic_ns())
        data = os.pread(fh, size, offset)
        sleep_until(due_ns)
        return data

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:  # noqa: ARG002
        """All of the bytes, paced when the shape says so."""
        sleep_until(self._plant.writing.admit(len(data), time.monotonic_ns()))
        return os.pwrite(fh, data, offset)

    def fsync(self, path: str, datasync: int, fh: int) -> int:  # noqa: ARG002
        """Make it durable in the backing.

        A write is answered when the line has carried it, so what a caller may flush has left the
        line already: only the backing is left to be asked.
        """
        os.fsync(fh)
        return 0

    def flush(self, path: str, fh: int) -> int:  # noqa: ARG002
        """Nothing is held back."""
        return 0


class ImageOperations(ShapedOperations):
    """A root directory with one file."""

    def __init__(self, plant: Plant, control_path: Path, backing: int) -> None:
        """`backing` is an open descriptor of the image's size."""
        super().__init__(plant, control_path)
        self._backing = backing

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:  # noqa: ARG002
        """The root, or the image."""
        owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o700, "st_nlink": 2, **owner}
        self._check(path)
        size = os.fstat(self._backing).st_size
        return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": size, **owner}

    def readdir(self, path: str, fh: int) -> list[str]:  # noqa: ARG002
        """One name."""
        return [".", "..", IMAGE]

    def open(self, path: str, flags: int) -> int:  # noqa: ARG002
        """The backing serves every opener."""
        self._check(path)
        return self._backing

    def statfs(self, path: str) -> dict[str, int]:  # noqa: ARG002
        """As large as the image, and full."""
        blocks = os.fstat(self._backing).st_size // 4096
        return {"f_bsize": 4096, "f_frsize": 4096, "f_blocks": blocks, "f_namemax": 255}

    @staticmethod
    def _check(path: str) -> None:
        if path != f"/{IMAGE}":
            raise fuse.FuseOSError(errno.ENOENT)


class DirectoryOperations(ShapedOperations):
    """A directory of the machine, passed through."""

    def __init__(self, plant: Plant, control_path: Path, root: Path) -> None:
        """`root` is served as the mount's root."""
        super().__init__(plant, control_path)
        self._root = str(root.resolve())

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        """As the directory has it."""
        found = os.lstat(self._root + path) if fh is None else os.fstat(fh)
        names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_ino", "st_blocks")
        times = {f"st_{kind}time": getattr(found, f"st_{kind}time_ns") for kind in "amc"}
        return {name: getattr(found, name) for name in names} | times

    def readdir(self, path: str, fh: int) -> list[str]:  # noqa: ARG002
        """As the directory has it."""
        return [".", "..", *os.listdir(self._root + path)]  # noqa: PTH208 - names, not paths

    def open(self, path: str, flags: int) -> int:
        """Without O_DIRECT: the backing's own alignment is no concern of the reader's."""
        return os.open(self._root + path, flags & ~os.O_DIRECT)

    def create(self, path: str, mode: int, fi: Any = None) -> int:  # noqa: ARG002
        """A new file, or an old one emptied."""
        return os.open(self._root + path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)

    def release(self, path: str, fh: int) -> int:  # noqa: ARG002
        """Close it."""
        os.close(fh)
        return 0

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        """To `length` bytes."""
        os.truncate(self._root + path if fh is None else fh, length)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(self._root + path)  # noqa: PTH108 - FUSE speaks text, not paths

    def rename(self, old: str, new: str) -> None:
        """Move a file over another."""
        os.replace(self._root + old, self._root + new)  # noqa: PTH105

    def mkdir(self, path: str, mode: int) -> None:
        """Make a directory."""
        os.mkdir(self._root + path, mode)  # noqa: PTH102

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(self._root + path)  # noqa: PTH106

    def statfs(self, path: str) -> dict[str, int]:
        """As the directory's file system has it."""
        found = os.statvfs(self._root + path)
        names = ("bsize", "frsize", "blocks", "bfree", "bavail", "files", "ffree", "favail")
        return {f"f_{name}": getattr(found, f"f_{name}") for name in (*names, "namemax")}


def sleep_until(due_ns: int) -> None:
    """Wait for an instant of the monotonic clock."""
    left_ns = due_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / _NS_PER_S)


def _open_backing(path: Path | None, size_bytes: int) -> int:
    """Sparse: memory is taken, or disk, as blocks are written."""
    if path is None:
        handle = os.memfd_create("r8-shaped-image")
    else:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.truncate(handle, size_bytes)
    return handle


def main(
    plant: type[Plant] = Plant,
    image: type[ImageOperations] = ImageOperations,
    directory: type[DirectoryOperations] = DirectoryOperations,
) -> int:
    """Mount and serve until the end."""
    parser = argparse.ArgumentParser(prog="shaped_fs", description=__doc__.splitlines()[0])
    parser.add_argument("mount", type=Path)
    parser.add_argument("--control", type=Path, required=True)
    parser.add_argument("--shape", required=True, help="fields of Shape as a JSON object")
    parser.add_argument("--image-bytes", type=int)
    parser.add_argument("--backing", type=Path)
    parser.add_argument("--directory", type=Path)
    args = parser.parse_args()
    moving = plant(Shape(**json.loads(args.shape)))
    operations: ShapedOperations
    if args.directory is not None:
        operations = directory(moving, args.control, args.directory)
    else:
        backing = _open_backing(args.backing, args.image_bytes)
        operations = image(moving, args.control, backing)
    fuse.FUSE(
        operations,
        str(args.mount),
        foreground=True,
        nothreads=False,
        max_threads=MAX_THREADS,
        max_idle_threads=MAX_THREADS,
        fsname="r8-shaped",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
