"""What a forensic rule is: named checks with printed arithmetic, and one of three answers.

A check compares numbers and says `True`, `False` or `None`, where `None` means that the evidence
to answer is missing. A rule is refuted as soon as one check fails by number; otherwise it is
unknown as soon as one cannot be answered; it is held only when every check is. A rule that found
nothing to look at is unknown, never held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.model import Answer, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from r8.forensics.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison inside a rule."""

    arithmetic: str  # the numbers and the comparison, as printed
    held: bool | None  # None: the evidence is missing
    otherwise: str  # what it means when it did not hold, and where to look


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One line of the certificate, with everything `r8 explain` prints about it."""

    rule_id: str
    title: str
    reason: str  # which wrong conclusion it prevents
    inputs: str  # tables, events and counters it reads
    threshold: str  # its constants, with their reasons
    checks: Callable[[Case], Sequence[Check]]
    of_block: bool = False  # one run that holds it speaks for every run of its block


def apply(rule: Rule, case: Case) -> Finding:
    """The rule's answer for one run, with the arithmetic of all its checks."""
    checks = list(rule.checks(case))
    failed = [check for check in checks if check.held is False]
    missing = [check for check in checks if check.held is None]
    if failed:
        answer = Answer.REFUTED
    elif missing or not checks:
        answer = Answer.UNKNOWN
    else:
        answer = Answer.HELD
    return Finding(
        rule_id=rule.rule_id,
        run_id=case.run.run_id,
        answer=answer,
        arithmetic="; ".join(_printed(check) for check in checks) or "nothing to look at",
        detail=" ".join(check.otherwise for check in failed + missing),
    )


def missing(what: str, otherwise: str) -> Check:
    """A check whose evidence is not in the run directory."""
    return Check(arithmetic=what, held=None, otherwise=otherwise)


def _printed(check: Check) -> str:
    mark = {True: "", False: " [refuted]", None: " [unknown]"}[check.held]
    return check.arithmetic + mark
