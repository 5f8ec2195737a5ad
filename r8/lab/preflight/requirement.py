"""What a scenario requires of a site, and what was found there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One thing that was looked at before anything starts."""

    name: str
    saw: str
    next_step: str = ""  # what to do; empty when it is met
    warning: str = ""  # met, and yet something a person should know

    @property
    def ok(self) -> bool:
        """Whether it is met."""
        return not self.next_step
