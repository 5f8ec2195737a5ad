"""Files the kernel makes up as they are read: no size to go by, small, and read very often."""

from __future__ import annotations

import os

_READ_BYTES = 1 << 16


def read_whole(path: str) -> bytes:
    """Every byte of a kernel file, with as few system calls as it takes. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, _READ_BYTES):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)
