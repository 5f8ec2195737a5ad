"""Starting a real rehearsal as a process, whole or changed, and looking at what it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from r8.lab import keeper

ROOT = Path(__file__).resolve().parents[3]
SITE = ROOT / "data" / "sites" / "rehearsal.toml"
SCENARIO = "r8/scenarios/test_r1_parallel_read.py"
CLEANUP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """One rehearsal: its process, its output file and where its runs go."""

    process: subprocess.Popen[bytes]
    log: Path
    runs_root: Path

    def output(self) -> str:
        return self.log.read_text(errors="replace")


def start(work: Path, *options: str, runs_root: Path | None = None) -> Rehearsal:
    """Start the scenario as nox does."""
    log, runs_root = work / "rehearsal.log", runs_root or work / "runs"
    argv = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", SCENARIO]
    argv += ["--runs-root", str(runs_root), *options]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            argv,
            cwd=ROOT,
            stdout=sink,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"NO_COLOR": "1"},
            start_new_session=True,
        )
    return Rehearsal(process=process, log=log, runs_root=runs_root)


def changed_site(work: Path, *pairs: tuple[str, str]) -> Path:
    """The rehearsal's site file with some words replaced."""
    text = SITE.read_text()
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = work / "site.toml"
    path.write_text(text)
    return path


def engines() -> list[str]:
    """Command lines of engines that a rehearsal started, by the mark the keeper leaves on them."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environ = (directory / "environ").read_bytes()
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if b"LMCACHE_LOCAL_DISK=file:///tmp/r8-" in environ and command:
            found.append(f"{directory.name}: {command[:100]}")
    return found


def leftovers(runs_root: Path) -> list[str]:
    """Everything of a rehearsal that is still there: engines, mounts, loop devices, ledgers."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if "/tmp/r8-" in line]
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=False)
    devices = [line for line in loops.stdout.splitlines() if "/tmp/r8-" in line]
    undone = [str(one) for one in keeper.leftovers(runs_root / ".keeper")]
    return [*engines(), *mounts, *devices, *undone]


def wait_until_clean(runs_root: Path) -> list[str]:
    """What is left when nothing disappears any more within the time the keeper may take."""
    deadline = time.monotonic() + CLEANUP_S
    while (left := leftovers(runs_root)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left
