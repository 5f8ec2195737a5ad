"""`r8 audit`: which printed numbers follow from which others, rule by rule.

Nothing here measures: a finding is arithmetic on printed numbers and says what it divided by what.
OFF means that no value which prints like the inputs gives the printed result; it does not say why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from r8.audit import figures, relations
from r8.claims.measured import samples_needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.audit.finding import AuditFinding
    from r8.claims.ledger import Ledger
    from r8.message import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRule:
    """A rule: its id, what applies it to a whole ledger, and its constants."""

    rule_id: str
    apply: Callable[[Ledger], Iterator[AuditFinding]]
    thresholds: Facts = field(default_factory=dict)  # as `.threshold` of its entry names them

    @property
    def entry(self) -> str:
        """Its entry in the catalogues."""
        return f"rule-{self.rule_id.lower()}"


RULES = (
    AuditRule(rule_id="A1", apply=figures.derived),
    AuditRule(rule_id="A2", apply=figures.labels),
    AuditRule(rule_id="A3", apply=figures.reprints),
    AuditRule(rule_id="A4", apply=relations.ranges),
    AuditRule(
        rule_id="A5",
        apply=relations.bases,
        thresholds={"tolerance_share": float(relations.SIZE_TOLERANCE)},
    ),
    AuditRule(rule_id="A6", apply=relations.ceilings),
    AuditRule(
        rule_id="A7",
        apply=figures.percentiles,
        thresholds={"p90": samples_needed(90), "p99": samples_needed(99)},
    ),
    AuditRule(rule_id="A8", apply=relations.dimensions),
    AuditRule(rule_id="A9", apply=relations.repeats),
    AuditRule(rule_id="A10", apply=relations.models),
    AuditRule(rule_id="A11", apply=figures.platforms),
)


def audit(ledger: Ledger, report: str | None = None) -> list[AuditFinding]:
    """Every finding, in the order of the rules; with `report`, those that touch its figures.

    Raises:
        UsageError: no figure of that report.

    """
    if report is not None:
        ledger.of(report)
    found = [one for rule in RULES for one in rule.apply(ledger)]
    return [one for one in found if report is None or report in one.reports]
