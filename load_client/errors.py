"""The errors this instrument raises on purpose.

ClientError     a line for a person, and exit code 4
LinkError       one connection's way failed; becomes a row, never reaches a person otherwise
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_SOME_FAILED = 1
EXIT_USAGE = 4


class LinkError(Exception):
    """A tunnel or TLS was refused or damaged; `str()` is the reason a row gives."""


class ClientError(Exception):
    """The client cannot do what was asked; `str()` is the line that is printed."""

    def __init__(self, what: str, *, where: str, next_step: str) -> None:
        """Keep the three parts, so that none can be forgotten."""
        self.what = what
        self.where = where
        self.next_step = next_step
        super().__init__(f"{what} [{where}] -> {next_step}")
