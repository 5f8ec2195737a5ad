"""The iostat witness: sysstat's own view of the same disks, kept raw beside our counters.

An auditor knows iostat and need not trust us. It is started with options that fix locale, units and
timestamps, and stopped by an interrupt, on which it closes its JSON. Its numbers are not read here:
reports are only counted, to say whether the witness is whole.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING

from ..errors import reason_of
from ..plan import Setting, flag
from ..probe import Context, Status
from ..samples import Batch, Sample, Stopwatch, samples_of

if TYPE_CHECKING:
    from pathlib import Path

NAME = "iostat"
IOSTAT: Setting[bool] = Setting(key="iostat", default=True, accept=flag, example="true or false")
COMMAND = ("iostat", "-xyt", "-o", "JSON", "1")
UNIT_BUG = "refused: sysstat 12.2.0 prints sectors as kB or MB in JSON (sysstat issue 264)"
_REFUSED_VERSION = (12, 2, 0)
_VERSION = re.compile(r"sysstat[^\d]*(\d+)\.(\d+)\.(\d+)")
_STOP_TIMEOUT_S = 3.0
_VERSION_TIMEOUT_S = 5.0
_PR_SET_PDEATHSIG = 1
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_START = re.compile(r'\{\s*"sysstat"')
_CLOSER = {"{": "}", "[": "]"}
# { sysstat { hosts [ host { statistics [  -> a report is complete when the nesting is back at 5.
_REPORT_DEPTH = 5


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


def check(_context: Context) -> Status:
    """Whether there is an iostat that can be used."""
    text, reason = iostat_version()
    return Status(works="no" if reason else "yes", detail=reason or " ".join(text.split()[:3]))


def count_reports(text: str) -> tuple[int, bool]:
    """Complete reports in iostat's JSON, and whether the document itself is whole.

    A termination signal leaves the last closers out, and versions before 12.0.4 do so on an
    interrupt too; versions up to 12.1.4 put a comma before the first report under -y.
    """
    start = _START.search(text)
    if start is None:
        return 0, False
    body = text[start.start() :]
    try:
        json.JSONDecoder().raw_decode(body)
        whole = True
    except (ValueError, RecursionError):
        whole = False
    reports = 0
    stack: list[str] = []
    for token in _TOKEN.finditer(body):
        mark = token.group()
        if mark in _CLOSER:
            stack.append(mark)
        elif mark in {"}", "]"}:
            if not stack or _CLOSER[stack.pop()] != mark:
                break
            reports += len(stack) == _REPORT_DEPTH and mark == "}"
    return reports, whole


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

    def __init__(self, raw_dir: Path) -> None:
        self._output = raw_dir / "iostat.json"
        self._version_file = raw_dir / "iostat_version.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Batch:
        """Start it; the batch says its version, or why there is no witness."""
        watch = Stopwatch()
        version, reason = iostat_version()
        if reason is not None:
            return watch.batch(NAME, samples_of("-", reasons={"version": reason}))
        texts, reasons = {"version": " ".join(version.split()[:3])}, {}
        try:
            self._start(version)
        except OSError as error:
            reasons["witness"] = reason_of(error)
        else:
            texts["witness"] = "started"
        return watch.batch(NAME, samples_of("-", {}, texts, reasons))

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

    def stop(self) -> Batch | None:
        """Interrupt it and read its file back; None when it never ran."""
        if self._process is None:
            return None
        watch = Stopwatch()
        code = self._process.poll()
        if code is not None:
            ended = {"witness": f"failed: iostat ended by itself with code {code}"}
            return watch.batch(NAME, samples_of("-", reasons=ended))
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return watch.batch(NAME, self._read_back())

    def _read_back(self) -> list[Sample]:
        try:
            with self._output.open("rb") as output:
                reports, whole = count_reports(output.read().decode("utf-8", "replace"))
                os.fsync(output.fileno())
        except OSError as error:
            return samples_of("-", reasons={"reports": reason_of(error)})
        if not reports:
            none = {"reports": "failed: not one complete report in its file"}
            return samples_of("-", reasons=none)
        return samples_of("-", {"reports": reports, "cut_short": int(not whole)})
