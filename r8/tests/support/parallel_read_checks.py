"""Behaviour of the installed reader that needs the real LMCache; run by the engine's Python.

Prints one JSON object: name of a check -> "ok", or what was seen instead.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[3])
os.environ.setdefault("LMCACHE_TRACK_USAGE", "false")

from lmcache.v1.storage_backend import r8_parallel_read

from r8.lab.component.rig import DiskRig

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK_BYTES = 200_000
LOADED = re.compile(
    r"R8-PATCH loaded module_sha256=[0-9a-f]{64} mode=(parallel|serial) threads=\d+"
    r" segment_bytes=\d+ odirect=[01] path=\S+"
)
READ = re.compile(
    r"R8-PATCH read id=\d+ path=(sync|async) keys=\d+ segments=\d+ bytes=\d+ misses=\d+"
)


class Lines(logging.Handler):
    """Keeps the reader's log lines."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


def rig(directory: Path, pool_chunks: int = 8, **extra: Any) -> DiskRig:
    extra = {"r8_segment_bytes": 65536, **extra}
    return DiskRig(directory, chunk_bytes=CHUNK_BYTES, pool_chunks=pool_chunks, extra_config=extra)


def stored(directory: Path, count: int = 3, **extra: Any) -> DiskRig:
    found = rig(directory, **extra)
    for number in range(count):
        found.store(number, bytes([number]) * CHUNK_BYTES)
    return found


def same(found: list[Any], numbers: list[int]) -> bool:
    return [bytes(one.byte_array[:1])[0] for one in found] == numbers


def expect(condition: bool, otherwise: object = "not so") -> str:  # noqa: FBT001
    return "ok" if condition else str(otherwise)


def both_log_lines_have_the_agreed_form(directory: Path) -> str:
    lines = Lines()
    r8_parallel_read.logger.addHandler(lines)
    disk = stored(directory)
    disk.release(disk.read([0, 1, 2], path="sync"))
    r8_parallel_read.logger.removeHandler(lines)
    loaded, read = lines.seen
    digest = r8_parallel_read.MODULE_SHA256
    good = LOADED.fullmatch(loaded) and READ.fullmatch(read) and digest in loaded
    return expect(bool(good) and "keys=3 segments=12 bytes=600000 misses=0" in read, lines.seen)


def serial_mode_reads_by_lmcaches_own_methods(directory: Path) -> str:
    lines = Lines()
    r8_parallel_read.logger.addHandler(lines)
    disk = stored(directory, r8_read_mode="serial")
    files: list[str] = []
    own = disk.disk.read_file

    def counted(key: object, buffer: object, path: str) -> None:
        files.append(path)
        own(key, buffer, path)

    disk.disk.read_file = counted
    found = disk.read([0, 1, 2], path="sync")
    r8_parallel_read.logger.removeHandler(lines)
    return expect(
        len(files) == 3 and same(found, [0, 1, 2]) and "mode=serial" in lines.seen[0], lines.seen
    )


def results_are_in_the_order_of_the_keys(directory: Path) -> str:
    disk = stored(directory)
    return expect(same(disk.read([2, 0, 1], path="sync"), [2, 0, 1]))


def one_thread_is_enough(directory: Path) -> str:
    disk = stored(directory, r8_read_threads=1)
    return expect(same(disk.read([0, 1, 2], path="async"), [0, 1, 2]))


def an_unknown_key_is_a_miss_in_its_place(directory: Path) -> str:
    found = stored(directory).read([0, 99, 2], path="sync")
    return expect(found[1] is None and same([found[0], found[2]], [0, 2]))


def get_blocking_reads_one_chunk(directory: Path) -> str:
    disk = stored(directory)
    found = disk.disk.get_blocking(disk.key(1))
    return expect(same([found], [1]) and disk.disk.get_blocking(disk.key(9)) is None)


def bad_settings_are_refused_by_name(directory: Path) -> str:
    bad: dict[str, Any] = {"r8_read_threads": 0, "r8_segment_bytes": 1000, "r8_read_mode": "fast"}
    refused = []
    for name, value in bad.items():
        try:
            rig(directory, **{name: value})
        except ValueError as error:
            refused.append(name in str(error))
    return expect(refused == [True] * 3, refused)


def a_full_tier_is_a_miss_and_not_a_hang(directory: Path) -> str:
    r8_parallel_read.ALLOCATE_WAIT_S = 0.1
    # The pool's slack holds a good many of these small chunks: ask for more than fit.
    disk = rig(directory, pool_chunks=1)
    count = 120
    for number in range(count):
        disk.store(number, bytes([number]) * CHUNK_BYTES)
    found = disk.read(list(range(count)), path="sync")
    kept = [one for one in found if one is not None]
    disk.release(kept)
    right = same(kept, list(range(len(kept))))
    prefix = disk.read(list(range(count)), path="async")
    disk.release(prefix)
    clean = disk.allocated() == (0, 0)
    return expect(
        0 < len(kept) < count and right and 0 < len(prefix) < count and clean,
        (len(kept), len(prefix), disk.allocated()),
    )


def trouble_of_the_machine_keeps_the_chunk_in_the_index(directory: Path) -> str:
    disk = stored(directory)

    def no_handles(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    real = os.open
    os.open = no_handles  # type: ignore[assignment]
    missed = disk.read([0], path="sync")
    os.open = real
    return expect(missed == [None] and same(disk.read([0], path="sync"), [0]))


def a_layerwise_read_that_lost_a_chunk_raises(directory: Path) -> str:
    disk = stored(directory)
    Path(disk.path(1)).unlink()
    keys = [disk.key(number) for number in range(3)]
    call = disk.disk.batched_get_non_blocking("fake_lookup_id", keys)
    try:
        asyncio.run_coroutine_threadsafe(call, disk.loop).result()
    except r8_parallel_read.LayerwiseMissError:
        return expect(disk.allocated() == (0, 0), disk.allocated())
    return "it returned"


def a_cancelled_request_gives_its_buffers_back(directory: Path) -> str:
    disk = stored(directory)

    async def cancelled() -> None:
        keys = [disk.key(number) for number in range(3)]
        task = asyncio.ensure_future(disk.disk.batched_get_non_blocking("one", keys))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run_coroutine_threadsafe(cancelled(), disk.loop).result()
    # The read itself ends before the backend closes.
    disk.disk.close()
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), disk.loop).result()
    pins = [meta.pin_count for meta in disk.disk.dict.values()]
    return expect(disk.allocated() == (0, 0) and pins == [0, 0, 0], (disk.allocated(), pins))


def buffers_of_an_outside_caller_are_filled_or_released(directory: Path) -> str:
    disk = stored(directory)
    keys = [disk.key(number) for number in range(3)]
    metas = [disk.disk.dict[key] for key in keys]
    buffers = [disk.memory.allocate(meta.shape, meta.dtype, meta.fmt) for meta in metas]
    for meta in metas:
        meta.pin()
    os.truncate(metas[2].path, 10)
    paths = [meta.path for meta in metas]
    found = disk.disk.batched_async_load_bytes_from_disk(paths, keys, buffers)
    good = same(found, [0, 1])
    disk.release(found)
    return expect(good and disk.allocated() == (0, 0), disk.allocated())


def closing_ends_the_threads(directory: Path) -> str:
    disk = stored(directory)
    disk.release(disk.read([0, 1, 2], path="sync"))
    mine = list(disk.disk.r8_reader._threads)
    alive = [one.is_alive() for one in mine]
    disk.close()
    left = [one.name for one in threading.enumerate() if one in mine]
    return expect(alive == [True] * 31 and not left, (alive, left))


CHECKS: tuple[Callable[[Path], str], ...] = (
    both_log_lines_have_the_agreed_form,
    serial_mode_reads_by_lmcaches_own_methods,
    results_are_in_the_order_of_the_keys,
    one_thread_is_enough,
    an_unknown_key_is_a_miss_in_its_place,
    get_blocking_reads_one_chunk,
    bad_settings_are_refused_by_name,
    trouble_of_the_machine_keeps_the_chunk_in_the_index,
    a_layerwise_read_that_lost_a_chunk_raises,
    a_cancelled_request_gives_its_buffers_back,
    buffers_of_an_outside_caller_are_filled_or_released,
    closing_ends_the_threads,
    a_full_tier_is_a_miss_and_not_a_hang,
)


def main() -> None:
    seen = {}
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as folder:
        for check in CHECKS:
            try:
                seen[check.__name__] = check(Path(folder) / check.__name__)
            except Exception as error:  # noqa: BLE001 - reported under its name
                seen[check.__name__] = repr(error)
        print(json.dumps(seen), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
