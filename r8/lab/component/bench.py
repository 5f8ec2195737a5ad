"""Component bench: how fast LMCache's LocalDiskBackend reads chunk files, without any engine.

    PYTHONPATH=<lmcache> <engine python> r8/lab/component/bench.py --dir D --state patched

Chunks of distinct random bytes are stored through the backend, made durable, dropped from the page
cache, and read back in batches. Prints one JSON object; every buffer's SHA-256 is compared with
what was written. LMCache must already be in the patch state that is named (`r8 patch`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

if not __package__:
    # A script of the engine's Python: the checkout is not on its path, and this folder must not
    # be, since its modules have names of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[3])

from r8.errors import PatchError, R8Error, UsageError


def main() -> int:
    """Read once; exit 0, or 4 for an LMCache or a command line that does not fit."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--dir", type=Path, required=True, help="a fresh directory on the device")
    parser.add_argument("--state", choices=("patched", "unpatched"), required=True)
    parser.add_argument("--disk-io-threads", type=int, help="LMCache's own pool, from 0.5.1 on")
    parser.add_argument("--chunk-bytes", type=int, default=8 << 20)
    parser.add_argument("--chunks", type=int, default=40)
    parser.add_argument("--batch-chunks", type=int, help="chunks per read call (default: all)")
    os.environ.setdefault("LMCACHE_TRACK_USAGE", "false")
    # INFO lines go to standard error; the read counter of every batch is among them.
    try:
        result = measure(parser.parse_args())
    except R8Error as error:
        print(f"component: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps(result))
    return 0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Store, drop, read, compare. Instants are of the monotonic clock, in ns."""
    from r8.lab.component.rig import DiskRig  # noqa: PLC0415 - LMCache, after the environment

    options.dir.mkdir(parents=True, exist_ok=True)
    if any(options.dir.iterdir()):
        raise UsageError(
            "the directory is not empty", where=str(options.dir), next_step="name a fresh one"
        )
    extra: dict[str, Any] = {"use_odirect": False}
    if options.disk_io_threads is not None:
        extra["disk_io_threads"] = options.disk_io_threads
    batch_chunks = options.batch_chunks or options.chunks
    with DiskRig(
        options.dir, chunk_bytes=options.chunk_bytes, pool_chunks=batch_chunks, extra_config=extra
    ) as rig:
        _check_state(options, rig.disk)
        try:
            return _measure_in(rig, options, batch_chunks)
        finally:
            for number in range(options.chunks):
                Path(rig.path(number)).unlink(missing_ok=True)


def _check_state(options: argparse.Namespace, disk: Any) -> None:
    where = str(sys.modules[type(disk).__module__].__file__)
    state = "patched" if hasattr(disk, "r8_reader") else "unpatched"
    if state != options.state:
        raise PatchError(
            f"this LMCache is {state}, --state says {options.state}",
            where=where,
            next_step="run `r8 patch apply` or `r8 patch revert` on it first",
        )
    if options.disk_io_threads is not None and not hasattr(disk, "_read_thread_pool"):
        raise PatchError(
            "this LMCache has no read pool of its own for --disk-io-threads",
            where=where,
            next_step="put LMCache 0.5.6 in PYTHONPATH",
        )


def _measure_in(rig: Any, options: argparse.Namespace, batch_chunks: int) -> dict[str, Any]:
    from importlib.metadata import version  # noqa: PLC0415 - used once

    import numpy  # noqa: ICN001, PLC0415 - part of the engine's environment only

    from r8.lab.component.rig import evict_page_cache  # noqa: PLC0415 - LMCache

    written = {}
    for number in range(options.chunks):
        payload = bytes(numpy.random.default_rng([0, number]).bytes(options.chunk_bytes))
        written[number] = hashlib.sha256(payload).digest()
        rig.store(number, payload)
    for number in written:
        evict_page_cache(rig.path(number))
    numbers = list(written)
    batches = [
        _read_batch(rig, numbers[first : first + batch_chunks], options.chunk_bytes, written)
        for first in range(0, options.chunks, batch_chunks)
    ]
    sums = ("read_bytes", "storage_read_bytes", "cpu_ns", "misses", "wrong_chunks")
    return {
        **{name: getattr(options, name) for name in ("state", "chunk_bytes", "chunks")},
        **{name: sum(batch[name] for batch in batches) for name in sums},
        "lmcache_version": version("lmcache"),
        "elapsed_ns": sum(batch["end_mono_ns"] - batch["begin_mono_ns"] for batch in batches),
        "sha256_ok": not any(batch["wrong_chunks"] for batch in batches),
        "buffers_left": rig.allocated()[0],
        "batches": batches,
    }


def _read_batch(
    rig: Any, numbers: list[int], chunk_bytes: int, written: dict[int, bytes]
) -> dict[str, int]:
    storage, cpu = _storage_read_bytes(), time.process_time_ns()
    begin = time.monotonic_ns()
    buffers = rig.read(numbers, path="sync")
    end = time.monotonic_ns()
    cpu, storage = time.process_time_ns() - cpu, _storage_read_bytes() - storage
    right = [
        hashlib.sha256(buffer.byte_array).digest() == written[number]
        for number, buffer in zip(numbers, buffers, strict=True)
        if buffer is not None
    ]
    rig.release(buffers)
    return {
        "begin_mono_ns": begin,
        "end_mono_ns": end,
        "read_bytes": len(right) * chunk_bytes,
        "storage_read_bytes": storage,
        "cpu_ns": cpu,
        "chunks": len(numbers),
        "misses": len(numbers) - len(right),
        "wrong_chunks": right.count(False),
    }


def _storage_read_bytes() -> int:
    """What the block layer read for this process; sees O_DIRECT and page-cache fills alike."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


if __name__ == "__main__":
    sys.exit(main())
