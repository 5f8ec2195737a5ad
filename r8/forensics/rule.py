"""What a forensic rule is: what it asks of one run, by checks that are data.

A rule declares itself in its own module; `r8.forensics.rules` only lists it. Everything people read
about it is the entry `rule-<id>` of the catalogues: its title, and in `.why`, `.reads` and
`.threshold` which wrong conclusion it prevents, its inputs, and its constants with their reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from r8.message import Check, Facts, not_applicable
from r8.model import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from r8.forensics.case import Case

    Checks = Callable[[Case], Sequence[Check]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One line of the certificate."""

    rule_id: str  # never reused for another meaning
    checks: Checks
    thresholds: Facts = field(default_factory=dict)  # its constants, as `.threshold` names them
    of_block: bool = False  # one run that holds it speaks for every run of its block
    of_device: bool = False  # compares bytes or states of the KV's block device
    of_kv: bool = False  # asks about KV that was read: a recompute arm has none
    of_engine: bool = False  # asks a KV engine: a run of a job has none
    # What the rule asks of a run without a KV engine, where that is something else.
    transfer_checks: Checks | None = None

    @property
    def entry(self) -> str:
        """Its entry in the catalogues."""
        return f"rule-{self.rule_id.lower()}"


def apply(rule: Rule, case: Case) -> Finding:
    """The rule's finding for one run: all its checks, and the answer that follows from them."""
    return Finding(rule_id=rule.rule_id, run_id=case.run.run_id, checks=tuple(_checks(rule, case)))


def _checks(rule: Rule, case: Case) -> Sequence[Check]:
    if rule.of_kv and case.run.recompute:
        return [not_applicable("kv", "recompute-reads-no-kv")]
    if case.transfer is None:
        return rule.checks(case)
    if rule.of_engine and rule.transfer_checks is None:
        return [not_applicable("kv_engine", "no-kv-engine", job=case.transfer.job)]
    return (rule.transfer_checks or rule.checks)(case)
