"""The iostat witness: sysstat's own view of the same disks, kept raw beside our counters.

An auditor knows iostat and need not trust us. It is started with options that fix locale, units and
timestamps, and stopped by an interrupt, on which it closes its JSON.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING

from .errors import reason_of
from .iostat_json import parse_iostat_json
from .iostat_report import UNIT_BUG
from .readings import Reading, Sample, Stopwatch

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = ("iostat", "-xyt", "-o", "JSON", "1")
_VERSION = re.compile(r"sysstat[^\d]*(\d+)\.(\d+)\.(\d+)")
_REFUSED_VERSION = (12, 2, 0)
_STOP_TIMEOUT_S = 3.0
_VERSION_TIMEOUT_S = 5.0
_PR_SET_PDEATHSIG = 1


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Sysstat's version out of `iostat -V`; None when it is not there."""
    match = _VERSION.search(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def iostat_version() -> tuple[str, str | None]:
    """Output of `iostat -V`, and the reason not to use it (None: usable)."""
    try:
        done = subprocess.run(
            ["iostat", "-V"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_VERSION_TIMEOUT_S,
            env=_environment(),
        )
    except FileNotFoundError:
        return "", "absent: iostat is not on PATH; install sysstat to have the witness"
    except (OSError, subprocess.SubprocessError) as error:
        return "", reason_of(error)
    text = done.stdout + done.stderr
    version = parse_version(text)
    if version is None:
        return text, "failed: iostat -V names no sysstat version"
    return text, UNIT_BUG if version == _REFUSED_VERSION else None


def _environment() -> dict[str, str]:
    # POSIXLY_CORRECT would switch the unit, S_COLORS add escapes, LC_* change dates and commas.
    kept = {name: os.environ[name] for name in ("PATH", "TZ") if name in os.environ}
    return {**kept, "LC_ALL": "C", "S_TIME_FORMAT": "ISO", "S_COLORS": "never"}


def _interrupt_with_parent() -> None:
    """In the child: have the kernel interrupt it when the recorder dies, however it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)
    # A parent that ignores interrupts would otherwise hand that down, and iostat never close.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class IostatWitness:
    """The running iostat process. Start it before any thread is started."""

    name = "iostat"

    def __init__(self, raw_dir: Path) -> None:
        self._output = raw_dir / "iostat.json"
        self._version_file = raw_dir / "iostat_version.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Sample:
        """Start it; the sample says its version, or why there is no witness."""
        watch = Stopwatch()
        version, reason = iostat_version()
        readings = [_text("version", " ".join(version.split()[:3]), reason)]
        if reason is None:
            try:
                self._start(version)
            except OSError as error:
                readings.append(Reading(device="-", counter="witness", reason=reason_of(error)))
            else:
                readings.append(Reading(device="-", counter="witness", text="started"))
        return watch.sample(self.name, readings)

    def _start(self, version: str) -> None:
        self._output.parent.mkdir(parents=True, exist_ok=True)
        if self._output.exists():
            # Evidence is never overwritten: a second recorder of one run keeps its own file.
            self._output = self._output.with_name(f"iostat-{os.getpid()}.json")
            self._version_file = self._output.with_suffix(".version.txt")
        self._version_file.write_text(version, encoding="utf-8")
        with self._output.open("xb") as output:
            self._process = subprocess.Popen(
                COMMAND,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,
                preexec_fn=_interrupt_with_parent,  # noqa: PLW1509 - no thread runs yet
            )

    def stop(self) -> Sample | None:
        """Interrupt it and read its file back; None when it never ran."""
        if self._process is None:
            return None
        watch = Stopwatch()
        code = self._process.poll()
        if code is not None:
            ended = f"failed: iostat ended by itself with code {code}"
            return watch.sample(self.name, [Reading(device="-", counter="witness", reason=ended)])
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return watch.sample(self.name, self._read_back())

    def _read_back(self) -> list[Reading]:
        try:
            with self._output.open("rb") as output:
                text = output.read().decode("utf-8", "replace")
                os.fsync(output.fileno())
        except OSError as error:
            return [Reading(device="-", counter="reports", reason=reason_of(error))]
        found = parse_iostat_json(text)
        return [
            Reading(device="-", counter="reports", value=len(found.samples))
            if found.reason is None
            else Reading(device="-", counter="reports", reason=found.reason),
            Reading(device="-", counter="salvaged", value=int(found.salvaged)),
        ]


def _text(counter: str, text: str, reason: str | None) -> Reading:
    if reason is not None:
        return Reading(device="-", counter=counter, reason=reason)
    return Reading(device="-", counter=counter, text=text)
