"""What a device of the site gives by itself, by fio, before every block.

The files lie in a directory of their own in the device's `kv_dir` and are removed afterwards, also
when this process is killed. Everything goes through the host's exec prefix.
"""

from __future__ import annotations

import secrets
import subprocess
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.lab.instruments import fio
from r8.lab.instruments.readers import CEILING, FIO, SERIAL, Reading
from r8.lab.machine import commands
from r8.lab.machine.hosts import KvDirectory, free_bytes, through
from r8.lab.rehearsal.calibrate import Calibration
from r8.lab.site.stress import chunk_file_bytes
from r8.lab.site.transfer import WorkPlan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.file import Device, Host, Plan, Site

# What the file system itself needs beside the files.
ROOM_FACTOR = 1.1
SWITCH_OFF = "set fio.read_bytes = 0: gate G2 and shares of the ceiling are then not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class FioWords:
    """The commands of one device's calibration, as they are run and as a dry run prints them."""

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
        """Number of chunk files for the serial reading."""
        return self.device.fio.serial_files(self.ceiling_bytes, self.file_bytes)

    @property
    def needed_bytes(self) -> int:
        """Free bytes the file system must have."""
        return round((self.ceiling_bytes + self.files * self.file_bytes) * ROOM_FACTOR)

    def words(self, kind: str, *, write: bool) -> list[str]:
        """The command that lays out or reads one set of files."""
        stress, path = self.device.fio, self.folder.path
        if kind == CEILING:
            argv = fio.ceiling_argv(stress, path, self.ceiling_bytes, write=write)
        else:
            argv = fio.serial_argv(stress, path, self.files, self.file_bytes, write=write)
        return through(self.host.exec_prefix, argv)


def fio_words(
    site: Site, plan: Plan | WorkPlan, name: str, token: str | None = None
) -> FioWords | None:
    """The calibration of a device for one scenario; None where the site switched it off."""
    device = site.device(name)
    if device.fio.read_bytes == 0:
        return None
    host = site.host(device.host)
    folder = PurePosixPath(device.kv_dir) / f"r8-fio-{token or secrets.token_hex(4)}"
    return FioWords(
        device=device,
        host=host,
        file_bytes=_file_bytes(plan),
        folder=KvDirectory(host=host, path=str(folder)),
    )


def _file_bytes(plan: Plan | WorkPlan) -> int:
    if isinstance(plan, WorkPlan):
        return plan.file_bytes
    return chunk_file_bytes(plan.chunk_tokens, plan.bytes_per_token, plan.ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCalibrator:
    """Calibrates one device that is as it is: nothing is turned, every block measures the same."""

    words: FioWords
    supervisor: Supervisor
    drop: tuple[str, ...]
    work_dir: Path
    say: Callable[[str], None]

    def first(self) -> Calibration:
        """What the device gives now.

        Raises:
            SiteError: too little room, no fio, or fio failed.

        """
        words, name = self.words, self.words.device.name
        require_room(words, free_bytes(words.host, words.device.kv_dir))
        self.say(f"fio reads {words.ceiling_bytes >> 20} MiB of {name} in files of its own")
        token = self.supervisor.on_exit(words.folder.words("remove"), f"fio's files on {name}")
        words.folder.make()
        try:
            for kind in (CEILING, SERIAL):
                self._run(kind, write=True)
            found = self._calibration()
        finally:
            self.supervisor.undo(token)
        self.say(f"{name}: ceiling : serial = {found.ratio:.2f}, {found.note}")
        return found

    def again(self) -> Calibration:
        """As at first: there is nothing to turn."""
        return self.first()

    def _calibration(self) -> Calibration:
        ceiling, serial = self._reading(CEILING), self._reading(SERIAL)
        return Calibration(
            ceiling=ceiling,
            serial=serial,
            shape=None,
            ratio=ceiling.bytes_per_s / serial.bytes_per_s,
            within=None,
            note="unshaped: measured only",
        )

    def _reading(self, kind: str) -> Reading:
        dropped = commands.run(list(self.drop))
        if not dropped.ok:
            raise SiteError(
                f"dropping the page cache failed: {dropped.error}",
                where=dropped.line,
                next_step="mend drop_caches of that host; r8 preflight looks at it",
            )
        mono_ns = time.monotonic_ns()
        answer = self._run(kind, write=False)
        try:
            nbytes, elapsed_ns = fio.read_answer(answer)
        except (ValueError, KeyError, IndexError) as error:
            raise _failed(self.words, kind, f"its answer says {error}") from error
        stress, is_ceiling = self.words.device.fio, kind == CEILING
        return Reading(
            name=kind,
            tool=FIO,
            read_bytes=nbytes,
            elapsed_ns=elapsed_ns,
            block_bytes=stress.block_bytes if is_ceiling else self.words.file_bytes,
            queue_depth=stress.queue_depth if is_ceiling else 1,
            direct=is_ceiling,
            mono_ns=mono_ns,
        )

    def _run(self, kind: str, *, write: bool) -> str:
        """Run one fio through the supervisor, so that it ends also when this process is killed."""
        name = self.words.device.name
        log = self.work_dir / f"fio-{name}-{time.monotonic_ns()}.json"
        argv = self.words.words(kind, write=write)
        process = self.supervisor.spawn(f"fio on {name}", argv, log_path=log)
        stress = self.words.device.fio
        limit_s = max(stress.seconds, stress.layout_seconds) + 2 * fio.GRACE_S
        try:
            code: int | None = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            code = None
        self.supervisor.stop(process, grace_s=1.0)
        said = log.read_text(errors="replace")
        if code != 0:
            last = " ".join(said[-commands.TAIL_CHARACTERS :].split())
            raise _failed(self.words, kind, f"code {code}: {last}")
        return said


def _failed(words: FioWords, kind: str, why: str) -> SiteError:
    return SiteError(
        f"fio ({kind}) failed: {why}",
        where=f"{words.folder.path} on {words.host.name}",
        next_step=f"mend fio there (apt install fio; O_DIRECT must work), or {SWITCH_OFF}",
    )


def require_room(words: FioWords, free: int) -> None:
    """Refuse a file system that cannot hold fio's files.

    Raises:
        SiteError: with both numbers.

    """
    if free < words.needed_bytes:
        raise SiteError(
            f"{free} bytes free, fio's files need {words.needed_bytes}",
            where=f"{words.device.kv_dir} on {words.host.name} (device {words.device.name})",
            next_step=f"free {words.needed_bytes - free} bytes, lower fio.read_bytes of the "
            f"device, or {SWITCH_OFF}",
        )
