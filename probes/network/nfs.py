"""The NFS probe: what the kernel's NFS client counts for the mounts some directories lie on.

/proc/self/mountstats has one block a mount. Of an NFS mount (`statvers=1.0` or `1.1`) its line
`bytes:` holds eight numbers that only grow while it is mounted: read and written by programs the
ordinary way, the same with O_DIRECT, read from and written to the server, pages read and written;
`age:` is seconds since it was mounted. Bytes read from the server do not include reads that the
page cache answered.

Tried on captures only: no NFS server was at hand to compare the numbers with, and no rule of a
certificate rests on them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ..block.mounts import unescape
from ..epochs import EpochTracker
from ..errors import reason_of
from ..kernel_files import read_whole
from ..plan import Setting, names
from ..probe import Context, Probe, Sampler, Status, Thread
from ..samples import Batch, Sample, Stopwatch, samples_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NAME = "nfs"


def _absolute(value: Any) -> tuple[str, ...] | None:
    given = names(value)
    return given if given is not None and all(one.startswith("/") for one in given) else None


NFS_DIRS: Setting[tuple[str, ...]] = Setting(
    key="nfs_dirs", default=(), accept=_absolute, example='absolute paths: ["/mnt/nfs/models"]'
)
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
    """One NFS mount; `counters` lacks what its block does not give as numbers."""

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


class NfsSampler:
    """One read of mountstats a sample; `device` is the mount point, each mount an epoch."""

    def __init__(self, directories: Sequence[str], proc_root: Path) -> None:
        # Resolved once: a link read later would ask the mount itself, which may hang.
        self._directories = [os.path.realpath(one) for one in directories]
        self._path = f"{proc_root}/self/mountstats"
        self._epochs = EpochTracker()

    def sample(self) -> Sequence[Batch]:
        """Counters of every mount a directory lies on, and a reason for one that is on none."""
        watch = Stopwatch()
        try:
            text = read_whole(self._path).decode("utf-8", "replace")
        except OSError as error:
            return [watch.batch(NAME, self._without(self._directories, reason_of(error)))]
        watch.stop()
        mounts = parse_mountstats(text)
        on = {directory: mount_of(mounts, directory) for directory in self._directories}
        samples: list[Sample] = []
        for mount in {one.mount: one for one in on.values() if one is not None}.values():
            samples += self._samples(mount)
        lost = [directory for directory, mount in on.items() if mount is None]
        return [watch.batch(NAME, samples + self._without(lost, "absent: on no NFS mount"))]

    def _without(self, directories: list[str], reason: str) -> list[Sample]:
        return [Sample(device=one, counter=AGE, reason=reason) for one in directories]

    def _samples(self, mount: NfsMount) -> list[Sample]:
        # A mount made anew is younger, and its counters begin again.
        cause = self._epochs.counters(mount.mount, mount.counters)
        missing = [name for name in (*BYTE_COUNTERS, AGE) if name not in mount.counters]
        return samples_of(
            mount.mount,
            mount.counters,
            {"source": mount.source},
            dict.fromkeys(missing, "absent: not told for it"),
            epoch=self._epochs.current(mount.mount),
            causes=[cause],
        )


def _start(context: Context) -> Mapping[str, Sampler]:
    directories = context.plan[NFS_DIRS]
    return {NAME: NfsSampler(directories, context.proc_root)} if directories else {}


def _check(context: Context) -> Status:
    text = read_whole(f"{context.proc_root}/self/mountstats").decode("utf-8", "replace")
    mounts = ", ".join(one.mount for one in parse_mountstats(text))
    return Status(works="yes" if mounts else "no", detail=mounts or "absent: no NFS mount here")


NFS = Probe(
    name=NAME,
    start=_start,
    check=_check,
    rate_hz=5.0,
    thread=Thread.PATIENT,
    settings=(NFS_DIRS,),
)
