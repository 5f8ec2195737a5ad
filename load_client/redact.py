"""An API key that a server repeats in its answer is blotted out before anything is written."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .capture import Reads


def redacted(reads: Reads, key: str | None) -> Reads:
    """The reads with every byte of `key` as `*`, also where it lies across reads; same sizes."""
    if key is None:
        return reads
    secret = key.encode("ascii")
    whole = b"".join(reads.data)
    if secret not in whole:
        return reads
    whole = whole.replace(secret, b"*" * len(secret))
    borders = accumulate(map(len, reads.data), initial=0)
    return replace(reads, data=[whole[begin:end] for begin, end in pairwise(borders)])
