"""What a rule is for, in words: the text behind `r8 explain`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from r8.errors import UsageError
from r8.forensics.rules import RULES
from r8.message import Message
from r8.report.words import render, render_part

if TYPE_CHECKING:
    from r8.forensics.rule import Rule

WIDTH = 88
INDENT = 11
# Attributes of a rule's entry, and what they are called.
PARTS = {"why": "explain-why", "reads": "explain-reads", "threshold": "explain-threshold"}


def explain(rule_id: str) -> str:
    """Title, reason, inputs and thresholds of one rule; case does not matter.

    Raises:
        UsageError: no rule has this id.

    """
    rule = _rule(rule_id)
    parts = [
        _paragraph(name, render_part(rule.entry, part, rule.thresholds))
        for part, name in PARTS.items()
    ]
    scope = "explain-of-block" if rule.of_block else "explain-of-run"
    parts.append(_paragraph("explain-scope", render(Message(id=scope))))
    parts.append(_paragraph("explain-answers-are", render(Message(id="explain-answers"))))
    return "\n".join([f"{rule.rule_id}  {title(rule)}", "", *parts]) + "\n"


def explained(rule_id: str) -> dict[str, Any]:
    """The same as data: the rule's id, its entry in the catalogues, its constants, its scope.

    Raises:
        UsageError: no rule has this id.

    """
    rule = _rule(rule_id)
    return {
        "rule_id": rule.rule_id,
        "message": rule.entry,
        "thresholds": dict(rule.thresholds),
        "of_block": rule.of_block,
    }


def title(rule: Rule, language: str = "en") -> str:
    """What a rule says when it holds."""
    return render(Message(id=rule.entry), language)


def _rule(rule_id: str) -> Rule:
    found = next((rule for rule in RULES if rule.rule_id == rule_id.upper()), None)
    if found is None:
        known = ", ".join(rule.rule_id for rule in RULES)
        raise UsageError(
            f"no rule {rule_id!r}", where="r8 explain", next_step=f"choose one of {known}"
        )
    return found


def _paragraph(name: str, text: str) -> str:
    return textwrap.fill(
        text,
        width=WIDTH,
        initial_indent=f"{render(Message(id=name)):<{INDENT}}",
        subsequent_indent=" " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
