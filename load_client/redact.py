"""An API key that a server repeats in its answer is blotted out before anything is written."""

from __future__ import annotations

from itertools import accumulate

from .capture import Read


def redacted(reads: tuple[Read, ...], key: str | None) -> tuple[Read, ...]:
    """The reads with every byte of `key` as `*`, also where it lies across reads; same sizes."""
    if key is None:
        return reads
    secret = key.encode("ascii")
    whole = b"".join(read.data for read in reads)
    if secret not in whole:
        return reads
    whole = whole.replace(secret, b"*" * len(secret))
    ends = list(accumulate(len(read.data) for read in reads))
    return tuple(
        Read(read.user_ns, read.kernel_wall_ns, whole[end - len(read.data) : end])
        for read, end in zip(reads, ends, strict=True)
    )
