"""Where a file's bytes lie on its block device, so that a fault can be aimed at a KV file."""

from __future__ import annotations

import fcntl
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# From linux/fs.h and linux/fiemap.h.
_FS_IOC_FIEMAP = 0xC020660B
_FIEMAP_FLAG_SYNC = 1
_HEADER = struct.Struct("=QQIIII")
_EXTENT = struct.Struct("=QQQ2QI3I")
_MAX_EXTENTS = 512


def physical_ranges(path: Path) -> list[tuple[int, int, int]]:
    """(offset in the file, offset on the device, length) of each piece, in bytes.

    The file's delayed writes are flushed first. Beneath a file system on a whole loop device the
    device's offset is the image's.

    Raises:
        OSError: the file system cannot tell.
    """
    request = bytearray(_HEADER.size + _MAX_EXTENTS * _EXTENT.size)
    _HEADER.pack_into(request, 0, 0, 2**64 - 1, _FIEMAP_FLAG_SYNC, 0, _MAX_EXTENTS, 0)
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, _FS_IOC_FIEMAP, request)
    finally:
        os.close(handle)
    mapped = _HEADER.unpack_from(request)[3]
    found = []
    for index in range(mapped):
        fields = _EXTENT.unpack_from(request, _HEADER.size + index * _EXTENT.size)
        logical, physical, length = fields[:3]
        found.append((logical, physical, length))
    return found
