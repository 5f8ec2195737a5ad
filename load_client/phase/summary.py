"""What became of a phase, or of one process's part of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(slots=True)
class PhaseSummary:
    """Counts of outcomes, and what a person should know."""

    outcomes: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)  # of answers that are ok
    first_failure: str | None = None
    unsent_turns: int = 0
    findings: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def all_ok(self) -> bool:
        """Every planned request was sent and came back whole."""
        return not (self.interrupted or self.unsent_turns) and set(self.outcomes) <= {"ok"}

    @property
    def counts(self) -> str:
        """The outcomes in words."""
        counts = ", ".join(f"{n} {name}" for name, n in sorted(self.outcomes.items()))
        return counts or "nothing sent"

    def as_json(self) -> dict[str, Any]:
        """JSON values, for the process that started this one."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def add(self, part: dict[str, Any]) -> None:
        """Add the part of another process, its `as_json`; {} where it gave none."""
        self.outcomes.update(part.get("outcomes", {}))
        self.marks.update(part.get("marks", {}))
        self.findings += part.get("findings", [])
        self.unsent_turns += part.get("unsent_turns", 0)
        self.first_failure = self.first_failure or part.get("first_failure")
        self.interrupted = self.interrupted or part.get("interrupted", True)
