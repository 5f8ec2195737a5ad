"""The audit as text, Markdown or JSON; the same findings in each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.audit.finding import AuditAnswer
from r8.audit.rules import RULES
from r8.claims.words import LANGUAGES, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from r8.audit.finding import AuditFinding, Lead

SHOWN_IDS = 6


def as_markdown(found: Sequence[AuditFinding], language: str, *, everything: bool = False) -> str:
    """A report by rule: what is off, what cannot be determined, and how much follows."""
    lines = [
        f"# {say(language, 'audit.title')}",
        "",
        say(language, "audit.head"),
        "",
        counted(found, language),
        "",
    ]
    for rule in RULES:
        mine = [one for one in found if one.rule_id == rule.rule_id]
        if not mine:
            continue
        lines += [f"## {rule.rule_id} {say(language, f'{rule.rule_id}.title')}", ""]
        lines += [counted(mine, language), ""]
        shown = [one for one in mine if everything or _is_shown(one)]
        for one in sorted(shown, key=lambda one: _ORDER[one.answer]):
            lines += _item(one, language)
        if shown:
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def as_text(found: Sequence[AuditFinding], language: str, *, everything: bool = False) -> str:
    """The same without headings, one finding a paragraph, for a terminal."""
    lines: list[str] = []
    for one in found:
        if everything or _is_shown(one):
            lines.append(f"{one.rule_id:<4}{one.answer:<13} {one.text(language)}")
            lines += [f"{'':<18}{_lead(lead, language)}" for lead in one.leads]
            lines.append(f"{'':<18}{say(language, 'audit.where', pages='; '.join(one.pages))}")
    return "\n".join([*lines, counted(found, language)]) + "\n"


def as_json(found: Sequence[AuditFinding]) -> str:
    """Every finding with its numbers and its sentence in every language."""
    rows: list[dict[str, Any]] = [
        {
            "rule": one.rule_id,
            "answer": str(one.answer),
            "figures": list(one.figures),
            "reports": list(one.reports),
            "pages": list(one.pages),
            "numbers": dict(one.facts),
            "text": {language: one.text(language) for language in LANGUAGES},
            "leads": [
                {
                    "same_report": lead.same_report,
                    "expression": lead.expression,
                    "arithmetic": lead.arithmetic,
                    "reports": list(lead.reports),
                }
                for lead in one.leads
            ],
        }
        for one in found
    ]
    return json.dumps({"format": 1, "findings": rows}, ensure_ascii=False, indent=1) + "\n"


def _is_shown(one: AuditFinding) -> bool:
    """What is off or undetermined, and the model's load times: nobody published those."""
    return one.answer is not AuditAnswer.FOLLOWS or one.rule_id == "A10"


def counted(found: Iterable[AuditFinding], language: str) -> str:
    """How many findings came to what."""
    answers = [one.answer for one in found]
    numbers = {str(answer).lower(): str(answers.count(answer)) for answer in AuditAnswer}
    return say(language, "audit.count", total=str(len(answers)), **numbers)


_ORDER = {AuditAnswer.OFF: 0, AuditAnswer.UNDETERMINED: 1, AuditAnswer.FOLLOWS: 2}


def _item(one: AuditFinding, language: str) -> list[str]:
    lines = [f"- **{one.answer}** {one.text(language)}"]
    lines += [f"  - {_lead(lead, language)}" for lead in one.leads]
    ids = ", ".join(f"`{name}`" for name in one.figures[:SHOWN_IDS])
    more = len(one.figures) - SHOWN_IDS
    ids += f" +{more}" if more > 0 else ""
    lines.append(f"  - {ids}; {say(language, 'audit.where', pages='; '.join(one.pages))}")
    return lines


def _lead(lead: Lead, language: str) -> str:
    key = "lead.same" if lead.same_report else "lead.other"
    return say(
        language,
        key,
        expression=lead.expression,
        arithmetic=lead.arithmetic,
        reports=", ".join(lead.reports),
    )
