"""Parallel, checked reads for LMCache's LocalDiskBackend: every chunk is whole, or it is a miss.

Chunk files are cut into segments, and the segments of all files of a batch are read by a bounded
set of threads, in file order. Settings, from LMCache's `extra_config`: `r8_read_mode` ("parallel",
or "serial" for the methods LMCache ships), `r8_read_threads`, `r8_segment_bytes`; LMCache's own
`use_odirect` is honoured.

A chunk becomes a miss, its buffer released, when its file is missing, has another size than the
buffer, gives an error or a short read, or was evicted or replaced meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import functools
import hashlib
import itertools
import mmap
import os
import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmcache.logging import init_logger
from lmcache.v1.cache_controller.message import OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

logger = init_logger(__name__)

# The digest of what runs, taken while the file is still the one that was imported.
MODULE_SHA256 = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
# Offset, length and address every O_DIRECT device in use accepts (512-byte and 4Kn ones).
DIRECT_ALIGN_BYTES = 4096
DEFAULT_THREADS = 32
# Long enough to amortise a request, short enough that one chunk file keeps every thread busy.
DEFAULT_SEGMENT_BYTES = 1 << 20
# Stores give their buffers back within a disk write; who waits longer holds a tier that is too
# small, where waiting for ever (as LMCache does) would hang the request.
ALLOCATE_WAIT_S = 10.0
ALLOCATE_POLL_S = 0.02
# The machine's trouble, not the file's: the chunk is a miss this time but stays in the index.
TRANSIENT_ERRNOS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR}
# LMCache's layer-wise retrieval uses this lookup id and pairs buffers by position, uncounted.
LAYERWISE_LOOKUP_ID = "fake_lookup_id"


class LayerwiseMissError(RuntimeError):
    """A layer-wise retrieval lost a chunk; LMCache would give the model stale memory instead."""


class ChunkFaultError(Exception):
    """Why a chunk is a miss; `forget` says that its file is of no use any more."""

    def __init__(self, reason: str, *, forget: bool) -> None:
        super().__init__(reason)
        self.forget = forget


@dataclass(frozen=True)
class Settings:
    """What `extra_config` asks for."""

    parallel: bool
    threads: int
    segment_bytes: int

    @classmethod
    def of(cls, extra_config: dict[str, Any] | None) -> Settings:
        """Read and check; raises ValueError naming the key."""
        extra = extra_config or {}
        mode = extra.get("r8_read_mode", "parallel")
        threads = extra.get("r8_read_threads", DEFAULT_THREADS)
        segment_bytes = extra.get("r8_segment_bytes", DEFAULT_SEGMENT_BYTES)
        if mode not in ("parallel", "serial"):
            raise ValueError(f"extra_config r8_read_mode={mode!r}: say parallel or serial")
        if type(threads) is not int or threads < 1:
            raise ValueError(f"extra_config r8_read_threads={threads!r}: a whole number from 1 up")
        if type(segment_bytes) is not int or segment_bytes < 1 or segment_bytes % 4096:
            raise ValueError(f"extra_config r8_segment_bytes={segment_bytes!r}: a multiple of 4096")
        return cls(mode == "parallel", threads, segment_bytes)


class Chunk:
    """One chunk file on its way into one buffer."""

    def __init__(self, key: Any, meta: Any, path: str, buffer: Any, *, direct: bool) -> None:
        """`meta` is the index entry, pinned by whoever made this chunk."""
        self.key = key
        self.meta = meta
        self.path = path
        self.buffer = buffer
        self.view = buffer.byte_array
        self.fault: BaseException | None = None
        self.segments_read = 0
        self.bytes_read = 0
        self.segment_bytes = 0
        self.unfinished = 0
        self._direct = direct
        self._lock = threading.Lock()
        self._fd: int | None = None
        self._opened: tuple[int, ...] = ()

    def read(self, offset: int, length: int, bounce: Callable[[], mmap.mmap]) -> None:
        """Read one segment; the first opens the file, the last checks and closes it."""
        try:
            if self.fault is None:
                self._read(self._open(), offset, length, bounce)
        except Exception as error:  # noqa: BLE001 - whatever it was, the chunk is a miss
            self.fail(error)
        finally:
            with self._lock:
                self.unfinished -= 1
                last = self.unfinished == 0
            if last:
                self._close()

    def fail(self, fault: BaseException) -> None:
        """Keep the first fault."""
        self.fault = self.fault or fault

    def forgettable(self) -> bool:
        """Whether the fault is the file's own."""
        if isinstance(self.fault, OSError):
            return self.fault.errno not in TRANSIENT_ERRNOS
        return getattr(self.fault, "forget", False)

    def _open(self) -> int:
        with self._lock:
            if self._fd is None:
                self._fd = self._open_file()
                status = os.fstat(self._fd)
                self._opened = _identity(status)
                if status.st_size != len(self.view):
                    reason = f"the file holds {status.st_size} bytes, the chunk {len(self.view)}"
                    raise ChunkFaultError(reason, forget=True)
                if _window_bytes(status.st_dev) < self.segment_bytes:
                    # Else the kernel reads through its window, a piece after the other. Where a
                    # segment fits in, its own read-ahead takes half the CPU (larger folios).
                    os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_RANDOM)
            return self._fd

    def _open_file(self) -> int:
        if self._direct:
            try:
                return os.open(self.path, os.O_RDONLY | os.O_DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._direct = False
        return os.open(self.path, os.O_RDONLY)

    def _read(self, fd: int, offset: int, length: int, bounce: Callable[[], mmap.mmap]) -> None:
        count = self._read_direct(fd, offset, length, bounce) if self._direct else None
        if count is None:
            count = os.preadv(fd, [self.view[offset : offset + length]], offset)
        # Local file systems never return less than asked inside a file; one that does is broken.
        if count != length:
            reason = f"short read: {count} of {length} bytes at {offset}"
            raise ChunkFaultError(reason, forget=True)
        with self._lock:
            self.segments_read += 1
            self.bytes_read += count

    def _read_direct(
        self, fd: int, offset: int, length: int, bounce: Callable[[], mmap.mmap]
    ) -> int | None:
        """Bytes read past the page cache, or None when the file system refuses this geometry."""
        try:
            if length % DIRECT_ALIGN_BYTES == 0 and self.buffer.data_ptr % DIRECT_ALIGN_BYTES == 0:
                return os.preadv(fd, [self.view[offset : offset + length]], offset)
            padded = -(-length // DIRECT_ALIGN_BYTES) * DIRECT_ALIGN_BYTES
            scratch = bounce()
            count = min(os.preadv(fd, [memoryview(scratch)[:padded]], offset), length)
            # LMCache's view has a format Python cannot assign to.
            source = ctypes.addressof(ctypes.c_char.from_buffer(scratch))
            ctypes.memmove(self.buffer.data_ptr + offset, source, count)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_DIRECT)
            self._direct = False
            return None
        return count

    def _close(self) -> None:
        if self._fd is None:
            return
        try:
            if self.fault is None and not self._unchanged():
                self.fail(ChunkFaultError("the file changed while it was read", forget=False))
        except Exception as error:  # noqa: BLE001 - as in read()
            self.fail(error)
        finally:
            os.close(self._fd)
            self._fd = None

    def _unchanged(self) -> bool:
        named, held = Path(self.path).stat(), os.fstat(self._fd)
        return _identity(named) == _identity(held) == self._opened


@functools.cache
def _window_bytes(device: int) -> int:
    """The read-ahead window of a block device, a partition or another backing; 0 if not told."""
    number = f"{os.major(device)}:{os.minor(device)}"
    for place in (
        f"class/bdi/{number}",
        f"dev/block/{number}/queue",
        f"dev/block/{number}/../queue",
    ):
        with contextlib.suppress(OSError, ValueError):
            return int(Path("/sys", place, "read_ahead_kb").read_text(encoding="ascii")) << 10
    return 0


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Batch:
    """The segments of some chunks, taken one by one by whichever thread is free."""

    def __init__(self, chunks: Sequence[Chunk], segment_bytes: int) -> None:
        """In file order, so that a prefix is complete early and files stay open briefly."""
        self.segments: list[tuple[Chunk, int, int]] = []
        for chunk in chunks:
            size = len(chunk.view)
            starts = range(0, max(size, 1), segment_bytes)
            chunk.segment_bytes, chunk.unfinished = segment_bytes, len(starts)
            self.segments += [(chunk, at, min(segment_bytes, size - at)) for at in starts]
        self.done = threading.Event()
        # next() of a count is one step of the interpreter: no two threads get the same segment.
        self._cursor = itertools.count()
        self._unfinished = len(self.segments)
        self._lock = threading.Lock()

    def work(self, bounce: Callable[[], mmap.mmap]) -> None:
        """Read segments until none is left to take."""
        while (index := next(self._cursor)) < len(self.segments):
            chunk, offset, length = self.segments[index]
            try:
                chunk.read(offset, length, bounce)
            finally:
                with self._lock:
                    self._unfinished -= 1
                    if self._unfinished == 0:
                        self.done.set()


class Reader:
    """The threads that read for one backend, shared by its batches; one fewer than `threads`."""

    def __init__(self, settings: Settings) -> None:
        """Start nothing yet: engines fork between construction and the first read."""
        self.settings = settings
        self.batch_ids = itertools.count(1)
        self._tokens: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._local = threading.local()

    def read(self, chunks: Sequence[Chunk]) -> None:
        """Fill the buffers; returns when no thread touches them any more."""
        batch = Batch(chunks, self.settings.segment_bytes)
        if not batch.segments:
            return
        self._start()
        for _ in range(min(self.settings.threads, len(batch.segments)) - 1):
            self._tokens.put(batch)
        try:
            # The calling thread reads too: on fast storage that saves a switch for every batch.
            batch.work(self._bounce)
            batch.done.wait()
        except BaseException as interrupt:
            # Buffers must not go back to the allocator while other threads still write to them.
            for chunk in chunks:
                chunk.fail(interrupt)
            batch.work(self._bounce)
            batch.done.wait()
            raise

    def close(self) -> None:
        """End the threads; a batch under way finishes first."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._tokens.put(None)
        for thread in threads:
            thread.join()

    def _start(self) -> None:
        with self._lock:
            while len(self._threads) < self.settings.threads - 1:
                name = f"r8-read-{len(self._threads)}"
                thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self) -> None:
        while (batch := self._tokens.get()) is not None:
            batch.work(self._bounce)
            # An idle thread must not keep the buffers of its last batch alive.
            del batch

    def _bounce(self) -> mmap.mmap:
        """This thread's page-aligned buffer for what O_DIRECT cannot put in place."""
        if not hasattr(self._local, "bounce"):
            self._local.bounce = mmap.mmap(-1, self.settings.segment_bytes)
        return self._local.bounce


def _plan(backend: Any, key: Any, deadline: float) -> Chunk | None:
    """The chunk of `key`, its index entry pinned and its buffer allocated; None for a miss."""
    with backend.disk_lock:
        meta = backend.dict.get(key)
        if meta is None:
            return None
        # Eviction passes over what is pinned, so only a forced removal can overtake the read.
        meta.pin()
    buffer = None
    try:
        buffer = _allocate(backend, meta, deadline)
        if buffer is not None:
            return Chunk(key, meta, meta.path, buffer, direct=backend.use_odirect)
        logger.warning("No memory for chunk %s: a miss. Is the CPU tier too small?", meta.path)
    except Exception as error:  # noqa: BLE001 - a chunk that cannot be planned is a miss
        logger.warning("No buffer for chunk %s: a miss: %s", meta.path, error)
        if buffer is not None:
            _release(buffer)
    with backend.disk_lock:
        meta.unpin()
    return None


def _allocate(backend: Any, meta: Any, deadline: float) -> Any:
    """A buffer, or None when there is none at `deadline` (seconds of the monotonic clock)."""
    while True:
        buffer = backend.local_cpu_backend.allocate(
            meta.shape, meta.dtype, meta.fmt, busy_loop=False
        )
        if buffer is not None or time.monotonic() >= deadline:
            return buffer
        time.sleep(ALLOCATE_POLL_S)


def _release(buffer: Any) -> None:
    if buffer.is_pinned:
        buffer.unpin()
    buffer.ref_count_down()


def _read_chunks(backend: Any, chunks: Sequence[Chunk]) -> list[Any]:
    """Read, then settle index and buffers: every chunk ends as its filled buffer or as None."""
    try:
        backend.r8_reader.read(chunks)
    finally:
        # Also on an interrupt: the reader has then failed every chunk.
        results = [_settle(backend, chunk) for chunk in chunks]
    return results


def _settle(backend: Any, chunk: Chunk) -> Any:
    with backend.disk_lock:
        if chunk.meta is not None:
            chunk.meta.unpin()
        if chunk.meta is None or backend.dict.get(chunk.key) is not chunk.meta:
            chunk.fail(ChunkFaultError("evicted before it was read", forget=False))
        if chunk.fault is None:
            # A policy that lost its own record of the key has no say over good bytes.
            with contextlib.suppress(KeyError):
                backend.cache_policy.update_on_hit(chunk.key, backend.dict)
            chunk.buffer.metadata.cached_positions = chunk.meta.cached_positions
            return chunk.buffer
    logger.warning("Chunk %s is a miss: %s", chunk.path, chunk.fault)
    _release(chunk.buffer)
    if chunk.forgettable():
        _forget(backend, chunk)
    return None


def _forget(backend: Any, chunk: Chunk) -> None:
    """Take a broken chunk out of index, accounts and directory, unless it was stored anew."""
    with backend.disk_lock:
        if backend.dict.get(chunk.key) is not chunk.meta:
            return
        backend.dict.pop(chunk.key)
        backend.cache_policy.update_on_force_evict(chunk.key)
        # A later touch_cache() would trip over a key that is gone.
        backend.keys_in_request = [key for key in backend.keys_in_request if key != chunk.key]
        backend.usage -= chunk.meta.size
        backend.current_cache_size -= chunk.meta.size
        backend.stats_monitor.update_local_storage_usage(backend.usage)
        if not backend.exists_in_put_tasks(chunk.key):
            with contextlib.suppress(OSError):
                Path(chunk.path).unlink()
    if backend.batched_msg_sender is not None:
        backend.batched_msg_sender.add_kv_op(op_type=OpType.EVICT, key=chunk.key.chunk_hash)


def _log_read(backend: Any, path: str, asked: int, chunks: Sequence[Chunk], delivered: int) -> None:
    logger.info(
        "R8-PATCH read id=%d path=%s keys=%d segments=%d bytes=%d misses=%d",
        next(backend.r8_reader.batch_ids),
        path,
        asked,
        sum(chunk.segments_read for chunk in chunks),
        sum(chunk.bytes_read for chunk in chunks),
        asked - delivered,
    )


def batched_get_blocking(backend: Any, keys: Sequence[Any]) -> list[Any]:
    """Buffers in the order of `keys`, None for every miss."""
    deadline = time.monotonic() + ALLOCATE_WAIT_S
    planned = [_plan(backend, key, deadline) for key in keys]
    chunks = [chunk for chunk in planned if chunk is not None]
    filled = iter(_read_chunks(backend, chunks))
    results = [None if chunk is None else next(filled) for chunk in planned]
    _log_read(backend, "sync", len(keys), chunks, sum(one is not None for one in results))
    return results


def get_blocking(backend: Any, key: Any) -> Any:
    """The buffer of one chunk, or None."""
    return batched_get_blocking(backend, [key])[0]


def _load_prefix(backend: Any, chunks: Sequence[Chunk], asked: int) -> list[Any]:
    """Buffers up to the first miss, since the caller pairs them with its keys by position."""
    results = _read_chunks(backend, chunks)
    prefix = list(itertools.takewhile(lambda buffer: buffer is not None, results))
    for buffer in results[len(prefix) :]:
        if buffer is not None:
            _release(buffer)
    _log_read(backend, "async", asked, chunks, len(prefix))
    return prefix


def _load_pinned(backend: Any, chunks: Sequence[Chunk], asked: int) -> list[Any]:
    prefix = _load_prefix(backend, chunks, asked)
    # Pinned until LMCache has copied them to the accelerator, as it expects.
    for buffer in prefix:
        buffer.pin()
    return prefix


async def batched_get_non_blocking(
    backend: Any,
    lookup_id: str,
    keys: Sequence[Any],
    transfer_spec: Any = None,  # noqa: ARG001 - part of LMCache's interface
) -> list[Any]:
    """Pinned buffers of the longest prefix of `keys` that can be read whole."""
    # Waiting for memory is not allowed here: this is the event loop that would free it.
    planned = (_plan(backend, key, deadline=0) for key in keys)
    chunks = list(itertools.takewhile(lambda chunk: chunk is not None, planned))
    load = asyncio.ensure_future(
        backend.disk_worker.submit_task("prefetch", _load_pinned, backend, chunks, len(keys))
    )
    try:
        buffers = await asyncio.shield(load)
    except asyncio.CancelledError:
        load.add_done_callback(_release_late)
        raise
    if lookup_id == LAYERWISE_LOOKUP_ID and len(buffers) < len(keys):
        for buffer in buffers:
            _release(buffer)
        raise LayerwiseMissError(f"{len(buffers)} of {len(keys)} chunks of a layer could be read")
    return buffers


def _release_late(load: asyncio.Future[list[Any]]) -> None:
    """Release what was read for a request that was cancelled: nobody else will."""
    if not load.cancelled() and load.exception() is None:
        for buffer in load.result():
            _release(buffer)


def batched_async_load_bytes_from_disk(
    backend: Any,
    paths: Sequence[str],
    keys: Sequence[Any],
    memory_objs: Sequence[Any],
    write_back: bool = False,  # noqa: ARG001, FBT001, FBT002 - part of LMCache's interface
) -> list[Any]:
    """Fill buffers the caller allocated, for index entries the caller pinned; the whole prefix."""
    with backend.disk_lock:
        metas = [backend.dict.get(key) for key in keys]
    chunks = [
        Chunk(key, meta, path, buffer, direct=backend.use_odirect)
        for key, meta, path, buffer in zip(keys, metas, paths, memory_objs, strict=False)
    ]
    return _load_prefix(backend, chunks, len(chunks))


def install(backend_class: type) -> None:
    """Put the readers in front of LMCache's own methods, which stay in use in serial mode."""
    _wrap_init(backend_class)
    _wrap_close(backend_class)
    for replacement in (
        get_blocking,
        batched_get_blocking,
        batched_get_non_blocking,
        batched_async_load_bytes_from_disk,
    ):
        original = getattr(backend_class, replacement.__name__)
        setattr(backend_class, replacement.__name__, _either(original, replacement))


def _either(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        chosen = replacement if self.r8_reader.settings.parallel else original
        return chosen(self, *args, **kwargs)

    return method


def _wrap_init(backend_class: type) -> None:
    original = backend_class.__init__

    @functools.wraps(original)
    def init(self: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        settings = Settings.of(config.extra_config)
        original(self, config, *args, **kwargs)
        self.r8_reader = Reader(settings)
        logger.info(
            "R8-PATCH loaded module_sha256=%s mode=%s threads=%d segment_bytes=%d odirect=%d"
            " path=%s",
            MODULE_SHA256,
            "parallel" if settings.parallel else "serial",
            settings.threads,
            settings.segment_bytes,
            bool(self.use_odirect),
            self.path,
        )

    backend_class.__init__ = init


def _wrap_close(backend_class: type) -> None:
    original = backend_class.close

    @functools.wraps(original)
    def close(self: Any) -> None:
        original(self)
        self.r8_reader.close()

    backend_class.close = close
