"""Files the kernel makes up as they are read, and the words and integers in them."""

from __future__ import annotations

import os

from .samples import INT64_MAX

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


class KeptFile:
    """A kernel file kept open and read from its beginning each time, which makes it anew.

    Opening costs as much as reading, ten times a second. A file of a process or device that is gone
    answers with an error for ever, also when its number or name is used again.
    """

    __slots__ = ("_fd", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = None

    def read(self) -> bytes:
        """Every byte. Raises OSError; the next read then opens the file again."""
        if self._fd is None:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        parts, offset = [], 0
        try:
            while part := os.pread(self._fd, _READ_BYTES, offset):
                parts.append(part)
                offset += len(part)
        except OSError:
            self.close()
            raise
        return b"".join(parts)

    def close(self) -> None:
        """Close the file; the next read opens it again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def names_in(directory: str) -> list[str]:
    """Names in a directory of the kernel, sorted; none when it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


def read_word(path: str) -> str:
    """The text of a file that holds one word or line, without blanks around it. Raises OSError."""
    return read_whole(path).decode("utf-8", "replace").strip()


def word_or_none(path: str) -> str | None:
    """The text of such a file; None when it cannot be read."""
    try:
        return read_word(path)
    except OSError:
        return None


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


def counter_in(path: str) -> int | None:
    """The counter a file holds; None when it cannot be read or holds none."""
    try:
        return counter_of(read_whole(path).strip())
    except OSError:
        return None


def no_counter(text: bytes) -> str:
    """The reason of a file or column that should hold a counter and does not."""
    return f"failed: {text[:40].decode('ascii', 'replace')!r} is no counter"
