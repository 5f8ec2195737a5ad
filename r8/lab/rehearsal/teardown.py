"""Undoing the stages of a shaped device: idempotent, so each is noted before it is done.

    python teardown.py unmount PATH      nothing is mounted at PATH any more
    python teardown.py detach FILE       no loop device stands on FILE any more
    python teardown.py remove PATH       the directory made for the device is gone

Run as a script by the supervisor, possibly long after its parent: standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

# Processes that still had files open when they were ended need a moment to let go.
_ATTEMPTS = 10
_PAUSE_S = 0.3


def undo_argv(verb: str, path: Path) -> list[str]:
    """The command that undoes a stage, for `Supervisor.on_exit`."""
    return [sys.executable, str(Path(__file__).resolve()), verb, str(path.absolute())]


def unmount(path: Path) -> None:
    """Unmount whatever is stacked at `path`; lazily when it stays busy."""
    for attempt in range(2 * _ATTEMPTS):
        if str(path) not in mount_points():
            return
        time.sleep(_PAUSE_S if attempt else 0.0)
        if os.geteuid() == 0:
            lazy = ["-l"] if attempt >= _ATTEMPTS else []
            _run("umount", *lazy, str(path))
        else:
            lazy = ["-z"] if attempt >= _ATTEMPTS else []
            _run("fusermount3", "-u", *lazy, str(path))
    raise SystemExit(f"{path} is still mounted")


def detach(file: Path) -> None:
    """Detach every loop device that stands on `file`. Reads sysfs: the file may be dead."""
    for attempt in range(_ATTEMPTS):
        devices = loop_devices_on(file)
        if not devices:
            return
        time.sleep(_PAUSE_S if attempt else 0.0)
        for device in devices:
            _run("losetup", "-d", device)
    raise SystemExit(f"{file} still carries {', '.join(loop_devices_on(file))}")


def remove(path: Path) -> None:
    """Remove a directory with what the device left in it; never across a mount."""
    inside = [point for point in mount_points() if Path(point).is_relative_to(path)]
    if inside:
        raise SystemExit(f"{', '.join(inside)} still mounted")
    shutil.rmtree(path, ignore_errors=True)


def mount_points() -> set[str]:
    """Every mount point of this mount namespace."""
    lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    # The kernel writes blank, tab, newline and backslash as octal escapes.
    return {
        line.split(" ")[4].encode("latin-1", "surrogateescape").decode("unicode_escape")
        if "\\" in line
        else line.split(" ")[4]
        for line in lines
    }


def loop_devices_on(file: Path) -> list[str]:
    """Device paths, /dev/loopN, whose backing file is `file`."""
    found = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = entry.read_text().rstrip("\n").removesuffix(" (deleted)")
        except OSError:
            continue
        if backing == str(file):
            found.append(f"/dev/{entry.parts[3]}")
    return found


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        print(f"{' '.join(argv)}: {done.stderr.strip()}", file=sys.stderr)


if __name__ == "__main__":
    verb, target = sys.argv[1:]
    {"unmount": unmount, "detach": detach, "remove": remove}[verb](Path(target))
