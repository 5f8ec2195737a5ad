"""Processes of this package: started wherever its folder lies, and pinned to CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PACKAGE = str(__package__)
# The folder that holds the package: further up where it was copied into another package.
_ROOT = Path(__file__).resolve().parents[_PACKAGE.count(".") + 1]


def start_module(module: str, words: Iterable[str]) -> subprocess.Popen[str]:
    """Start `python -m load_client[.module]` with piped standard input and output, in text mode."""
    name = f"{_PACKAGE}.{module}" if module else _PACKAGE
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", name, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )


def send_line(process: subprocess.Popen[str], line: str) -> bool:
    """Write a line to the process's standard input; False when the process no longer reads."""
    if process.stdin is None:
        return False
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return False
    return True


def pin(process_id: int, cpus: Sequence[int], option: str) -> None:
    """Let a process (0: this one) run on these CPUs only; ClientError names the option."""
    try:
        os.sched_setaffinity(process_id, cpus)
    except OSError as refusal:
        raise ClientError(
            f"cannot run on CPUs {list(cpus)}: {refusal.strerror}",
            where=option,
            next_step=f"choose among {sorted(os.sched_getaffinity(0))}",
        ) from refusal
