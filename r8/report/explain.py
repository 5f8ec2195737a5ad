"""The text behind `r8 explain`: what a rule of the certificate or of the audit is for."""

from __future__ import annotations

import textwrap
from typing import Any

from r8.audit.rules import RULES as AUDIT_RULES
from r8.audit.rules import AuditRule
from r8.errors import UsageError
from r8.forensics.rule import Rule
from r8.forensics.rules import RULES
from r8.report.words import render_part, say

WIDTH = 88
INDENT = 11
# Attributes of a rule's entry, and what they are called.
PARTS = {"why": "explain-why", "reads": "explain-reads", "threshold": "explain-threshold"}


def explain(rule_id: str, language: str = "en") -> str:
    """Title, reason, inputs and thresholds of one rule; case does not matter.

    Raises:
        UsageError: no rule has this id.

    """
    rule = _rule(rule_id)
    parts = [
        (name, render_part(rule.entry, part, rule.thresholds, language))
        for part, name in PARTS.items()
    ]
    answers = "audit-answers"
    if isinstance(rule, Rule):
        scope = "explain-of-block" if rule.of_block else "explain-of-run"
        parts.append(("explain-scope", say(language, scope)))
        answers = "explain-answers"
    parts.append(("explain-answers-are", say(language, answers)))
    # A terminal breaks Chinese anywhere; textwrap would only inside the names it quotes.
    told = _paragraph if language == "en" else "{}  {}".format
    lines = [told(say(language, name), text) for name, text in parts]
    return "\n".join([f"{rule.rule_id}  {title(rule, language)}", "", *lines]) + "\n"


def explained(rule_id: str) -> dict[str, Any]:
    """The same as data: the rule's id, its entry in the catalogues, its constants, its scope.

    Raises:
        UsageError: no rule has this id.

    """
    rule = _rule(rule_id)
    facts = {
        "rule_id": rule.rule_id,
        "message": rule.entry,
        "thresholds": dict(rule.thresholds),
    }
    return facts | ({"of_block": rule.of_block} if isinstance(rule, Rule) else {})


def title(rule: Rule | AuditRule, language: str = "en") -> str:
    """What a rule says when it holds."""
    return say(language, rule.entry)


def _rule(rule_id: str) -> Rule | AuditRule:
    rules: tuple[Rule | AuditRule, ...] = (*RULES, *AUDIT_RULES)
    found = next((rule for rule in rules if rule.rule_id == rule_id.upper()), None)
    if found is None:
        known = ", ".join(rule.rule_id for rule in rules)
        raise UsageError(
            f"no rule {rule_id!r}", where="r8 explain", next_step=f"choose one of {known}"
        )
    return found


def _paragraph(name: str, text: str) -> str:
    return textwrap.fill(
        text,
        width=WIDTH,
        initial_indent=f"{name:<{INDENT}}",
        subsequent_indent=" " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
