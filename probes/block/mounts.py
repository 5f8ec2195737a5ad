"""/proc/self/mountinfo: which file system a path lies on, without touching that file system.

Nothing here calls stat on the path: a file system in user space that is slow or hung would hold
up the reader. The kernel's own table is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_OCTAL = re.compile(r"\\([0-7]{3})")
_MIN_FIELDS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One mounted file system."""

    major_minor: str  # of st_dev; major 0 means that no single block device is behind it
    mount: str
    fstype: str
    source: str


def unescape(text: str) -> str:
    """A path as the kernel's tables write it, with its blanks back in place."""
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), text)


def parse_mountinfo(text: str) -> list[Mount]:
    """Mounts in the kernel's order, later ones over earlier ones; unreadable lines are left out."""
    mounts = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, tail = before.split(" "), after.split(" ")
        if not separator or len(fields) < _MIN_FIELDS or len(tail) < 2:  # noqa: PLR2004
            continue
        mounts.append(
            Mount(
                major_minor=fields[2],
                mount=unescape(fields[4]),
                fstype=tail[0],
                source=unescape(tail[1]),
            )
        )
    return mounts


def mount_of_path(mounts: list[Mount], path: str) -> Mount | None:
    """The mount with the longest mount point above `path` (absolute, links resolved)."""
    target = PurePosixPath(path)
    best = None
    for mount in mounts:
        point = PurePosixPath(mount.mount)
        covers = target == point or point in target.parents
        if covers and (best is None or len(mount.mount) >= len(best.mount)):
            best = mount
    return best


def mounts_of_device(mounts: list[Mount], major_minor: str) -> list[str]:
    """Mount points of one block device, shortest first, each once."""
    points = {mount.mount for mount in mounts if mount.major_minor == major_minor}
    return sorted(points, key=lambda point: (len(point), point))
