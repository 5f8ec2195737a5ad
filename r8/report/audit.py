"""The audit and the checklist as text and Markdown, in English or Chinese.

A finding holds numbers (`x_low`, `x_high`, `x_unit`); here they become what an auditor writes:
`12.609..12.62 x`. The entries of the catalogues are filled with these texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.audit.checklist import Status
from r8.audit.finding import AuditFinding, span
from r8.audit.rules import RULES
from r8.claims.printed import plain
from r8.message import Answer, Message
from r8.report.explain import title
from r8.report.tables import LIST
from r8.report.words import InMarkdown, say
from r8.text import Markdown, Visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from r8.audit.checklist import ChecklistItem
    from r8.audit.finding import Lead
    from r8.claims.reports import Reports
    from r8.message import Fact, Facts

SHOWN_IDS = 6
_WORDS = {Answer.REFUTED: "OFF", Answer.UNKNOWN: "UNDETERMINED", Answer.HELD: "FOLLOWS"}
_STATUS = {
    Status.STATED: "status-stated",
    Status.PARTLY: "status-partly",
    Status.NOT_PUBLISHED: "status-not-published",
}
# Numbers of findings that are neither a span nor a size with a unit.
_FORMATS: dict[str, Callable[[float], str]] = {
    "share": lambda one: f"{one:.2%}",
    "times": lambda one: plain(one, 3),
    "bytes": lambda one: f"{one:.0f}",
    "decimal_gb": lambda one: plain(one, 5),
    "binary_gb": lambda one: plain(one, 5),
    "switches": lambda one: f"{one:g}",
}


def sentence(one: AuditFinding, language: str) -> Visible:
    """A finding in one sentence: what it is about, and its arithmetic."""
    text = say(language, one.check.message, **_told(one.check.facts))
    about = "" if one.relation is None else one.relation.about.get(language, "")
    return type(text)("{}: {}").format(about, text) if about else text


def as_markdown(found: Sequence[AuditFinding], language: str, *, everything: bool = False) -> str:
    """A report by rule: what is off, what cannot be determined, and how much follows."""
    language = InMarkdown(language)
    lines = [f"# {say(language, 'audit-title')}", "", say(language, "audit-head"), ""]
    lines += [_counted(found, language), ""]
    order = list(_WORDS)
    for rule in RULES:
        mine = [one for one in found if one.rule_id == rule.rule_id]
        if not mine:
            continue
        lines += [f"## {rule.rule_id} {title(rule, language)}", ""]
        lines += [_counted(mine, language), ""]
        shown = [one for one in mine if everything or _is_shown(one)]
        for one in sorted(shown, key=lambda one: order.index(one.answer)):
            lines += _item(one, language)
        if shown:
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def as_text(found: Sequence[AuditFinding], language: str, *, everything: bool = False) -> str:
    """The same without headings, one finding a paragraph, for a terminal."""
    lines: list[str] = []
    for one in found:
        if everything or _is_shown(one):
            lines.append(f"{one.rule_id:<4}{_WORDS[one.answer]:<13} {sentence(one, language)}")
            lines += [f"{'':<18}{_lead(lead, language)}" for lead in one.leads]
            lines.append(f"{'':<18}{_where(one, language)}")
    return "\n".join([*lines, _counted(found, language)]) + "\n"


def checklist_markdown(
    items: Iterable[ChecklistItem], reports: Reports, report_id: str, language: str
) -> str:
    """The five answers as a list; what the pages say stands in the words of `reports`."""
    language = InMarkdown(language)
    lines = [f"# {say(language, 'checklist-title', report=report_id)}", ""]
    for item in items:
        name, status = (say(language, one) for one in (item.check.message, _STATUS[item.status]))
        lines.append(f"- **{name}**: {status}")
        lines += [f"  - {_line(one, reports, language)}" for one in item.lines]
    return "\n".join(lines) + "\n"


def _is_shown(one: AuditFinding) -> bool:
    """What is off or undetermined, and the model's load times: nobody published those."""
    return one.answer is not Answer.HELD or one.rule_id == "A10"


def _counted(found: Iterable[AuditFinding], language: str) -> str:
    """How many findings came to what."""
    answers = [one.answer for one in found]
    counts = {
        "follows": answers.count(Answer.HELD),
        "off": answers.count(Answer.REFUTED),
        "undetermined": answers.count(Answer.UNKNOWN),
    }
    return say(language, "audit-count", total=len(answers), **counts)


def _item(one: AuditFinding, language: str) -> list[str]:
    lines = [f"- **{_WORDS[one.answer]}** {sentence(one, language)}"]
    lines += [f"  - {_lead(lead, language)}" for lead in one.leads]
    ids = LIST.join(Markdown("`{}`").format(name) for name in one.figures[:SHOWN_IDS])
    more = len(one.figures) - SHOWN_IDS
    left = f" +{more}" if more > 0 else ""
    return [*lines, f"  - {ids}{left}; {_where(one, language)}"]


def _where(one: AuditFinding, language: str) -> str:
    return say(language, "audit-where", pages="; ".join(one.pages))


def _lead(lead: Lead, language: str) -> str:
    return say(
        language,
        "lead-same-report" if lead.same_report else "lead-other-report",
        expression=lead.expression,
        arithmetic=lead.arithmetic,
        reports=", ".join(lead.reports),
    )


def _line(one: Message | AuditFinding, reports: Reports, language: str) -> str:
    if isinstance(one, AuditFinding):
        return sentence(one, language)
    facts = dict(one.facts)
    if "quote" in facts:
        owner, _, name = str(facts["quote"]).rpartition(".")
        told = reports.scenarios[owner] if owner in reports.scenarios else reports.report(owner)
        facts["quote"] = getattr(told, name)[language]
    return say(language, one.id, **facts)


def _told(facts: Facts) -> dict[str, Fact]:
    """The facts of a finding as texts: both ends as one span, a size with its unit."""
    told: dict[str, Fact] = {}
    for name, value in facts.items():
        stem, _, end = name.rpartition("_")
        unit = str(facts.get(f"{name}_unit", facts.get(f"{stem}_unit", "")))
        if end == "low":
            told[stem] = span(_number(value), _number(facts[f"{stem}_high"]), unit)
        elif f"{name}_unit" in facts:
            sign = " points" if "%" in unit else f" {unit}" if unit else ""
            told[name] = plain(_number(value), 3) + sign
        elif end not in {"high", "unit"}:
            told[name] = _FORMATS[name](_number(value)) if name in _FORMATS else value
    return told


def _number(value: Fact) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"not a number: {value!r}")
    return value
