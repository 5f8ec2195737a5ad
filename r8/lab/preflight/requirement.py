"""What a scenario requires of a site, and what was found there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One thing that was looked at before anything starts."""

    name: str
    ok: bool
    saw: str
    next_step: str = ""  # what to do; empty when it is fine
    warning: str = ""  # ready, and yet something a person should know
