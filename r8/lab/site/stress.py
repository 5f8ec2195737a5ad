"""How fio measures a device of the site that is not shaped: sizes, depth, time limits."""

from __future__ import annotations

from typing import Annotated

import msgspec

from r8.units import BYTES_PER_MIB

# Where no link is declared: 2.5 s of a fast drive of today, little enough for a pool's file system.
DEFAULT_BYTES = 16 << 30
# Where one is: so much time at its full rate, beside which the start and the tail are small.
DEFAULT_LINK_S = 5.0
# A serial reader is slower by half an order of magnitude: it needs a share of the bytes.
SERIAL_SHARE = 8
# O_DIRECT wants sizes in blocks of the device.
ALIGNMENT_BYTES = 4096

_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Blocks = Annotated[int, msgspec.Meta(ge=ALIGNMENT_BYTES, multiple_of=ALIGNMENT_BYTES)]


class Stress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a device that is not shaped is measured, by fio, before every block.

    `read_bytes` None: 5 s at link_bytes_per_s, else 16 GiB; 0: the device is not measured.
    `seconds` bounds each of the two readings and `layout_seconds` the writing of each of the two
    sets of files; what was written until then is what is read.
    """

    read_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None
    block_bytes: _Blocks = BYTES_PER_MIB  # large enough that bandwidth, not requests, is the limit
    queue_depth: _Positive = (
        128  # of all threads: 10 times what a 100 Gb/s line holds in a millisecond
    )
    threads: _Positive = 4  # one thread's completions can be the limit above some GB/s
    seconds: _Positive = 10
    layout_seconds: _Positive = 60

    def ceiling_bytes(self, link_bytes_per_s: int | None) -> int:
        """Bytes laid out for the ceiling reading, whole blocks of every thread; 0: none."""
        wanted = self.read_bytes
        if wanted is None:
            wanted = DEFAULT_BYTES
            if link_bytes_per_s is not None:
                wanted = round(link_bytes_per_s * DEFAULT_LINK_S)
        each = self.block_bytes * self.threads
        return -(-wanted // each) * each

    def serial_files(self, ceiling_bytes: int, file_bytes: int) -> int:
        """Chunk files of the serial reading: at least two, one after another."""
        return max(2, ceiling_bytes // SERIAL_SHARE // file_bytes)

    @property
    def longest_s(self) -> int:
        """Both layouts and both readings, each to its limit."""
        return 2 * (self.seconds + self.layout_seconds)


def chunk_file_bytes(chunk_tokens: int, bytes_per_token: int, ranks: int) -> int:
    """Size of one chunk file, rounded up to what direct writes can write."""
    size = -(-chunk_tokens * bytes_per_token // ranks)
    return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
