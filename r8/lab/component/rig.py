"""LMCache's own LocalDiskBackend on a directory, without an engine: for the bench and fault tests.

Runs in the engine's environment only (LMCache and torch). One chunk is a flat run of bytes, so any
file size can be had, also those no O_DIRECT accepts.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Self

import torch
from lmcache.utils import CacheEngineKey
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.memory_management import MemoryFormat
from lmcache.v1.metadata import LMCacheMetadata
from lmcache.v1.pin_monitor import PinMonitor
from lmcache.v1.storage_backend.local_cpu_backend import LocalCPUBackend
from lmcache.v1.storage_backend.local_disk_backend import LocalDiskBackend

from r8.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from pathlib import Path

# A store is one buffered write; a minute means that the disk or the backend hangs.
STORE_TIMEOUT_S = 60
STORE_POLL_S = 0.002
# The allocator rounds every buffer up to pages; the rest is room for its own bookkeeping.
POOL_SLACK_BYTES = 16 << 20


class DiskRig:
    """One LocalDiskBackend with its CPU buffer pool and event loop; a context manager."""

    def __init__(
        self,
        directory: Path,
        *,
        chunk_bytes: int,
        pool_chunks: int,
        extra_config: dict[str, Any],
    ) -> None:
        """Room for `pool_chunks` chunks in memory, and for as many as fit in `directory`."""
        self.chunk_bytes = chunk_bytes
        pool_bytes = pool_chunks * -(-chunk_bytes // 4096) * 4096 + POOL_SLACK_BYTES
        config = LMCacheEngineConfig.from_defaults(
            chunk_size=256,
            local_cpu=False,
            max_local_cpu_size=pool_bytes / BYTES_PER_GIB,
            local_disk=str(directory),
            max_local_disk_size=256,
            extra_config=extra_config,
        )
        metadata = LMCacheMetadata(
            model_name="component",
            world_size=1,
            local_world_size=1,
            worker_id=0,
            local_worker_id=0,
            kv_dtype=torch.float32,
            kv_shape=(1, 2, 256, 1, 256),
        )
        PinMonitor.GetOrCreate(config)
        self.memory: Any = LocalCPUBackend(config, metadata, "cpu")
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.disk: Any = LocalDiskBackend(config, self.loop, self.memory, "cpu", None, metadata)

    def key(self, number: int) -> Any:
        """The cache key of chunk `number`."""
        return CacheEngineKey("component", 1, 0, number, torch.uint8)

    def path(self, number: int) -> str:
        """The file of chunk `number`."""
        found: str = self.disk._key_to_path(self.key(number))  # noqa: SLF001 - no public way
        return found

    def store(self, number: int, payload: bytes) -> None:
        """Write one chunk through the backend; returns when it is in the index."""
        shape = torch.Size([1, 1, 1, len(payload)])
        buffer = self.memory.allocate(shape, torch.uint8, MemoryFormat.KV_2LTD, busy_loop=False)
        if buffer is None:
            raise MemoryError(f"no buffer of {len(payload)} bytes in the pool")
        ctypes.memmove(buffer.data_ptr, payload, len(payload))
        self.disk.submit_put_task(self.key(number), buffer)
        buffer.ref_count_down()
        deadline = time.monotonic() + STORE_TIMEOUT_S
        while self.disk.exists_in_put_tasks(self.key(number)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"chunk {number} was not stored in {STORE_TIMEOUT_S} s")
            time.sleep(STORE_POLL_S)

    def read(self, numbers: list[int], *, path: str) -> list[Any]:
        """Buffers of the chunks by the `sync` or the `async` read path."""
        keys = [self.key(number) for number in numbers]
        if path == "sync":
            return list(self.disk.batched_get_blocking(keys))
        coroutine = self.disk.batched_get_non_blocking("component", keys)
        return list(asyncio.run_coroutine_threadsafe(coroutine, self.loop).result())

    def release(self, buffers: list[Any]) -> None:
        """Give the buffers back, as LMCache does after its copy to the accelerator."""
        for buffer in buffers:
            if buffer is None:
                continue
            if buffer.is_pinned:
                buffer.unpin()
            buffer.ref_count_down()

    def allocated(self) -> tuple[int, int]:
        """Buffers in use and their bytes, as the allocator counts them."""
        allocator = self.memory.memory_allocator
        pool = getattr(allocator, "pin_allocator", allocator)
        return pool.num_active_allocations, pool.total_allocated_size

    def close(self) -> None:
        """Close the backend and stop the event loop."""
        self.disk.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def evict_page_cache(path: str) -> None:
    """Make one file durable and drop its pages from the page cache."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)
