"""The errors this instrument raises on purpose.

ClientError     printed as one line; the process ends with exit code 4
LinkError       a proxy or TLS refused one connection; the request's row gives it as its reason
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_SOME_FAILED = 1
EXIT_USAGE = 4
# EX_SOFTWARE of sysexits.h. Python's own code for an error nobody caught is 1, EXIT_SOME_FAILED.
EXIT_INTERNAL = 70


class LinkError(Exception):
    """A tunnel or TLS was refused or damaged; `str()` is the reason that the row gives."""


class ClientError(Exception):
    """The client cannot do what was asked; `str()` is the line that is printed."""

    def __init__(self, what: str, *, where: str, next_step: str) -> None:
        """What happened, where, and what to type next."""
        self.what = what
        self.where = where
        self.next_step = next_step
        super().__init__(f"{what} [{where}] -> {next_step}")
