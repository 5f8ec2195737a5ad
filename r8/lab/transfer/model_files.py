"""Model directories for loaders: sharded safetensors, made on the spot or found on a cluster."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.evidence.journal import sync_directory
from r8.units import BYTES_PER_MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

SUFFIX = ".safetensors"
# As large as the matrices of a small model; a shard holds several.
TENSOR_BYTES = 16 * BYTES_PER_MIB
_HALF_BYTES = 2


def make_model(directory: Path, data_bytes: int, shard_bytes: int, seed: int) -> None:
    """A directory of random half-precision weights in shards, each on the disk when this returns.

    Every model has weights of its own: a store that keeps equal blocks once would serve two models
    from one.
    """
    directory.mkdir()
    # Not for secrecy: the same seed makes the same bytes.
    noise = random.Random(f"{seed}/{directory.name}").randbytes(TENSOR_BYTES)  # noqa: S311
    sizes = list(_cut(data_bytes, shard_bytes))
    for number, size in enumerate(sizes, start=1):
        path = directory / f"model-{number:05d}-of-{len(sizes):05d}{SUFFIX}"
        _write_shard(path, noise, size, number)
        with path.open("rb") as handle:
            os.fsync(handle.fileno())
    sync_directory(directory)


def _cut(total: int, at_most: int) -> Iterator[int]:
    while total > 0:
        yield min(total, at_most)
        total -= at_most


def _write_shard(path: Path, noise: bytes, size: int, number: int) -> None:
    # Here and not above: only a lab that makes models needs them.
    import numpy as np  # noqa: PLC0415
    from safetensors.numpy import save_file  # noqa: PLC0415

    tensors = {}
    for place, length in enumerate(_cut(size, TENSOR_BYTES)):
        halves = np.frombuffer(noise, dtype=np.uint16, count=max(1, length // _HALF_BYTES)).copy()
        halves[0] = number * 1000 + place % 1000
        # Finite whatever the noise was: the exponent's top bit is taken out.
        tensors[f"layer.{number}.{place}.weight"] = (halves & 0xBFFF).view(np.float16)
    save_file(tensors, path)


def model_directories(root: Path) -> list[Path]:
    """Directories right below one that hold weights themselves: links lead to another device."""
    if not root.is_dir():
        return []
    return sorted(path for path in root.iterdir() if not path.is_symlink() and _weights(path))


def _weights(directory: Path) -> list[Path]:
    return [path for path in directory.glob(f"*{SUFFIX}") if not path.is_symlink()]


def found_models(root: Path, workers: int) -> list[Path]:
    """Model directories below a directory of the site, one for each worker, by name.

    Raises:
        SiteError: fewer than workers: two that read one model would read it once.

    """
    found = model_directories(root)
    if len(found) < workers:
        raise SiteError(
            f"{len(found)} model directories for {workers} workers",
            where=str(root),
            next_step=f"give each worker a directory of {SUFFIX} files of its own below it (no "
            "links), or leave files_dir out: models are then made on the spot",
        )
    return found[:workers]


def size_of(directories: Sequence[Path]) -> tuple[int, int]:
    """Number and bytes of all regular files below these directories."""
    return _sizes(
        path
        for directory in directories
        for path in directory.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


def weights_of(directories: Sequence[Path]) -> tuple[int, int]:
    """Number and bytes of the weight files alone: what a loader must read."""
    return _sizes(path for directory in directories for path in _weights(directory))


def _sizes(paths: Iterable[Path]) -> tuple[int, int]:
    sizes = [path.lstat().st_size for path in paths]
    return len(sizes), sum(sizes)
