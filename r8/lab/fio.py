"""What fio is told to do on a device of the site, and what its answer says.

Two readings, as on a shaped device. `ceiling`: many large direct reads in flight, from several
threads. `serial`: whole chunk files through the page cache, one after another, as LMCache's own
base reads them. The files are written by fio first, with bytes that repeat nowhere: an array that
compresses or finds equal blocks gains nothing. Every file is read once, so that no cache below the
host has given its bytes out before.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec

from r8.lab.rehearsal.readers import CEILING, SERIAL
from r8.units import BYTES_PER_MIB, NS_PER_MS

# Where no link is declared: 2.5 s of a fast drive of today, little enough for a pool's file system.
DEFAULT_BYTES = 16 << 30
# Where one is: so much time at its full rate, beside which the start and the tail are small.
DEFAULT_LINK_S = 5.0
# A serial reader is slower by half an order of magnitude: it needs a share of the bytes.
SERIAL_SHARE = 8
# O_DIRECT wants sizes in blocks of the device.
ALIGNMENT_BYTES = 4096
# What `timeout` allows a command beyond fio's own limit, for starting and for its last requests.
GRACE_S = 20


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


def ceiling_argv(stress: Stress, folder: str, nbytes: int, *, write: bool) -> list[str]:
    """The words that lay the ceiling's files out, or read them."""
    how = [
        "--ioengine=libaio",
        "--direct=1",
        f"--bs={stress.block_bytes}",
        f"--iodepth={max(1, stress.queue_depth // stress.threads)}",
        f"--numjobs={stress.threads}",
        "--group_reporting",
    ]
    if not write:
        return _argv(CEILING, folder, [*how, *_READ], seconds=stress.seconds)
    how += [f"--size={nbytes // stress.threads}", *_WRITE]
    return _argv(CEILING, folder, how, seconds=stress.layout_seconds)


def serial_argv(
    stress: Stress, folder: str, files: int, file_bytes: int, *, write: bool
) -> list[str]:
    """The words that lay the serial reader's chunk files out, or read them."""
    how = ["--ioengine=psync", f"--bs={file_bytes}", f"--nrfiles={files}"]
    how += [f"--size={files * file_bytes}", "--file_service_type=sequential"]
    if write:
        how += ["--direct=1", *_WRITE]
        return _argv(SERIAL, folder, how, seconds=stress.layout_seconds)
    # No hint to the kernel: the base reader gives none either.
    how += ["--direct=0", "--fadvise_hint=0", *_READ]
    return _argv(SERIAL, folder, how, seconds=stress.seconds)


# Nothing is allocated ahead: of a layout that was cut short, only what was written is there.
_WRITE = ("--rw=write", "--refill_buffers", "--randrepeat=0", "--fallocate=none", "--end_fsync=1")
_READ = ("--rw=read", "--readonly", "--invalidate=0")


def _argv(name: str, folder: str, how: list[str], *, seconds: int) -> list[str]:
    limit = ["timeout", "-k", "5", str(seconds + GRACE_S)]
    where = [f"--name={name}", "--directory=" + folder.replace(":", "\\:")]
    return [*limit, "fio", *where, *how, f"--runtime={seconds}", "--output-format=json"]


def read_answer(text: str) -> tuple[int, int]:
    """Bytes read and ns from the first submission to the last completion, of fio's JSON.

    Raises:
        ValueError: no JSON, or nothing was read.

    """
    # fio may print a warning ahead of its JSON, a transport one behind it.
    report, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    jobs: list[dict[str, Any]] = report["jobs"]
    read = jobs[0]["read"]
    nbytes, runtime_ms = int(read["io_bytes"]), int(read["runtime"])
    if not nbytes or not runtime_ms:
        raise ValueError(f"{nbytes} bytes in {runtime_ms} ms")
    return nbytes, runtime_ms * NS_PER_MS
