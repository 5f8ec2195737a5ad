"""The component bench on a prepared testbed, arm by arm, beside what the device itself gives."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError
from r8.lab.instruments.readers import CEILING, Reading, read_files
from r8.lab.machine import commands
from r8.lab.patching import patching

if TYPE_CHECKING:
    from r8.lab.site.arms import Arm
    from r8.lab.testbed import Testbed

SCRIPT = Path(__file__).with_name("bench.py")
TIMEOUT_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkReads:
    """What one component run reads: `chunks` files of `chunk_bytes`, `batch_chunks` a call."""

    directory: Path
    chunk_bytes: int
    chunks: int
    batch_chunks: int


def run_component(testbed: Testbed, name: str, arm: Arm, reads: ChunkReads) -> dict[str, Any]:
    """Store, drop and read chunks through LMCache's disk backend in the arm's state.

    Raises:
        InstrumentError: it failed, missed a chunk, returned a wrong byte or kept a buffer.

    """
    env = testbed.env(arm)
    target = patching.PatchTarget(command=tuple(testbed.python()), env=env)
    (patching.apply if arm.is_patched else patching.revert)(target)
    directory = reads.directory / f"component-{name}"
    argv = ["env", *(f"{key}={value}" for key, value in env.items()), *testbed.python(str(SCRIPT))]
    argv += ["--dir", str(directory), "--state", "patched" if arm.is_patched else "unpatched"]
    threads = arm.treatment.extra_config.get("disk_io_threads")
    argv += [] if threads is None else ["--disk-io-threads", str(threads)]
    argv += ["--chunk-bytes", str(reads.chunk_bytes), "--chunks", str(reads.chunks)]
    argv += ["--batch-chunks", str(reads.batch_chunks)]
    try:
        done = commands.run(argv, timeout_s=TIMEOUT_S)
    finally:
        patching.revert(target)
        shutil.rmtree(directory, ignore_errors=True)
    if not done.ok:
        raise InstrumentError(
            f"the component bench failed: {done.error}", where=done.line, next_step="run it by hand"
        )
    result: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    if result["misses"] or not result["sha256_ok"] or result["buffers_left"]:
        raise InstrumentError(
            f"{result['misses']} misses, {result['wrong_chunks']} wrong chunks, "
            f"{result['buffers_left']} buffers kept",
            where=done.line,
            next_step="check the device and the patch: a bench of wrong bytes says nothing",
        )
    return result


def device_ceiling(reads: ChunkReads, drop: list[str]) -> Reading:
    """What fio (or our own reader, named so) gets from files like the bench's, cold."""
    directory = reads.directory / "component-device"
    directory.mkdir()
    files = [directory / f"{number}.bin" for number in range(reads.chunks)]
    try:
        for path in files:
            # Bytes that no layer can compress or share.
            with Path("/dev/urandom").open("rb") as source, path.open("wb") as sink:
                for begin in range(0, reads.chunk_bytes, 1 << 20):
                    sink.write(source.read(min(reads.chunk_bytes - begin, 1 << 20)))
        commands.run(["sync", "-f", str(directory)])
        commands.run(drop)
        return read_files(CEILING, files, reads.chunk_bytes, None)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
