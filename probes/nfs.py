"""The NFS probe: what the kernel's NFS client counts for the mounts some directories lie on.

/proc/self/mountstats has one block a mount. Of an NFS mount (`statvers=1.0` or `1.1`) its line
`bytes:` holds eight numbers that only grow while it is mounted: read and written by programs the
ordinary way, the same with O_DIRECT, read from and written to the server, pages read and written;
`age:` is seconds since it was mounted. Read from the server is what left the other side: the page
cache is not in it.

Capture only: the form is the kernel's own, no NFS server was at hand to hold the numbers against,
and no rule of a certificate rests on them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from .epochs import EpochTracker
from .errors import reason_of
from .kernel_files import read_whole
from .mounts import unescape
from .readings import Reading, Sample, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BYTE_COUNTERS = (
    "normal_read_bytes",
    "normal_write_bytes",
    "direct_read_bytes",
    "direct_write_bytes",
    "server_read_bytes",
    "server_write_bytes",
    "read_pages",
    "write_pages",
)
AGE = "age_s"
_DEVICE = re.compile(r"^device (\S+) mounted on (\S+) with fstype (\S+)")
_FSTYPES = frozenset({"nfs", "nfs4"})


@dataclass(slots=True, kw_only=True)
class NfsMount:
    """One NFS mount; `counters` lacks what its block does not say as numbers."""

    mount: str
    source: str
    counters: dict[str, int] = field(default_factory=dict)


def parse_mountstats(text: str) -> list[NfsMount]:
    """The NFS mounts of a mountstats file, in its order; other file systems are left out."""
    found: list[NfsMount] = []
    of_nfs = False
    for line in text.splitlines():
        head = _DEVICE.match(line)
        if head is not None:
            of_nfs = head.group(3) in _FSTYPES
            if of_nfs:
                source, mount = unescape(head.group(1)), unescape(head.group(2))
                found.append(NfsMount(mount=mount, source=source))
            continue
        name, _, rest = line.strip().partition(":")
        words = rest.split()
        if not of_nfs or not all(word.isdigit() for word in words):
            continue
        if name == "bytes" and len(words) == len(BYTE_COUNTERS):
            found[-1].counters |= dict(zip(BYTE_COUNTERS, map(int, words), strict=True))
        elif name == "age" and len(words) == 1:
            found[-1].counters[AGE] = int(words[0])
    return found


def mount_of(mounts: Sequence[NfsMount], directory: str) -> NfsMount | None:
    """The NFS mount with the longest mount point at or above a directory."""
    target = PurePosixPath(directory)
    above = [one for one in mounts if target.is_relative_to(one.mount)]
    return max(above, key=lambda one: len(one.mount), default=None)


class NfsProbe:
    """One read of mountstats a sample; rows bear the mount point, an epoch a mount."""

    name = "nfs"

    def __init__(self, directories: Sequence[str], proc_root: Path) -> None:
        # Resolved once: a link read later would ask the mount itself, which may hang.
        self._directories = [os.path.realpath(one) for one in directories]
        self._path = f"{proc_root}/self/mountstats"
        self._epochs = EpochTracker()

    def sample(self) -> Sequence[Sample]:
        """Counters of every mount a directory lies on; a directory on none says so."""
        watch = Stopwatch()
        try:
            text = read_whole(self._path).decode("utf-8", "replace")
        except OSError as error:
            return [watch.sample(self.name, self._lost(reason_of(error)))]
        watch.stop()
        mounts, readings = parse_mountstats(text), []
        on = {directory: mount_of(mounts, directory) for directory in self._directories}
        for mount in {one.mount: one for one in on.values() if one is not None}.values():
            readings += self._readings(mount)
        readings += [
            Reading(device=directory, counter=AGE, reason="absent: on no NFS mount")
            for directory, mount in on.items()
            if mount is None
        ]
        return [watch.sample(self.name, readings)]

    def _lost(self, reason: str) -> list[Reading]:
        return [Reading(device=one, counter=AGE, reason=reason) for one in self._directories]

    def _readings(self, mount: NfsMount) -> list[Reading]:
        # A mount made anew is younger, and its counters begin again.
        cause = self._epochs.counters(mount.mount, mount.counters)
        epoch = self._epochs.current(mount.mount)
        readings = [
            Reading(device=mount.mount, counter=name, value=mount.counters[name], epoch=epoch)
            if name in mount.counters
            else Reading(
                device=mount.mount, counter=name, reason="absent: not told for it", epoch=epoch
            )
            for name in (*BYTE_COUNTERS, AGE)
        ]
        source = Reading(device=mount.mount, counter="source", text=mount.source, epoch=epoch)
        causes = (
            [Reading(device=mount.mount, counter="epoch_cause", text=cause, epoch=epoch)]
            if cause
            else []
        )
        return [*readings, source, *causes]
