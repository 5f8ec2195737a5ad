"""What a forensic rule is: named checks with printed arithmetic, and one of three answers.

A check compares numbers and says `True`, `False` or `None`, where `None` means that the evidence
to answer is missing. A rule is refuted as soon as one check fails by number; otherwise it is
unknown as soon as one cannot be answered; it is held only when every check is. A rule that found
nothing to look at is unknown, never held. A rule that this kind of run gives no subject says so and
is not applicable: that is neither held nor an objection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.message import Answer
from r8.model import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from r8.forensics.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison inside a rule."""

    arithmetic: str  # the numbers and the comparison, as printed
    held: bool | None  # None: the evidence is missing
    otherwise: str  # what it means when it did not hold, and where to look
    applies: bool = True  # False: the run has no such thing, by its own plan


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
    of_device: bool = False  # compares bytes or states of the KV's block device
    of_kv: bool = False  # asks about KV that was read: a recompute arm has none
    of_engine: bool = False  # asks a KV engine: a run of `Run.work` has none
    # What the rule asks of a run without a KV engine, where that is something else.
    work_checks: Callable[[Case], Sequence[Check]] | None = None


def apply(rule: Rule, case: Case) -> Finding:
    """The rule's answer for one run, with the arithmetic of all its checks."""
    checks = _checks(rule, case)
    failed = [check for check in checks if check.held is False]
    missing = [check for check in checks if check.held is None and check.applies]
    silent = [check for check in checks if not check.applies]
    if failed:
        answer = Answer.REFUTED
    elif missing or not checks:
        answer = Answer.UNKNOWN
    elif len(silent) == len(checks):
        answer = Answer.NOT_APPLICABLE
    else:
        answer = Answer.HELD
    return Finding(
        rule_id=rule.rule_id,
        run_id=case.run.run_id,
        answer=answer,
        arithmetic="; ".join(_printed(check) for check in checks) or "nothing to look at",
        detail=" ".join(check.otherwise for check in failed + missing + silent),
    )


def _checks(rule: Rule, case: Case) -> list[Check]:
    if rule.of_kv and case.run.recompute:
        return [not_applicable("a recompute arm reads no KV", "Rule C7 is about it.")]
    if case.run.work is not None:
        if rule.of_engine and rule.work_checks is None:
            job = case.run.work.job
            return [not_applicable(f"job {job} runs without a KV engine", "It has no such thing.")]
        return list((rule.work_checks or rule.checks)(case))
    return list(rule.checks(case))


def missing(what: str, otherwise: str) -> Check:
    """A check whose evidence is not in the run directory."""
    return Check(arithmetic=what, held=None, otherwise=otherwise)


def not_applicable(what: str, why: str) -> Check:
    """A check this kind of run gives nothing to check; decided by the plan, never by absence."""
    return Check(arithmetic=what, held=None, otherwise=why, applies=False)


def _printed(check: Check) -> str:
    if not check.applies:
        return f"{check.arithmetic} [does not apply]"
    mark = {True: "", False: " [refuted]", None: " [unknown]"}[check.held]
    return check.arithmetic + mark
