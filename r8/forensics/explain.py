"""What a rule is for, in words: the text behind `r8 explain`."""

from __future__ import annotations

import textwrap

from r8.errors import UsageError
from r8.forensics.rules import RULES

WIDTH = 88
INDENT = 11
_PARTS = ("why", "reads", "threshold", "scope", "answers")
ANSWERS = (
    "held; refuted (by number); unknown (evidence is missing), which is INVALID for every claim "
    "that needs the rule, never a pass; not applicable, where the run's own plan gives the rule no "
    "subject, with the reason in words."
)


def explain(rule_id: str) -> str:
    """Title, reason, inputs and thresholds of one rule; case does not matter.

    Raises:
        UsageError: no rule has this id.

    """
    facts = explained(rule_id)
    lines = [_paragraph(name.capitalize(), facts[name]) for name in _PARTS]
    return "\n".join([f"{facts['rule_id']}  {facts['title']}", "", *lines]) + "\n"


def explained(rule_id: str) -> dict[str, str]:
    """The same as fields: rule_id, title, why, reads, threshold, scope, answers.

    Raises:
        UsageError: no rule has this id.

    """
    for rule in RULES:
        if rule.rule_id == rule_id.upper():
            scope = (
                "One run of a block that holds it speaks for the block; one that refutes it "
                "speaks against it."
                if rule.of_block
                else "It must hold in every run a verdict rests on."
            )
            return {
                "rule_id": rule.rule_id,
                "title": rule.title,
                "why": rule.reason,
                "reads": rule.inputs,
                "threshold": rule.threshold,
                "scope": scope,
                "answers": ANSWERS,
            }
    known = ", ".join(rule.rule_id for rule in RULES)
    raise UsageError(f"no rule {rule_id!r}", where="r8 explain", next_step=f"choose one of {known}")


def _paragraph(name: str, text: str) -> str:
    return textwrap.fill(
        text,
        width=WIDTH,
        initial_indent=f"{name:<{INDENT}}",
        subsequent_indent=" " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
