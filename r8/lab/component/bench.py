"""Component bench: how fast LMCache's LocalDiskBackend reads chunk files, without any engine.

    PYTHONPATH=<lmcache tree> <engine python> r8/lab/component/bench.py --dir D --state patched ...

Chunks of distinct random bytes are stored through the backend, made durable, dropped from the page
cache, and read back in batches. Prints one JSON object; every buffer's SHA-256 is compared with
what was written. LMCache must already be in the state that is named (`r8 patch`).
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
from r8.units import NS_PER_S, mb_per_s


def main(arguments: list[str] | None = None) -> int:
    """Read once; exit 0, or 4 for an LMCache or a command line that does not fit."""
    options = _options(arguments)
    os.environ.setdefault("LMCACHE_TRACK_USAGE", "false")
    # INFO lines go to standard error; the read counter of every batch is among them.
    try:
        result = measure(options)
    except R8Error as error:
        print(f"component: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps(result) if options.json else _text(result))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--dir", type=Path, required=True, help="directory on the device")
    parser.add_argument("--state", choices=("patched", "unpatched"), required=True)
    parser.add_argument("--disk-io-threads", type=int, help="LMCache's own pool, from 0.5.1 on")
    parser.add_argument("--chunk-bytes", type=int, default=8 << 20)
    parser.add_argument("--chunks", type=int, default=40)
    parser.add_argument("--batch-chunks", type=int, help="chunks per read call (default: all)")
    parser.add_argument("--path", choices=("sync", "async"), default="sync")
    parser.add_argument("--threads", type=int, help="r8_read_threads")
    parser.add_argument("--segment-bytes", type=int, help="r8_segment_bytes")
    parser.add_argument("--odirect", action="store_true", help="LMCache's use_odirect")
    parser.add_argument("--warm", action="store_true", help="leave the files in the page cache")
    parser.add_argument("--rounds", type=int, default=1, help="read everything this many times")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Store, drop, read, compare. Instants are of the monotonic clock, in ns."""
    from r8.lab.component.rig import DiskRig  # noqa: PLC0415 - LMCache, after the environment

    batch_chunks = options.batch_chunks or options.chunks
    options.dir.mkdir(parents=True, exist_ok=True)
    if any(options.dir.iterdir()):
        raise UsageError(
            "the directory is not empty", where=str(options.dir), next_step="name a fresh one"
        )
    with DiskRig(
        options.dir,
        chunk_bytes=options.chunk_bytes,
        pool_chunks=batch_chunks,
        extra_config=_extra_config(options),
    ) as rig:
        _check_state(options, rig.disk)
        try:
            return _measure_in(rig, options, batch_chunks)
        finally:
            for number in range(options.chunks):
                Path(rig.path(number)).unlink(missing_ok=True)


def _extra_config(options: argparse.Namespace) -> dict[str, Any]:
    extra: dict[str, Any] = {"use_odirect": options.odirect}
    if options.disk_io_threads is not None:
        extra["disk_io_threads"] = options.disk_io_threads
    if options.threads is not None:
        extra["r8_read_threads"] = options.threads
    if options.segment_bytes is not None:
        extra["r8_segment_bytes"] = options.segment_bytes
    return extra


def _check_state(options: argparse.Namespace, disk: Any) -> None:
    state = "patched" if hasattr(disk, "r8_reader") else "unpatched"
    if state != options.state:
        raise PatchError(
            f"this LMCache is {state}, --state says {options.state}",
            where=str(sys.modules[type(disk).__module__].__file__),
            next_step="run `r8 patch apply` or `r8 patch revert` on it first",
        )
    if options.disk_io_threads is not None and not hasattr(disk, "_read_thread_pool"):
        raise PatchError(
            "this LMCache has no read pool of its own for --disk-io-threads",
            where=str(sys.modules[type(disk).__module__].__file__),
            next_step="put LMCache 0.5.6 in PYTHONPATH",
        )


def _measure_in(rig: Any, options: argparse.Namespace, batch_chunks: int) -> dict[str, Any]:
    from r8.lab.component.rig import evict_page_cache  # noqa: PLC0415 - as above

    written = {}
    for number in range(options.chunks):
        payload = _payload(options.seed, number, options.chunk_bytes)
        written[number] = hashlib.sha256(payload).digest()
        rig.store(number, payload)
    batches: list[dict[str, int]] = []
    for _ in range(options.rounds):
        for number in range(options.chunks):
            if not options.warm:
                evict_page_cache(rig.path(number))
        for first in range(0, options.chunks, batch_chunks):
            numbers = list(range(first, min(first + batch_chunks, options.chunks)))
            batches.append(_read_batch(rig, numbers, options, written))
    return _summary(options, batches, rig.allocated())


def _payload(seed: int, number: int, size: int) -> bytes:
    import numpy  # noqa: ICN001, PLC0415 - part of the engine's environment only

    return bytes(numpy.random.default_rng([seed, number]).bytes(size))


def _read_batch(
    rig: Any, numbers: list[int], options: argparse.Namespace, written: dict[int, bytes]
) -> dict[str, int]:
    storage, cpu = _storage_read_bytes(), time.process_time_ns()
    begin = time.monotonic_ns()
    buffers = rig.read(numbers, path=options.path)
    end = time.monotonic_ns()
    cpu, storage = time.process_time_ns() - cpu, _storage_read_bytes() - storage
    # The async path returns a prefix: what is not there is a miss.
    buffers = buffers + [None] * (len(numbers) - len(buffers))
    right = [
        hashlib.sha256(buffer.byte_array).digest() == written[number]
        for number, buffer in zip(numbers, buffers, strict=True)
        if buffer is not None
    ]
    rig.release(buffers)
    return {
        "begin_mono_ns": begin,
        "end_mono_ns": end,
        "read_bytes": len(right) * options.chunk_bytes,
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


def _summary(
    options: argparse.Namespace, batches: list[dict[str, int]], left: tuple[int, int]
) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(batch[name] for batch in batches)

    elapsed = sum(batch["end_mono_ns"] - batch["begin_mono_ns"] for batch in batches)
    settings = {
        name: getattr(options, name)
        for name in ("state", "path", "chunk_bytes", "chunks", "odirect", "warm", "rounds", "seed")
    }
    return {
        **settings,
        "lmcache_version": _lmcache_version(),
        "read_bytes": total("read_bytes"),
        "elapsed_ns": elapsed,
        "storage_read_bytes": total("storage_read_bytes"),
        "cpu_ns": total("cpu_ns"),
        "misses": total("misses"),
        "wrong_chunks": total("wrong_chunks"),
        "sha256_ok": total("wrong_chunks") == 0,
        "buffers_left": left[0],
        "batches": batches,
    }


def _lmcache_version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - used once

    return version("lmcache")


def _text(result: dict[str, Any]) -> str:
    rate = mb_per_s(result["read_bytes"] * NS_PER_S / result["elapsed_ns"])
    return (
        f"{result['state']} ({result['lmcache_version']}, {result['path']}): {rate:.1f} MB/s,"
        f" {result['misses']} misses, {result['wrong_chunks']} wrong chunks"
    )


if __name__ == "__main__":
    sys.exit(main())
