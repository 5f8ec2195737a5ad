"""The one error this instrument raises on purpose, its exit codes, and the words of a reason."""

from __future__ import annotations

EXIT_OK = 0
EXIT_INCOMPLETE = 1  # done, but not for every file: the rows say which and why
EXIT_USAGE = 4  # bad plan, missing directory, full disk: one line on stderr says what
# EX_SOFTWARE of sysexits.h. Python's own code for an error nobody caught is 1, EXIT_INCOMPLETE.
EXIT_INTERNAL = 70


class ProbeError(Exception):
    """Ends the process with one line: what happened, where, and what to do next."""

    def __init__(self, what: str, *, where: str, next_step: str) -> None:
        """Keep the three parts; `str()` joins them into the line that is printed."""
        self.what = what
        self.where = where
        self.next_step = next_step
        super().__init__(f"{what} [{where}] -> {next_step}")


def reason_of(error: BaseException) -> str:
    """The text of a sample's `reason` when its source could not be read.

    The first word is one of `absent`, `denied`, `failed`, so that a reader can group by it.
    """
    if isinstance(error, (FileNotFoundError, ProcessLookupError, NotADirectoryError)):
        kind = "absent"
    elif isinstance(error, PermissionError):
        kind = "denied"
    else:
        kind = "failed"
    text = " ".join(str(error).split()) or "no message"
    return f"{kind}: {type(error).__name__}: {text}"
