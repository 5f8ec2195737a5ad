"""Findings made by answer, and the parts of a finding a test asks about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.message import Answer, Check, missing, not_applicable
from r8.model import Finding
from r8.report.words import render_checks, render_meaning

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# A check of each answer; what it compares matters to no test.
BY_ANSWER: Mapping[Answer, Check] = {
    Answer.HELD: Check(quantity="n", measured=1, op="==", limit=1, message="q2-measured-once"),
    Answer.REFUTED: Check(quantity="n", measured=7, op="<=", limit=1, message="q2-measured-once"),
    Answer.UNKNOWN: missing("n", "no-measure-window"),
    Answer.NOT_APPLICABLE: not_applicable("n", "recompute-reads-no-kv"),
}


def finding_of(rule_id: str, run_id: str, answer: Answer) -> Finding:
    return Finding(rule_id=rule_id, run_id=run_id, checks=(BY_ANSWER[answer],))


def all_held(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The same findings, as if every rule had held."""
    return tuple(finding_of(one.rule_id, one.run_id, Answer.HELD) for one in findings)


def check_of(finding: Finding, message: str, **facts: object) -> Check:
    """The one check of that message, and of those facts where several instances have it."""
    found = [
        check
        for check in finding.checks
        if check.message == message and facts.items() <= dict(check.facts).items()
    ]
    assert len(found) == 1, f"{message}: {[check.message for check in finding.checks]}"
    return found[0]


def said(finding: Finding) -> str:
    """Its numbers as an English reader sees them."""
    return render_checks(finding.checks)


def meant(finding: Finding) -> str:
    """What follows from them, as an English reader sees it."""
    return render_meaning(finding.checks)
