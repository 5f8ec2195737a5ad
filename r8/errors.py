"""Every error R8 raises on purpose, in one tree.

    R8Error                      exit code 4 unless a subclass says otherwise
    ├── UsageError               the command line asks for something that does not exist
    ├── SiteError                the site file, or the machine it describes, is not usable
    │   └── SiteFileError        a site file has faults; all of them are told, one a line
    ├── PatchError               an LMCache tree is not in a state the patch series knows
    ├── EngineError              an inference engine did not start, answer or stop
    ├── InstrumentError          the load client or a probe failed as a process
    ├── EvidenceError            a run directory cannot be trusted            (exit code 3)
    │   ├── IncompleteRunError   it was never finalised, or lost its manifest
    │   ├── TamperedRunError     a file differs from its manifest
    │   └── BundleError          a sealed bundle is not what its seal says
    └── MetricError              a metric was asked of rows that cannot support it (exit code 3)

Each message says what happened, where, and what to type next: `what`, `where` and `next_step` are
separate arguments so that none can be forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.message import spelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.message import Message

EXIT_REPRODUCED = 0
EXIT_DEVIATES = 1
EXIT_INCONCLUSIVE = 2
EXIT_INVALID = 3
EXIT_USAGE = 4
EXIT_NOTHING_COMPARABLE = 5
# EX_SOFTWARE of sysexits.h: whatever nobody foresaw, see r8.crash.
EXIT_INTERNAL = 70
# What a shell reports for a process ended by a signal: 128 and its number.
EXIT_INTERRUPTED = 130
EXIT_KILLED = 137
EXIT_BROKEN_PIPE = 141
EXIT_TERMINATED = 143

# Every code that `r8` ends with; the README has this table.
EXIT_CODES = {
    EXIT_REPRODUCED: "every judged claim REPRODUCED; of other verbs: done, nothing to object",
    EXIT_DEVIATES: "one DEVIATES",
    EXIT_INCONCLUSIVE: "one INCONCLUSIVE: more blocks are needed",
    EXIT_INVALID: "INVALID: a rule refused a run, or evidence cannot be trusted or goes beyond "
    "a budget",
    EXIT_USAGE: "usage or site error",
    EXIT_NOTHING_COMPARABLE: "nothing comparable was judged",
    EXIT_INTERNAL: "an error of R8 itself, or of a library; the line says where its traceback is",
    EXIT_INTERRUPTED: "interrupted (Ctrl-C)",
    EXIT_KILLED: "killed (SIGKILL), by somebody or for want of memory",
    EXIT_BROKEN_PIPE: "whoever read the output left",
    EXIT_TERMINATED: "ended by SIGTERM",
}


class R8Error(Exception):
    """An error meant for a person: one line, and the exit code that goes with it."""

    exit_code = EXIT_USAGE

    def __init__(self, what: str, *, where: str, next_step: str) -> None:
        """Keep the three parts; `str()` joins them into the line that is printed."""
        self.what = what
        self.where = where
        self.next_step = next_step
        super().__init__(f"{what} [{where}] -> {next_step}")


def told(error: BaseException) -> list[str]:
    """An error as lines, the one that came first before those of cleaning up after it.

    Where a device is gone, what is done about it fails too, and Python raises the last failure:
    the first one is what a person needs. A cause named with `from` is in its error's words already.
    """
    lines: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        lines.insert(0, f"{type(seen).__name__}: {seen}")
        seen = None if seen.__suppress_context__ else seen.__context__
    return list(dict.fromkeys(lines))


class UsageError(R8Error):
    """The command line asks for something that does not exist."""


class SiteError(R8Error):
    """The site file, or the machine it describes, is not usable."""


class SiteFileError(SiteError):
    """A site file has faults; `lines` tells each, where it stands and what to write instead."""

    def __init__(self, lines: Sequence[str], *, where: str) -> None:
        """Keep the lines; `str()` prints them below the path."""
        self.lines = tuple(lines)
        faults = "1 fault" if len(self.lines) == 1 else f"{len(self.lines)} faults"
        super().__init__(
            f"{faults} in the site file", where=where, next_step="mend each line named below"
        )

    def __str__(self) -> str:
        """The path, and a line a fault."""
        return "\n  ".join([super().__str__(), *self.lines])


class PatchError(R8Error):
    """An LMCache tree is not in a state the patch series knows."""


class EngineError(R8Error):
    """An inference engine did not start, answer or stop."""


class InstrumentError(R8Error):
    """The load client or a probe failed as a process."""


class EvidenceError(R8Error):
    """A run directory cannot be trusted."""

    exit_code = EXIT_INVALID


class IncompleteRunError(EvidenceError):
    """A run directory was never finalised, or lost its manifest."""


class TamperedRunError(EvidenceError):
    """A file of a run directory differs from its manifest."""


class BundleError(EvidenceError):
    """A sealed bundle is not what its seal says."""

    def __init__(self, reason: Message, *, where: str, next_step: str) -> None:
        """Keep the reason as data; a verb renders it, `str()` has its id and facts."""
        self.reason = reason
        super().__init__(spelled(reason), where=where, next_step=next_step)


class MetricError(R8Error):
    """A metric was asked of rows that cannot support it."""

    exit_code = EXIT_INVALID
