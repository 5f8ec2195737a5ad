"""The certificate of a run: every rule applied, and which of them a claim may not rest on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from r8.evidence.database import add_rule_views, connect, probes_of
from r8.forensics import network
from r8.forensics.case import Case
from r8.forensics.rule import apply
from r8.forensics.rules import RULES
from r8.message import Answer, missing
from r8.model import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import duckdb

    from r8.evidence.reader import Evidence
    from r8.forensics.rule import Rule
    from r8.model import Run

NO_DEVICE = "no-block-device"
OF_BLOCK = frozenset(rule.rule_id for rule in RULES if rule.of_block)
# Answers that do not speak against a claim that needs the rule.
PASSING = frozenset({Answer.HELD, Answer.NOT_APPLICABLE})


def connect_settled(
    evidences: Iterable[Evidence], *, allowed: Sequence[Path] = ()
) -> duckdb.DuckDBPyConnection:
    """The tables and views of these runs that rules ask; the caller closes it.

    Statements may also read and write the directories `allowed`.

    Raises:
        MetricError: no runs.

    """
    connection = connect(evidences, allowed=allowed)
    add_rule_views(connection)
    return connection


def certify(run: Run, connection: duckdb.DuckDBPyConnection) -> tuple[Finding, ...]:
    """One finding a rule, in the order of `RULES`, from the tables behind the connection."""
    # A plain directory or a file system in user space has no block device; an empty name would be
    # printed as nothing.
    named = run if run.kv_device else replace(run, kv_device=NO_DEVICE)
    case = Case(run=named, connection=connection)
    with probes_of(run.run_id, connection):
        return tuple(_with_reason(rule, apply(rule, case), case, run) for rule in RULES)


def _with_reason(rule: Rule, finding: Finding, case: Case, run: Run) -> Finding:
    """Why a rule about a block device cannot be known at a fallback level that has none."""
    if run.kv_device or not rule.of_device or finding.answer is not Answer.UNKNOWN:
        return finding
    why = missing("kv_device", "no-block-device", fallback_level=run.fallback_level)
    return replace(finding, checks=(why, *network.mounted(case, rule.rule_id), *finding.checks))


def objections(
    runs: Sequence[Run], findings: Iterable[Finding], neighbours: Sequence[Run]
) -> list[Finding]:
    """Findings that forbid judging these runs: a claim needs every rule that applies to its runs.

    A rule must hold in every run it applies to. A rule of the block (a negative control) must hold
    in one run of the block, `neighbours` included, and be refuted in none. A rule that nobody
    applied to a run is unknown, which objects as well.
    """
    by_rule = {(finding.rule_id, finding.run_id): finding for finding in findings}
    found: list[Finding] = []
    for rule in RULES:
        if rule.of_block:
            found += _block_objections(rule.rule_id, runs, by_rule, neighbours)
            continue
        answers = [_finding(rule.rule_id, run, by_rule) for run in runs]
        found += [finding for finding in answers if finding.answer not in PASSING]
    return found


def _block_objections(
    rule_id: str,
    runs: Sequence[Run],
    by_rule: dict[tuple[str, str], Finding],
    neighbours: Sequence[Run],
) -> list[Finding]:
    found: list[Finding] = []
    for block in sorted({(run.campaign_id, run.block) for run in runs}):
        members = [run for run in neighbours if (run.campaign_id, run.block) == block]
        answers = [_finding(rule_id, run, by_rule) for run in members]
        refuted = [finding for finding in answers if finding.answer is Answer.REFUTED]
        held = any(finding.answer is Answer.HELD for finding in answers)
        silent = all(finding.answer is Answer.NOT_APPLICABLE for finding in answers)
        found += refuted or ([] if held or silent else answers)
    return found


def _finding(rule_id: str, run: Run, by_rule: dict[tuple[str, str], Finding]) -> Finding:
    known = by_rule.get((rule_id, run.run_id))
    if known is not None:
        return known
    never = missing(rule_id, "rule-not-applied", rule=rule_id)
    return Finding(rule_id=rule_id, run_id=run.run_id, checks=(never,))
