"""Where a path lies: its file system, the block device of its `st_dev`, and the layers below."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import ProbeError
from .mounts import mount_of_path

if TYPE_CHECKING:
    from pathlib import Path

    from .sysfs import Sysfs

_ANONYMOUS = "absent: st_dev names no block device (fuse, tmpfs, overlay, btrfs, network..)"


def place_of(path: Path, sysfs: Sysfs) -> dict[str, object]:
    """The answer of `topology --path`; `device` is null with a `reason` where there is none.

    `members` are the devices directly below, in order; `layers` are all of them, upper ones first.
    """
    try:
        st_dev = path.stat().st_dev
    except OSError as error:
        raise ProbeError(
            f"cannot look at the path: {error.strerror}",
            where=str(path),
            next_step="give --path something that exists",
        ) from error
    mounts = sysfs.mounts()
    number = f"{os.major(st_dev)}:{os.minor(st_dev)}"
    mount = mount_of_path(mounts, os.path.realpath(path))
    name = sysfs.name_of(number)
    device = sysfs.device(name, mounts) if name else None
    return {
        "st_dev": st_dev,
        "major_minor": number,
        "mount": mount.mount if mount else None,
        "fstype": mount.fstype if mount else None,
        "source": mount.source if mount else None,
        "device": name,
        "kind": device.kind if device else None,
        "members": list(device.members) if device else [],
        "parent": device.parent if device else None,
        "layers": list(sysfs.layers((name,), mounts)) if name else [],
        "diskseq": device.diskseq if device else None,
        "facts": device.facts if device else {},
        "reason": None if device else _ANONYMOUS,
    }
