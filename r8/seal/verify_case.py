"""A bundle while it is being verified, and the lines that come out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from r8.evidence.reader import Evidence
    from r8.model import Claim
    from r8.seal.bundle import Statements


class Standing(StrEnum):
    """What one check came to."""

    PASS = "PASS"  # noqa: S105 - no password
    FAIL = "FAIL"
    NOT_REACHED = "----"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of a verification."""

    name: str
    standing: Standing
    text: str


@dataclass(slots=True, kw_only=True)
class Case:
    """A bundle while it is being verified."""

    source: Path
    tree: Path
    claims: Sequence[Claim]
    verifies: Callable[[Mapping[str, str], bytes, bytes], bool]
    key: Mapping[str, str] | None
    unsigned_allowed: bool
    evidences: list[Evidence] = field(default_factory=list)
    references: list[Evidence] = field(default_factory=list)
    payload: bytes = b""
    said: Statements | None = None
