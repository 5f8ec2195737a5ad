"""What fio is told to do on a device of the site, and what its answer says.

Two readings, as on a shaped device. `ceiling`: many large direct reads in flight, from several
threads. `serial`: whole chunk files through the page cache, one after another, as LMCache's own
base reads them. The files are written by fio first, with bytes that repeat nowhere: an array that
compresses or finds equal blocks gains nothing. Every file is read once, so that no cache below the
host has given its bytes out before.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.lab.instruments.readers import CEILING, SERIAL
from r8.units import NS_PER_MS

if TYPE_CHECKING:
    from r8.lab.site.stress import Stress

# What `timeout` allows a command beyond fio's own limit, for starting and for its last requests.
GRACE_S = 20


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
