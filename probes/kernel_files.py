"""Files the kernel makes up as they are read, and the integers in them."""

from __future__ import annotations

import os

from .readings import INT64_MAX

_READ_BYTES = 1 << 16
_MAX_DIGITS = 19


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


def names_in(directory: str) -> list[str]:
    """Names in a directory of the kernel, sorted; none when it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


def counter_of(text: bytes | None, scale: int = 1) -> int | None:
    """An unsigned integer times `scale`; None for anything that is not one or exceeds 64 bits.

    Digits only: a sign, a dot or a letter makes no counter, and never a 0.
    """
    if text is None or not text.isdigit():
        return None
    # Leading zeros aside, 19 digits hold every signed 64-bit number; more are not worth reading.
    if len(text.lstrip(b"0")) > _MAX_DIGITS:
        return None
    value = int(text) * scale
    return value if value <= INT64_MAX else None
