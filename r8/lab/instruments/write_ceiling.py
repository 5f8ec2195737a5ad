"""What a device takes by itself: one large direct sequential write, flushed at its end, by fio.

Taken in the very directory and minute a checkpoint is written in, so that the prediction (bytes of
the checkpoint over this bandwidth) is of the same device, fill level and noise.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.errors import SiteError
from r8.lab.machine import commands
from r8.units import BYTES_PER_MIB, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

NAME = "write_ceiling"
FILE = "write-ceiling.bin"
BLOCK_BYTES = BYTES_PER_MIB
QUEUE_DEPTH = 32
# fio is given so long; a device slower than its bytes over this is a broken one.
TIMEOUT_S = 600.0


def fio_argv(path: Path, nbytes: int) -> list[str]:
    """The words of fio; bytes that repeat nowhere, a flush at the end.

    The file is allocated first: direct writes that extend a file go one at a time, which would
    measure the file system's lock.
    """
    return [
        "fio",
        f"--name={NAME}",
        "--filename=" + str(path).replace(":", "\\:"),
        "--rw=write",
        "--ioengine=libaio",
        "--direct=1",
        f"--iodepth={QUEUE_DEPTH}",
        f"--bs={BLOCK_BYTES}",
        f"--size={-(-nbytes // BLOCK_BYTES) * BLOCK_BYTES}",
        "--refill_buffers",
        "--randrepeat=0",
        "--fallocate=posix",
        "--end_fsync=1",
        "--output-format=json",
    ]


def measure(folder: Path, device: str, nbytes: int) -> dict[str, Any]:
    """What fio did, for an event `write_ceiling`; its file is removed, also on the device.

    Raises:
        SiteError: there is no fio, or it failed.

    """
    path = folder / FILE
    try:
        done = commands.run(fio_argv(path, nbytes), timeout_s=TIMEOUT_S)
        written, elapsed_ns = read_answer(done.output) if done.ok else (0, 0)
    except (ValueError, KeyError, IndexError) as error:
        raise _failed(str(error), device) from error
    finally:
        path.unlink(missing_ok=True)
    if not written or not elapsed_ns:
        raise _failed(done.error or f"{written} bytes in {elapsed_ns} ns", device)
    commands.run(["sync", "-f", str(folder)])
    return {
        "tool": "fio",
        "device": device,
        "write_bytes": written,
        "elapsed_ns": elapsed_ns,
        "block_bytes": BLOCK_BYTES,
        "queue_depth": QUEUE_DEPTH,
        "direct": True,
    }


def read_answer(text: str) -> tuple[int, int]:
    """Bytes written and ns from the first submission to the last completion, of fio's JSON.

    A direct write is answered when the device has it; the flush at the end has nothing left to
    carry and is no part of the time.

    Raises:
        ValueError: no JSON.

    """
    report, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    written = report["jobs"][0]["write"]
    return int(written["io_bytes"]), int(written["runtime"]) * NS_PER_MS


def bytes_per_s(row: dict[str, Any]) -> float:
    """Bandwidth of such a row."""
    return float(row["write_bytes"] * NS_PER_S / row["elapsed_ns"])


def _failed(why: str, device: str) -> SiteError:
    return SiteError(
        f"writing the ceiling of {device} failed: {why[-200:]}",
        where=device,
        next_step="apt-get install fio, and look whether the device has room and answers",
    )
