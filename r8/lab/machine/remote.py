"""Instruments on other hosts: copied there, run through the prefix, rows moved onto our clock.

Every instant of a run is on the monotonic clock of the host that runs R8. Rows of another host are
moved by the offset between the two clocks, which is measured by short questions and answers over
the prefix: the answer with the shortest way bounds the error by half of that way. Offset and way
are recorded with every run, and the rows as they came stay in raw/.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from r8.errors import InstrumentError
from r8.lab.machine.hosts import through

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from r8.lab.site.machines import Host

CHECKOUT = Path(__file__).resolve().parents[3]
# Enough that one of them meets no scheduling delay on the way.
PINGS = 20
TIMEOUT_S = 120.0
_PONG = (
    "import sys, time\n"
    "for line in sys.stdin:\n"
    "    print(time.monotonic_ns(), time.time_ns(), flush=True)\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """Another host's clocks less ours, ns; `way_ns` is the round trip it was taken from."""

    host: str
    mono_ns: int
    wall_ns: int
    way_ns: int
    n: int

    def facts(self) -> dict[str, Any]:
        """The detail of an event `clock_offset`."""
        return asdict(self)


def instrument_argv(host: Host, words: list[str]) -> list[str]:
    """The command that runs `python -m WORDS` on a host behind a prefix."""
    path = f"PYTHONPATH={host.instruments_dir}"
    return through(host.exec_prefix, ["env", path, *host.python, "-m", *words])


def install_argv(host: Host) -> list[str]:
    """The command that unpacks the probes on a host; it reads a tar archive."""
    script = 'mkdir -p "$1" && tar -C "$1" -xf -'
    return through(host.exec_prefix, ["sh", "-c", script, "r8", host.instruments_dir])


def install(host: Host) -> None:
    """Copy the probes to a host.

    Raises:
        InstrumentError: it cannot be written there.

    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(CHECKOUT / "probes", arcname="probes", filter=_without_tests)
    try:
        done = subprocess.run(
            install_argv(host),
            input=archive.getvalue(),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unreachable(host, str(error)) from error
    if done.returncode:
        raise InstrumentError(
            f"the probes cannot be copied: {done.stderr.decode(errors='replace').strip()[-200:]}",
            where=f"host {host.name}",
            next_step="give hosts.instruments_dir a directory this user may write on that host",
        )


def _without_tests(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if PurePosixPath(member.name).name in {"tests", "__pycache__"} else member


def _unreachable(host: Host, why: str) -> InstrumentError:
    return InstrumentError(
        f"the host's Python did not answer: {why}",
        where=f"host {host.name}",
        next_step="correct hosts.exec_prefix and hosts.python in the site file",
    )


def clock_argv(host: Host) -> list[str]:
    """The command that answers every line with a host's monotonic and wall clock."""
    return through(host.exec_prefix, [*host.python, "-u", "-c", _PONG])


def clock_offset(host: Host) -> ClockOffset:
    """How far a host's clocks are from ours.

    Raises:
        InstrumentError: the host's Python does not answer.

    """
    with tempfile.TemporaryFile() as complaints:
        try:
            return min(_pings(host, complaints), key=lambda one: one.way_ns)
        except OSError as error:
            raise _unreachable(host, str(error)) from error


def _pings(host: Host, complaints: IO[bytes]) -> list[ClockOffset]:
    """One offset an answer; a host that says nothing is given up."""
    with subprocess.Popen(
        clock_argv(host),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
    ) as process:
        patience = threading.Timer(TIMEOUT_S, process.kill)
        patience.start()
        try:
            return [_ping(process, host, complaints) for _ in range(PINGS)]
        finally:
            if process.stdin is not None:
                process.stdin.close()
            process.wait()
            patience.cancel()


def _ping(process: subprocess.Popen[str], host: Host, complaints: IO[bytes]) -> ClockOffset:
    began_ns, began_wall_ns = time.monotonic_ns(), time.time_ns()
    answer = ""
    if process.stdin is not None and process.stdout is not None:
        # A host that has ended may have printed why; only this question is lost.
        with contextlib.suppress(OSError):
            # Unbuffered: bytes left in a buffer would raise BrokenPipeError again on close.
            os.write(process.stdin.fileno(), b"\n")
        answer = process.stdout.readline()
    way_ns = time.monotonic_ns() - began_ns
    words = answer.split()
    if len(words) != 2 or not all(word.isdigit() for word in words):  # noqa: PLR2004 - two clocks
        complaints.seek(0)
        said = answer.strip() or " ".join(complaints.read().decode(errors="replace").split())
        raise _unreachable(host, said[-200:] or "no output")
    mono_ns, wall_ns = map(int, words)
    middle = way_ns // 2
    return ClockOffset(
        host=host.name,
        mono_ns=mono_ns - (began_ns + middle),
        wall_ns=wall_ns - (began_wall_ns + middle),
        way_ns=way_ns,
        n=PINGS,
    )


def on_our_clock(lines: Iterable[str], offset: ClockOffset) -> Iterator[dict[str, Any]]:
    """Rows of another host's instrument with their instants moved; lines that are no rows are left.

    An instrument's own words on standard error come the same way: they are kept in raw/ only.
    """
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("mono_ns"), int):
            moved = {"mono_ns": row["mono_ns"] - offset.mono_ns}
            if isinstance(row.get("wall_ns"), int):
                moved["wall_ns"] = row["wall_ns"] - offset.wall_ns
            yield row | moved
