"""Reading files the two ways a calibration compares: by fio, else by readers of our own.

`ceiling` is the best the device gives: many large direct reads in flight. `serial` is what
LMCache's own reader does: whole chunk files through the page cache, one after another.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.errors import SiteError
from r8.units import BYTES_PER_MIB, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

CEILING = "ceiling"
SERIAL = "serial"
FIO = "fio"
OWN_TOOLS = {CEILING: "own O_DIRECT threads", SERIAL: "own readinto"}  # where there is no fio
CEILING_BLOCK_BYTES = BYTES_PER_MIB
CEILING_QUEUE_DEPTH = 32
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Bytes read in a time, and how. `elapsed_ns` is first submission to last completion."""

    name: str
    tool: str
    read_bytes: int
    elapsed_ns: int
    block_bytes: int
    queue_depth: int
    direct: bool
    mono_ns: int

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth of the reading."""
        return self.read_bytes * NS_PER_S / self.elapsed_ns

    def row(self, device: str) -> dict[str, object]:
        """A row of the calibration table."""
        fields = {name: getattr(self, name) for name in Reading.__slots__}
        return fields | {"device": device}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a device gives by itself; `ratio` is ceiling over serial bandwidth.

    `within` says whether a shaped device met its published ratio, None where none was asked for.
    `lesser` are ceilings that came out lower: they stay in the table, of which the best counts.
    """

    ceiling: Reading
    serial: Reading
    within: bool | None
    note: str
    lesser: tuple[Reading, ...] = ()

    @property
    def ratio(self) -> float:
        """Ceiling over serial bandwidth."""
        return self.ceiling.bytes_per_s / self.serial.bytes_per_s

    def rows(self, device: str) -> tuple[dict[str, object], ...]:
        """Rows of the calibration table."""
        return tuple(one.row(device) for one in (*self.lesser, self.ceiling, self.serial))


def read_files(kind: str, files: list[Path], chunk_bytes: int, raw_dir: Path | None) -> Reading:
    """Read all of `files` of one folder, each of `chunk_bytes`, the `CEILING` or the `SERIAL` way.

    Raises:
        SiteError: a reader failed.
    """
    by_fio = shutil.which("fio") is not None
    mono_ns = time.monotonic_ns()
    try:
        if by_fio:
            read_bytes, elapsed_ns = _by_fio(kind, files, chunk_bytes, raw_dir)
        else:
            started_ns = time.monotonic_ns()
            read_bytes = _own_ceiling(files) if kind == CEILING else _own_serial(files, chunk_bytes)
            elapsed_ns = time.monotonic_ns() - started_ns
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SiteError(
            f"reading the {kind} failed: {error}",
            where=str(files[0].parent),
            next_step="look whether the device is still mounted and answers",
        ) from error
    is_ceiling = kind == CEILING
    return Reading(
        name=kind,
        tool=FIO if by_fio else OWN_TOOLS[kind],
        read_bytes=read_bytes,
        elapsed_ns=elapsed_ns,
        block_bytes=CEILING_BLOCK_BYTES if is_ceiling else chunk_bytes,
        queue_depth=CEILING_QUEUE_DEPTH if is_ceiling else 1,
        direct=is_ceiling,
        mono_ns=mono_ns,
    )


def fio_argv(kind: str, files: list[Path], chunk_bytes: int) -> list[str]:
    """The fio command, to be run in the folder of the files; its JSON goes to standard output.

    Names without their folder: fio takes 4 KiB of names, and 70 whole paths are more.
    """
    how = {
        CEILING: [
            "--ioengine=libaio",
            "--direct=1",
            f"--iodepth={CEILING_QUEUE_DEPTH}",
            f"--bs={CEILING_BLOCK_BYTES}",
        ],
        # No hint to the kernel, no eviction of its own: the base reader gives none either.
        SERIAL: ["--ioengine=psync", "--direct=0", f"--bs={chunk_bytes}", "--fadvise_hint=0"],
    }[kind]
    names = ":".join(path.name.replace(":", "\\:") for path in files)
    return [
        "fio",
        f"--name={kind}",
        "--rw=read",
        *how,
        "--invalidate=0",
        "--file_service_type=sequential",
        f"--nrfiles={len(files)}",
        f"--size={len(files) * chunk_bytes}",
        f"--filename={names}",
        "--readonly",
        "--output-format=json",
    ]


def _by_fio(
    kind: str, files: list[Path], chunk_bytes: int, raw_dir: Path | None
) -> tuple[int, int]:
    done = subprocess.run(
        fio_argv(kind, files, chunk_bytes),
        cwd=files[0].parent,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise ValueError((done.stderr or done.stdout).strip()[-300:])
    if raw_dir is not None:
        (raw_dir / f"fio-{kind}-{time.monotonic_ns()}.json").write_text(done.stdout)
    return fio_answer(done.stdout)


def fio_answer(text: str, direction: str = "read") -> tuple[int, int]:
    """Bytes moved, and ns from the first submission to the last completion, of fio's JSON.

    Raises:
        ValueError: the text holds no JSON of fio's, or nothing was moved.

    """
    try:
        # fio may print a warning ahead of its JSON, a transport one behind it.
        report, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
        job: dict[str, Any] = report["jobs"][0][direction]
        nbytes, runtime_ms = int(job["io_bytes"]), int(job["runtime"])
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"fio's JSON lacks {error}") from error
    if not nbytes or not runtime_ms:
        raise ValueError(f"fio moved {nbytes} bytes in {runtime_ms} ms")
    return nbytes, runtime_ms * NS_PER_MS


def _own_serial(files: list[Path], chunk_bytes: int) -> int:
    buffer = memoryview(bytearray(chunk_bytes))
    total = 0
    for path in files:
        with path.open("rb", buffering=0) as handle:
            total += handle.readinto(buffer) or 0
    return total


def _own_ceiling(files: list[Path]) -> int:
    pieces = [
        (path, offset)
        for path in files
        for offset in range(0, path.stat().st_size, CEILING_BLOCK_BYTES)
    ]
    with ThreadPoolExecutor(CEILING_QUEUE_DEPTH) as pool:
        return sum(pool.map(_read_direct, pieces))


def _read_direct(piece: tuple[Path, int]) -> int:
    path, offset = piece
    # An anonymous map begins on a page, as O_DIRECT demands.
    with mmap.mmap(-1, CEILING_BLOCK_BYTES) as buffer:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            return os.preadv(handle, [buffer], offset)
        finally:
            os.close(handle)
