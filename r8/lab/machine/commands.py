"""Running the site's own commands: the only way the lab acts on a host."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_TIMEOUT_S = 120.0
# Enough of a command's own words to understand it, not enough to bury the message.
TAIL_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How one command ended; `returncode` is None when it could not start or ran out of time."""

    argv: tuple[str, ...]
    returncode: int | None
    output: str
    error: str | None

    @property
    def ok(self) -> bool:
        """Whether it ran and returned 0."""
        return self.returncode == 0

    @property
    def line(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.argv)


def typed(argv: Iterable[str], tail: str = "") -> str:
    """One command as a dry run prints it: all are typed on the machine R8 runs on."""
    return f"here$ {shlex.join(argv)} {tail}".rstrip()


def run(argv: list[str], *, timeout_s: float = DEFAULT_TIMEOUT_S) -> CommandResult:
    """Run a command to its end; a failure is a result, never an exception."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return CommandResult(
            argv=tuple(argv), returncode=None, output="", error=f"no end within {timeout_s:g} s"
        )
    except OSError as error:
        return CommandResult(argv=tuple(argv), returncode=None, output="", error=str(error))
    said = done.stderr.strip() or done.stdout.strip()
    return CommandResult(
        argv=tuple(argv),
        returncode=done.returncode,
        output=done.stdout,
        error=said[-TAIL_CHARACTERS:] if done.returncode else None,
    )
