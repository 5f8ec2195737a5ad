"""One run of a vendor's command: its raw text is kept, whatever came of it.

An exit code is no sign of health: several of these tools answer 0 with an empty page, or 1 with a
good one. Whether a run was any good is decided by the parser of its text.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

# A whole query was reported to take more than 15 s on a node of 16 GPUs; longer is a hung driver.
TIMEOUT_S = 15.0
# A node's longest page (`rocm-smi -a` of 64 partitions) has some 100 KiB.
MAX_TEXT = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """What one command printed. `reason` is there when it did not start, or was ended by us."""

    argv: tuple[str, ...]
    returncode: int | None = None
    stdout: str = ""
    stderr: str = ""
    reason: str | None = None


def run_tool(argv: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> ToolRun:
    """Run a command to its end or its timeout; never raises, never leaves a child behind."""
    words = tuple(argv)
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Numbers and dates of one locale, whatever the host speaks.
            env=os.environ | {"LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as error:
        return ToolRun(argv=words, reason=reason_of(error))
    late = None
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        late = f"failed: no end within {timeout_s:g} s"
        out, err = _end(process)
    return ToolRun(
        argv=words,
        returncode=None if late else process.returncode,
        stdout=_text(out),
        stderr=_text(err),
        reason=late,
    )


def _end(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Kill the session this command was given, children of its own included."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.communicate(timeout=1.0)
    except subprocess.TimeoutExpired:
        # A process in the kernel's own wait cannot be killed; it is left to the kernel.
        return b"", b""


def _text(data: bytes) -> str:
    return data[:MAX_TEXT].decode("utf-8", "replace")
