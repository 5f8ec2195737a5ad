"""The budgets of the process that reads evidence: what the system enforces, whatever is read.

The loader's own budgets (`r8/evidence/budgets.py`) and those of the archive refuse by form and
early. These hold for what no form shows: a query that never ends, a library's fault.
"""

from __future__ import annotations

import errno
import os
import resource
from dataclasses import dataclass

from r8.errors import EvidenceError, UsageError

_GIB = 1 << 30
UNLIMITED = "unlimited"
_HIGHEST = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One budget: its name, the most by default, and what is counted."""

    name: str
    kind: int
    most: int
    counted: str

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"R8_{self.name.upper()}"

    def chosen(self) -> int | None:
        """What the environment says, else the default; None is no limit. Raises UsageError."""
        text = os.environ.get(self.variable, str(self.most))
        if text == UNLIMITED:
            return None
        if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) < _HIGHEST):
            raise UsageError(
                f"{self.variable} is no number above 0",
                where="the environment",
                next_step=f"leave it out ({self.most}), or write a number or {UNLIMITED}",
            )
        return int(text)


LIMITS = {
    one.name: one
    for one in (
        # The report over 72 hours takes a minute; a session of many questions counts as one.
        Limit(
            name="cpu_seconds",
            kind=resource.RLIMIT_CPU,
            most=1800,
            counted="CPU time of all threads",
        ),
        # DuckDB may take 4 GB; stacks of 64 + 64 threads, reserved and unused, are 1 GiB more.
        # Data, not address space: libraries reserve gigabytes of that and never write there.
        Limit(
            name="data_bytes",
            kind=resource.RLIMIT_DATA,
            most=8 * _GIB,
            counted="memory that is written",
        ),
        # The largest bundle; DuckDB spills up to 8 GB.
        Limit(
            name="written_bytes",
            kind=resource.RLIMIT_FSIZE,
            most=16 * _GIB,
            counted="one file that is written",
        ),
        # Five files a run stay open: 800 runs at once.
        Limit(
            name="open_files",
            kind=resource.RLIMIT_NOFILE,
            most=4096,
            counted="files open at once",
        ),
    )
}
_ERRNOS = {errno.EFBIG: "written_bytes", errno.EMFILE: "open_files", errno.ENOMEM: "data_bytes"}


def chosen() -> dict[str, int | None]:
    """Every limit by name, as the environment has it."""
    return {name: one.chosen() for name, one in LIMITS.items()}


def enforce(limits: dict[str, int | None]) -> None:
    """From here on the system ends this process beyond these; a smaller limit it has stays."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core holds the evidence
    for name, most in limits.items():
        kind = LIMITS[name].kind
        hard = resource.getrlimit(kind)[1]
        if most is None:
            continue
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # At the soft limit of CPU time a signal says which it is, a second later none does.
        after = soft + 1 if kind == resource.RLIMIT_CPU else soft
        resource.setrlimit(kind, (soft, min(after, hard) if hard >= 0 else after))


def beyond(name: str, most: int | None) -> EvidenceError:
    """The error of a budget that was hit: its name, and how to raise it."""
    one = LIMITS[name]
    return EvidenceError(
        f"more than the budget {name} = {most} allows ({one.counted})",
        where="r8",
        next_step=f"if you trust the evidence, raise it: {one.variable}={2 * (most or one.most)}",
    )


def behind(error: MemoryError | OSError) -> EvidenceError | None:
    """The budget that an error comes from, when this process has that budget."""
    name = "data_bytes" if isinstance(error, MemoryError) else _ERRNOS.get(error.errno or 0)
    if name is None:
        return None
    soft = resource.getrlimit(LIMITS[name].kind)[0]
    return None if soft == resource.RLIM_INFINITY else beyond(name, soft)
