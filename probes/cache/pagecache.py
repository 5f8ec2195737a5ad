"""How much of a file is in the page cache, by two system calls that are tested before use.

`cachestat` (kernel 6.5 and later) is exact and maps nothing; newer kernels refuse it with EPERM to
a reader who could not write the file. `mincore` works everywhere, but answers that same reader that
*everything* is resident, which cannot be told from the truth: such a file is `denied` here. Neither
call is believed before its self-test: a temporary file on the same file system must be seen as gone
after it was evicted, and as resident after it was read.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable

# The number is the same on every architecture that takes the generic table; these two are checked.
_SYS_CACHESTAT = {"x86_64": 451, "aarch64": 451}
_CAP_FOWNER_BIT = 1 << 3
_WHOLE_UID_MAP = ["0", "0", "4294967295"]
# Bounds the vector mincore fills: one byte a page, 64 KiB for 256 MiB.
_MINCORE_WINDOW = 256 << 20
_SELF_TEST_PAGES = 64
# Eviction skips pages another CPU still holds in a batch; they are free a moment later.
_EVICT_ATTEMPTS = 5
PAGE_BYTES = mmap.PAGESIZE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
_libc.syscall.restype = ctypes.c_long


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Cachestat(ctypes.Structure):
    _fields_ = [
        ("cached_pages", ctypes.c_uint64),
        ("dirty_pages", ctypes.c_uint64),
        ("writeback_pages", ctypes.c_uint64),
        ("evicted_pages", ctypes.c_uint64),
        ("recently_evicted_pages", ctypes.c_uint64),
    ]


def _os_error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


def cachestat(fd: int, size_bytes: int) -> int:
    """Resident bytes of the file. Raises OSError: ENOSYS on older kernels, EPERM when denied."""
    number = _SYS_CACHESTAT.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"no cachestat number known for {platform.machine()}")
    result = _Cachestat()
    whole = _Range(0, 0)  # length 0: to the end of the file
    code = _libc.syscall(
        ctypes.c_long(number),
        ctypes.c_int(fd),
        ctypes.byref(whole),
        ctypes.byref(result),
        ctypes.c_uint(0),
    )
    if code != 0:
        raise _os_error()
    return min(int(result.cached_pages) * PAGE_BYTES, size_bytes)


def mincore(fd: int, size_bytes: int) -> int:
    """Resident bytes of the file. Raises PermissionError where the kernel would answer falsely."""
    if not _mincore_is_truthful(fd):
        raise PermissionError(errno.EPERM, "only the owner or a writer is told; others are misled")
    resident = 0
    for offset in range(0, size_bytes, _MINCORE_WINDOW):
        length = min(_MINCORE_WINDOW, size_bytes - offset)
        address = _libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, fd, offset)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise _os_error()
        try:
            vector = (ctypes.c_ubyte * -(-length // PAGE_BYTES))()
            if _libc.mincore(address, length, vector) != 0:
                raise _os_error()
        finally:
            _libc.munmap(address, length)
        resident += sum(byte & 1 for byte in vector) * PAGE_BYTES
    return min(resident, size_bytes)


def _mincore_is_truthful(fd: int) -> bool:
    """The kernel's own rule: the owner, who may write, or who holds CAP_FOWNER over the inode."""
    if os.fstat(fd).st_uid == os.geteuid():
        return True
    if os.access(f"/proc/self/fd/{fd}", os.W_OK, effective_ids=True):
        return True
    try:
        whole = Path("/proc/self/uid_map").read_text(encoding="ascii").split() == _WHOLE_UID_MAP
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return False
    lines = dict(line.partition(":")[::2] for line in status.splitlines())
    return whole and bool(int(lines.get("CapEff", "0"), 16) & _CAP_FOWNER_BIT)


def evict(fd: int) -> None:
    """Drop the file's pages from the cache: dirty ones are written first, mapped ones stay."""
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


METHODS: dict[str, Callable[[int, int], int]] = {"cachestat": cachestat, "mincore": mincore}


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How residency is measured on one file system; `reason` when no answer can be believed."""

    name: str | None
    self_test: bool | None  # None: the test itself could not be made
    reason: str | None = None


def _temporary(directory: Path) -> int:
    """A nameless file on the directory's file system, so that nobody mistakes it for data."""
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        # Not every file system makes nameless files; this one has a name for a moment.
        fd, name = tempfile.mkstemp(prefix=".r8-probe-", dir=directory)
        os.unlink(name)  # noqa: PTH108
        return fd


def _try_method(fd: int, size_bytes: int, measure: Callable[[int, int], int]) -> str | None:
    """None when the method sees both an evicted and a read file as they are; else what it saw."""
    for _ in range(_EVICT_ATTEMPTS):
        evict(fd)
        resident = measure(fd, size_bytes)
        if resident == 0:
            break
    else:
        return f"an evicted file shows {resident} of {size_bytes} bytes resident"
    if len(os.pread(fd, size_bytes, 0)) != size_bytes:
        return "the temporary file cannot be read back"
    resident = measure(fd, size_bytes)
    if resident != size_bytes:
        return f"a file just read shows {resident} of {size_bytes} bytes resident"
    return None


def choose_method(directory: Path) -> Method:
    """The first method that passes its self-test on this directory's file system."""
    size_bytes = _SELF_TEST_PAGES * PAGE_BYTES
    failures = []
    try:
        fd = _temporary(directory)
    except OSError as error:
        return Method(name=None, self_test=None, reason=f"{reason_of(error)} (no self-test)")
    try:
        os.pwrite(fd, os.urandom(size_bytes), 0)
        for name, measure in METHODS.items():
            try:
                seen = _try_method(fd, size_bytes, measure)
            except OSError as error:
                seen = reason_of(error)
            if seen is None:
                return Method(name=name, self_test=True)
            failures.append(f"{name}: {seen}")
    except OSError as error:
        return Method(name=None, self_test=None, reason=f"{reason_of(error)} (no self-test)")
    finally:
        os.close(fd)
    return Method(name=None, self_test=False, reason=f"failed: self-test: {'; '.join(failures)}")
