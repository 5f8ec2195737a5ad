"""`r8 audit`: which printed numbers follow from which others, rule by rule.

Nothing here measures: a finding is arithmetic on printed numbers and says what it divided by what.
OFF means that no reading of the printed inputs gives the printed result; it does not say why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.audit import figures as audit_figures
from r8.audit import relations as audit_relations
from r8.audit import repeat as audit_repeat
from r8.audit import utilisation as audit_utilisation
from r8.claims.words import say
from r8.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.audit.finding import AuditFinding
    from r8.claims.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRule:
    """A rule: its id, and what applies it to a whole ledger."""

    rule_id: str
    apply: Callable[[Ledger], Iterator[AuditFinding]]


RULES = (
    AuditRule(rule_id="A1", apply=audit_figures.derived),
    AuditRule(rule_id="A2", apply=audit_figures.labels),
    AuditRule(rule_id="A3", apply=audit_figures.reprints),
    AuditRule(rule_id="A4", apply=audit_relations.ranges),
    AuditRule(rule_id="A5", apply=audit_relations.bases),
    AuditRule(rule_id="A6", apply=audit_relations.ceilings),
    AuditRule(rule_id="A7", apply=audit_figures.percentiles),
    AuditRule(rule_id="A8", apply=audit_relations.dimensions),
    AuditRule(rule_id="A9", apply=audit_repeat.pairs),
    AuditRule(rule_id="A10", apply=audit_utilisation.model),
    AuditRule(rule_id="A11", apply=audit_figures.platforms),
)
EXPLAINED = ("why", "reads", "threshold")


def audit(ledger: Ledger, report: str | None = None) -> list[AuditFinding]:
    """Every finding, in the order of the rules; with `report`, those that touch its figures.

    Raises:
        UsageError: no figure of that report.

    """
    if report is not None:
        ledger.of(report)
    found = [one for rule in RULES for one in rule.apply(ledger)]
    return [one for one in found if report is None or report in one.reports]


def explain_rule(rule_id: str, language: str = "en") -> str:
    """Title, reason, inputs and threshold of an audit rule.

    Raises:
        UsageError: no audit rule has this id.

    """
    wanted = rule_id.upper()
    if all(rule.rule_id != wanted for rule in RULES):
        known = ", ".join(rule.rule_id for rule in RULES)
        raise UsageError(
            f"no audit rule {rule_id!r}", where="r8 explain", next_step=f"choose one of {known}"
        )
    lines = [f"{wanted}  {say(language, f'{wanted}.title')}", ""]
    lines += [
        f"{say(language, f'explain.{name}')}: {say(language, f'{wanted}.{name}')}"
        for name in EXPLAINED
    ]
    lines.append(f"{say(language, 'explain.answers')}: {say(language, 'explain.answers_are')}")
    return "\n".join(lines) + "\n"


def is_audit_rule(rule_id: str) -> bool:
    """Whether the id is one of the audit's, in either case."""
    return any(rule.rule_id == rule_id.upper() for rule in RULES)
