"""What a device that is not shaped gives and takes by itself, measured by fio.

Before every block two readings: `ceiling`, many large direct reads in flight from several threads,
and `serial`, whole chunk files through the page cache, one after another, as LMCache's own reader
reads them. fio writes the files first, with bytes that repeat nowhere: an array that compresses or
finds equal blocks gains nothing. Every file is read once, so that no cache below the host has given
its bytes out before. The files lie in a directory of their own in the device's `kv_dir`, which is
removed afterwards, also when this process is killed.

A job that writes measures `write_ceiling` instead: one large direct sequential write.
"""

from __future__ import annotations

import secrets
import subprocess
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from r8.errors import SiteError
from r8.lab.instruments.readers import CEILING, FIO, SERIAL, Calibration, Reading, fio_answer
from r8.lab.machine import commands
from r8.lab.machine.hosts import FILE_SYSTEM_FACTOR, KvDirectory, free_bytes, through
from r8.units import BYTES_PER_MIB, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.arms import Plan, TransferPlan
    from r8.lab.site.file import Site
    from r8.lab.site.machines import Device, Host

SWITCH_OFF = "set fio.read_bytes = 0: gate G2 and shares of the ceiling are then not measured"
# What `timeout` allows a command beyond fio's own limit, for starting and for its last requests.
GRACE_S = 20
# Nothing is allocated ahead: of a layout that was cut short, only what was written is there.
_LAYOUT = ("--rw=write", "--refill_buffers", "--randrepeat=0", "--fallocate=none", "--end_fsync=1")
_READ = ("--rw=read", "--readonly", "--invalidate=0")

WRITE_CEILING = "write_ceiling"
WRITE_CEILING_FILE = "write-ceiling.bin"
_WRITE_BLOCK_BYTES = BYTES_PER_MIB
_WRITE_QUEUE_DEPTH = 32
# A device that is slower than the bytes over this is a broken one.
_WRITE_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FioPlan:
    """The fio commands of one device, as they are run and as a dry run prints them."""

    device: Device
    host: Host
    file_bytes: int  # of a chunk file
    folder: KvDirectory

    @property
    def ceiling_bytes(self) -> int:
        """Bytes of the ceiling's files."""
        return self.device.fio.ceiling_bytes(self.device.link_bytes_per_s)

    @property
    def files(self) -> int:
        """Number of chunk files of the serial reading."""
        return self.device.fio.serial_files(self.ceiling_bytes, self.file_bytes)

    @property
    def needed_bytes(self) -> int:
        """Free bytes the file system must have."""
        return round((self.ceiling_bytes + self.files * self.file_bytes) * FILE_SYSTEM_FACTOR)

    def argv(self, kind: str, *, write: bool) -> list[str]:
        """The command that lays out or reads the files of one kind of reading."""
        how = self._ceiling(write=write) if kind == CEILING else self._serial(write=write)
        stress = self.device.fio
        seconds = stress.layout_seconds if write else stress.seconds
        limit = ["timeout", "-k", "5", str(seconds + GRACE_S)]
        where = [f"--name={kind}", "--directory=" + self.folder.path.replace(":", "\\:")]
        words = [*limit, "fio", *where, *how, f"--runtime={seconds}", "--output-format=json"]
        return through(self.host.exec_prefix, words)

    def _ceiling(self, *, write: bool) -> list[str]:
        stress = self.device.fio
        how = [
            "--ioengine=libaio",
            "--direct=1",
            f"--bs={stress.block_bytes}",
            f"--iodepth={max(1, stress.queue_depth // stress.threads)}",
            f"--numjobs={stress.threads}",
            "--group_reporting",
        ]
        size = f"--size={self.ceiling_bytes // stress.threads}"
        return [*how, size, *_LAYOUT] if write else [*how, *_READ]

    def _serial(self, *, write: bool) -> list[str]:
        how = ["--ioengine=psync", f"--bs={self.file_bytes}", f"--nrfiles={self.files}"]
        how += [f"--size={self.files * self.file_bytes}", "--file_service_type=sequential"]
        if write:
            return [*how, "--direct=1", *_LAYOUT]
        # No hint to the kernel: LMCache's reader gives none either.
        return [*how, "--direct=0", "--fadvise_hint=0", *_READ]

    def require_room(self, free: int) -> None:
        """Refuse a file system that cannot hold the files.

        Raises:
            SiteError: with both numbers.

        """
        if free < self.needed_bytes:
            raise SiteError(
                f"{free} bytes free, fio's files need {self.needed_bytes}",
                where=f"{self.device.kv_dir} on {self.host.name} (device {self.device.name})",
                next_step=f"free {self.needed_bytes - free} bytes, lower fio.read_bytes of the "
                f"device, or {SWITCH_OFF}",
            )


def fio_plan(
    site: Site, plan: Plan | TransferPlan, name: str, token: str | None = None
) -> FioPlan | None:
    """The readings of a device for one scenario; None where the site switched them off."""
    device = site.device(name)
    if device.fio.read_bytes == 0:
        return None
    host = site.host(device.host)
    folder = PurePosixPath(device.kv_dir) / f"r8-fio-{token or secrets.token_hex(4)}"
    return FioPlan(
        device=device,
        host=host,
        file_bytes=plan.file_bytes,
        folder=KvDirectory(host=host, path=str(folder)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FioCalibrator:
    """Measures one device as it is, the same way before every block."""

    plan: FioPlan
    supervisor: Supervisor
    drop: tuple[str, ...]
    work_dir: Path
    say: Callable[[str], None]

    def measure(self, *, first: bool) -> Calibration:  # noqa: ARG002 - nothing is tuned
        """What the device gives now.

        Raises:
            SiteError: too little room, no fio, or fio failed.

        """
        plan, name = self.plan, self.plan.device.name
        plan.require_room(free_bytes(plan.host, plan.device.kv_dir))
        self.say(f"fio reads {plan.ceiling_bytes >> 20} MiB of {name} in files of its own")
        token = plan.folder.create(self.supervisor, f"fio's files on {name}")
        try:
            for kind in (CEILING, SERIAL):
                self._run(kind, write=True)
            found = Calibration(
                ceiling=self._reading(CEILING),
                serial=self._reading(SERIAL),
                within=None,
                note="unshaped: measured only",
            )
        finally:
            self.supervisor.undo(token)
        self.say(f"{name}: ceiling : serial = {found.ratio:.2f}, {found.note}")
        return found

    def _reading(self, kind: str) -> Reading:
        dropped = commands.run(list(self.drop))
        if not dropped.ok:
            raise SiteError(
                f"dropping the page cache failed: {dropped.error}",
                where=dropped.line,
                next_step="correct drop_caches of that host; `r8 preflight` checks it",
            )
        mono_ns = time.monotonic_ns()
        answer = self._run(kind, write=False)
        try:
            nbytes, elapsed_ns = fio_answer(answer)
        except ValueError as error:
            raise self._failed(kind, f"its answer says {error}") from error
        stress, is_ceiling = self.plan.device.fio, kind == CEILING
        return Reading(
            name=kind,
            tool=FIO,
            read_bytes=nbytes,
            elapsed_ns=elapsed_ns,
            block_bytes=stress.block_bytes if is_ceiling else self.plan.file_bytes,
            queue_depth=stress.queue_depth if is_ceiling else 1,
            direct=is_ceiling,
            mono_ns=mono_ns,
        )

    def _run(self, kind: str, *, write: bool) -> str:
        """Run one fio through the supervisor, so that it ends also when this process is killed."""
        name, stress = self.plan.device.name, self.plan.device.fio
        log = self.work_dir / f"fio-{name}-{time.monotonic_ns()}.json"
        argv = self.plan.argv(kind, write=write)
        process = self.supervisor.spawn(f"fio on {name}", argv, log_path=log)
        limit_s = max(stress.seconds, stress.layout_seconds) + 2 * GRACE_S
        try:
            code: int | None = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            code = None
        self.supervisor.stop(process, grace_s=1.0)
        said = log.read_text(errors="replace")
        if code != 0:
            last = " ".join(said[-commands.TAIL_CHARACTERS :].split())
            raise self._failed(kind, f"code {code}: {last}")
        return said

    def _failed(self, kind: str, why: str) -> SiteError:
        return SiteError(
            f"fio ({kind}) failed: {why}",
            where=f"{self.plan.folder.path} on {self.plan.host.name}",
            next_step="install or repair fio there (apt install fio; O_DIRECT must work), or "
            f"{SWITCH_OFF}",
        )


def write_ceiling_argv(path: Path, nbytes: int) -> list[str]:
    """The command that writes `nbytes` as a device takes them best, flushed at the end.

    The file is allocated first: direct writes that extend a file go one at a time, which would
    measure the file system's lock.
    """
    return [
        "fio",
        f"--name={WRITE_CEILING}",
        "--filename=" + str(path).replace(":", "\\:"),
        "--rw=write",
        "--ioengine=libaio",
        "--direct=1",
        f"--iodepth={_WRITE_QUEUE_DEPTH}",
        f"--bs={_WRITE_BLOCK_BYTES}",
        f"--size={-(-nbytes // _WRITE_BLOCK_BYTES) * _WRITE_BLOCK_BYTES}",
        "--refill_buffers",
        "--randrepeat=0",
        "--fallocate=posix",
        "--end_fsync=1",
        "--output-format=json",
    ]


def write_ceiling(folder: Path, device: str, nbytes: int) -> dict[str, Any]:
    """Detail of an event `write_ceiling`; the file is removed, also on the device.

    Taken in the very directory and minute a checkpoint is written in, so that the prediction is of
    the same device, fill level and noise. A direct write is answered when the device has it: the
    flush at the end has nothing left to carry and is no part of the time.

    Raises:
        SiteError: there is no fio, or it failed.

    """
    path = folder / WRITE_CEILING_FILE
    done = commands.run(write_ceiling_argv(path, nbytes), timeout_s=_WRITE_TIMEOUT_S)
    path.unlink(missing_ok=True)
    try:
        written, elapsed_ns = fio_answer(done.output if done.ok else "", "write")
    except ValueError as error:
        raise SiteError(
            f"writing the ceiling of {device} failed: {(done.error or str(error))[-200:]}",
            where=device,
            next_step="install fio (apt install fio), and check that the device has room",
        ) from error
    commands.run(["sync", "-f", str(folder)])
    return {
        "tool": FIO,
        "device": device,
        "write_bytes": written,
        "elapsed_ns": elapsed_ns,
        "block_bytes": _WRITE_BLOCK_BYTES,
        "queue_depth": _WRITE_QUEUE_DEPTH,
        "direct": True,
    }


def write_bytes_per_s(row: dict[str, Any]) -> float:
    """Bandwidth of such a detail."""
    return float(row["write_bytes"] * NS_PER_S / row["elapsed_ns"])
