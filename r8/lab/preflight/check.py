"""One thing that was looked at before anything starts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at; `next_step` is empty when it is fine."""

    name: str
    ok: bool
    saw: str
    next_step: str = ""
    warning: str = ""  # ready, and yet something a person should know
