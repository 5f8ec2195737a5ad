"""Starting a real rehearsal as a process, whole or changed, and looking at what it leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from r8.lab.machine import supervisor
from r8.tests.support.standins import free_ports

ROOT = Path(__file__).resolve().parents[3]
SITE = ROOT / "data" / "sites" / "rehearsal.toml"
SCENARIO = "r8/scenarios/test_r1_parallel_read.py"
CLEANUP_S = 60.0
PORTS = (8197, 8198)  # of the shipped site


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """One rehearsal: its process, its output file and where its runs go."""

    process: subprocess.Popen[bytes]
    log: Path
    runs_root: Path
    home: Path  # everything it makes lies below: what is left there is its own

    def output(self) -> str:
        return self.log.read_text(errors="replace")


def start(
    work: Path,
    *options: str,
    site: Path | None = None,
    runs_root: Path | None = None,
    scenario: str = SCENARIO,
) -> Rehearsal:
    """Start a scenario as nox does."""
    log, runs_root = work / "rehearsal.log", runs_root or work / "runs"
    # A test's own directory has a long name, and the engine's sockets need a short one.
    home = Path(tempfile.mkdtemp(prefix="r8q-", dir="/tmp"))
    options = (*options, "--site", str(site or changed_site(work)))
    argv = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", scenario]
    argv += ["--runs-root", str(runs_root), *options]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            argv,
            cwd=ROOT,
            stdout=sink,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"NO_COLOR": "1", "TMPDIR": str(home)},
            start_new_session=True,
        )
    return Rehearsal(process=process, log=log, runs_root=runs_root, home=home)


def changed_site(work: Path, *pairs: tuple[str, str]) -> Path:
    """The rehearsal's site file on ports of its own, with some words replaced."""
    text = SITE.read_text()
    # Not the shipped site's: a long list and a rehearsal may run beside each other.
    ports = [
        (f"port = {port}", f"port = {free}")
        for port, free in zip(PORTS, free_ports(len(PORTS)), strict=True)
    ]
    for old, new in [*ports, *pairs]:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = work / "site.toml"
    path.write_text(text)
    return path


def _processes(home: Path) -> list[str]:
    """Whatever runs with the rehearsal's own TMPDIR: engines, probes, file systems, clients."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "environ").read_bytes().split(b"\0")
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"TMPDIR={home}".encode() in words and command:
            found.append(f"{directory.name}: {command[:100]}")
    return found


def leftovers(run: Rehearsal) -> list[str]:
    """Everything of a rehearsal that is still there: processes, mounts, loop devices, files."""
    home = str(run.home)
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if home in line]
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=False)
    devices = [line for line in loops.stdout.splitlines() if home in line]
    undone = [str(one) for one in supervisor.leftovers(run.runs_root / ".supervisor")]
    files = [str(path) for path in run.home.glob("r8-*")]
    return [*_processes(run.home), *mounts, *devices, *undone, *files]


def wait_until_clean(run: Rehearsal) -> list[str]:
    """What is left when nothing disappears any more within the time the supervisor may take."""
    deadline = time.monotonic() + CLEANUP_S
    while (left := leftovers(run)) and time.monotonic() < deadline:
        time.sleep(0.5)
    if not left:  # and so no mount below it
        shutil.rmtree(run.home)
    return left
