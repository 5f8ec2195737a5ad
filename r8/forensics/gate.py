"""The gate one run passes before anybody divides its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.certificate import OF_BLOCK, certify, connect_settled
from r8.message import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from r8.evidence.reader import Evidence
    from r8.model import Finding


def not_held(evidence: Evidence) -> tuple[Finding, ...]:
    """Rules that one run does not hold by itself, refuted or unknown; see `refusals`."""
    with connect_settled([evidence]) as connection:
        findings = certify(evidence.run, connection)
    return refusals(findings)


def refusals(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings of one run that refuse it.

    A rule of the block (a negative control) may be held by another run of the block, so here only
    its refutation counts; the verdict asks the block.
    """
    return tuple(
        finding
        for finding in findings
        if finding.answer is Answer.REFUTED
        or (finding.answer is Answer.UNKNOWN and finding.rule_id not in OF_BLOCK)
    )
