"""A read of a known size past the page cache: what wire and device counters are held against.

A file or block device is read once, sequentially, with O_DIRECT. How many bytes that was is known
to the byte; what the network adapter counted meanwhile gives the overhead of its headers.
"""

from __future__ import annotations

import mmap
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ProbeError, reason_of

if TYPE_CHECKING:
    from pathlib import Path

# A multiple of every block size, and large enough that requests are merged no further.
BLOCK_BYTES = 1 << 20
# Enough requests in flight for a fabric link, few enough for one core.
THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRead:
    """What was read, and when, on the monotonic clock."""

    read_bytes: int
    begin_ns: int
    end_ns: int


def known_read(path: Path, size_bytes: int) -> KnownRead:
    """Read `size_bytes` (rounded down to whole blocks) from the front of `path` with O_DIRECT.

    Raises ProbeError when it cannot be opened so, is too small, or a read comes back short.
    """
    blocks = size_bytes // BLOCK_BYTES
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        raise _refused(path, reason_of(error)) from error
    try:
        available = _size(fd)
        if not 0 < blocks * BLOCK_BYTES <= available:
            raise _refused(path, f"{size_bytes} bytes wanted, {available} there")
        begin_ns = time.monotonic_ns()
        with ThreadPoolExecutor(max_workers=min(THREADS, blocks)) as pool:
            done = sum(pool.map(lambda share: _read(fd, share), _shares(blocks)))
        end_ns = time.monotonic_ns()
    except OSError as error:
        raise _refused(path, reason_of(error)) from error
    finally:
        os.close(fd)
    if done != blocks * BLOCK_BYTES:
        raise _refused(path, f"{done} bytes came of {blocks * BLOCK_BYTES}")
    return KnownRead(read_bytes=done, begin_ns=begin_ns, end_ns=end_ns)


def _shares(blocks: int) -> list[range]:
    return [range(first, blocks, THREADS) for first in range(min(THREADS, blocks))]


def _read(fd: int, numbers: range) -> int:
    # An anonymous mapping is page-aligned, as O_DIRECT wants its memory.
    with mmap.mmap(-1, BLOCK_BYTES) as buffer:
        return sum(os.preadv(fd, [buffer], number * BLOCK_BYTES) for number in numbers)


def _size(fd: int) -> int:
    if stat.S_ISBLK(os.fstat(fd).st_mode):
        return os.lseek(fd, 0, os.SEEK_END)
    return os.fstat(fd).st_size


def _refused(path: Path, why: str) -> ProbeError:
    return ProbeError(
        f"cannot read a known number of bytes: {why}",
        where=str(path),
        next_step="give --path a readable file or block device of at least --bytes, not on tmpfs",
    )
