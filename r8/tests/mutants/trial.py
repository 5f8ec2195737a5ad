"""One mutant before the tests beside it: a copy of the checkout, a fork, pytest until it fails.

The parent imports what every test needs and nothing of R8, and forks; a child imports R8 from the
copy it stands in. So a trial costs the tests, not the start of an interpreter.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

# Imported here so that a child finds them imported.
import duckdb  # noqa: F401
import numpy as np  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest
import scipy.stats  # noqa: F401

from r8.tests.mutants.changes import Mutant  # noqa: TC001

ROOT = Path(__file__).resolve().parents[3]
# A mutant that loops for ever is noticed: several times what the longest package needs.
TRIAL_LIMIT_S = 600
_LOOK_S = 0.02
# The file a trial changes, then the tests beside it: those of its own name first.
TESTS_OF_SQL = ("r8/tests/metrics", "r8/tests/forensics")


# The copy a worker of the pool changes; one a process.
_copy: list[Path] = []


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"  # counted as killed: somebody would have noticed


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A mutant, its fate, and how long that took."""

    mutant: Mutant
    fate: Fate
    spent_s: float


def beside(path: str) -> list[str]:
    """The tests of a file, those that bear its name first."""
    package, name = Path(path).parent, f"test_{Path(path).stem}.py"
    if path.endswith(".sql"):
        wanted = [Path(TESTS_OF_SQL[0]) / name, *map(Path, TESTS_OF_SQL)]
    else:
        folder = Path("r8/tests") / package.relative_to("r8")
        # Beside a module of the ground lie the tests of everything: its own file must do.
        wanted = [folder / name] if package == Path("r8") else [folder / name, folder]
    return [str(one) for one in wanted if (ROOT / one).exists()]


def prepare(folder: str) -> None:
    """Give this worker a copy of the checkout, below `folder`."""
    _copy.append(copy_checkout(Path(tempfile.mkdtemp(dir=folder))))


def is_sound(tests: str) -> tuple[str, bool]:
    """Whether tests pass without any fault: else a trial by them would say nothing."""
    return tests, _fate(_copy[0], [tests]) is Fate.SURVIVED


def attempt(mutant: Mutant) -> Trial:
    """Try one mutant in this worker's copy."""
    return try_mutant(_copy[0], mutant)


def copy_checkout(place: Path) -> Path:
    """The tracked files of the checkout in a folder of their own, reference runs linked."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if not name.startswith("data/reference/") and (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    (place / "data" / "reference").symlink_to(ROOT / "data" / "reference")
    return place


def try_mutant(copy: Path, mutant: Mutant) -> Trial:
    """Put the fault in, run the tests beside it until one fails, take it out again."""
    began = time.monotonic()
    target = copy / mutant.path
    was = target.read_bytes()
    target.write_text(mutant.text, encoding="utf-8")
    try:
        fate = _fate(copy, beside(mutant.path))
    finally:
        target.write_bytes(was)
    return Trial(mutant=mutant, fate=fate, spent_s=time.monotonic() - began)


def _fate(copy: Path, tests: list[str]) -> Fate:
    for one in tests:
        status = _forked(copy, one)
        if status is None:
            return Fate.TIMED_OUT
        if status != 0:
            return Fate.KILLED
    return Fate.SURVIVED


def _forked(copy: Path, test: str) -> int | None:
    """The exit status of pytest in a child; None when it took too long."""
    child = os.fork()
    if child == 0:
        _child(copy, test)
    deadline = time.monotonic() + TRIAL_LIMIT_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(_LOOK_S)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _child(copy: Path, test: str) -> None:
    os.setpgid(0, 0)
    os.chdir(copy)
    sink = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(sink, stream)
    for name in [name for name in sys.modules if name.split(".")[0] in {"r8", "probes"}]:
        del sys.modules[name]
    sys.path[:] = [str(copy), *(place for place in sys.path if Path(place) not in (ROOT, Path()))]
    sys.dont_write_bytecode = True
    argv = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not qualify and not browser", test]
    os._exit(min(int(pytest.main(argv)), 125))
