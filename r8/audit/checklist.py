"""The five checks buyers are told to make, answered for one report from the ledger alone.

Baseline, platform and topology, run-to-run deviation, third-party report, reproduction material.
An answer is `stated`, `partly` (some of it, or stated and not supported by the printed numbers), or
`not published`. It says what is on the pages, not what exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from r8.audit.finding import AuditAnswer
from r8.audit.rules import audit
from r8.claims.words import LANGUAGES, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Report, Reports

CHECKS = ("baseline", "platform", "deviation", "third_party", "material")
DEVIATION_METRIC = "run_to_run_deviation"
_COMPARED = ("_change", "_ratio", "_reduction", "speedup")
MEASURED_READINGS = "published"


class Status(StrEnum):
    """How a check is answered."""

    STATED = "stated"
    PARTLY = "partly"
    NOT_PUBLISHED = "not published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One line behind an answer: a sentence of the catalogue and what it names."""

    key: str
    facts: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)  # language -> {text} of the sentence

    def text(self, language: str) -> str:
        """The line in one language."""
        return say(language, self.key, **self.facts, text=self.texts.get(language, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One of the five checks and its answer."""

    name: str
    status: Status
    evidence: tuple[Evidence, ...]


def checklist(ledger: Ledger, reports: Reports, report_id: str) -> list[Check]:
    """The five answers for one report.

    Raises:
        UsageError: no such report.

    """
    report = reports.report(report_id)
    figures = ledger.of(report_id)
    return [
        _baseline(ledger, reports, figures),
        _platform(report),
        _deviation(ledger, report_id, figures),
        _third_party(report),
        _material(report),
    ]


def as_markdown(checks: list[Check], report_id: str, language: str) -> str:
    """The answers as a list."""
    lines = [f"# {say(language, 'check.title', report=report_id)}", ""]
    for check in checks:
        status = say(language, f"status.{check.status.replace(' ', '_')}")
        lines.append(f"- **{say(language, f'check.{check.name}')}**: {status}")
        lines += [f"  - {one.text(language)}" for one in check.evidence]
    return "\n".join(lines) + "\n"


def _baseline(ledger: Ledger, reports: Reports, figures: list[Figure]) -> Check:
    """Every comparison names what it compares with, and prints that reading."""
    evidence: list[Evidence] = []
    good = bad = 0
    compared = [one for one in figures if one.metric.endswith(_COMPARED)]
    for scenario in dict.fromkeys(one.scenario for one in compared):
        named = reports.baselines.get(scenario, {})
        if any(named.values()):
            evidence.append(Evidence(key="check.named", facts={"scenario": scenario}, texts=named))
        else:
            evidence.append(Evidence(key="check.unnamed", facts={"scenario": scenario}))
        for one in (one for one in compared if one.scenario == scenario):
            readable = one.formula is not None and all(
                ledger.figures[name].value is not None for name in ledger.inputs(one.formula)
            )
            if not readable:
                facts = {"figure": one.figure_id, "printed": one.as_printed}
                evidence.append(Evidence(key="check.no_reading", facts=facts))
            if readable and any(named.values()):
                good += 1
            else:
                bad += 1
    if not compared:
        evidence.append(Evidence(key="check.no_comparison"))
    status = Status.PARTLY if good and bad else Status.STATED if good else Status.NOT_PUBLISHED
    return Check(name="baseline", status=status, evidence=tuple(evidence))


def _platform(report: Report) -> Check:
    parts = [dict.fromkeys(LANGUAGES, report.platform), report.topology]
    evidence = tuple(Evidence(key="check.is", texts=texts) for texts in parts if texts["en"])
    status = (Status.NOT_PUBLISHED, Status.PARTLY, Status.STATED)[len(evidence)]
    return Check(name="platform", status=status, evidence=evidence)


def _deviation(ledger: Ledger, report_id: str, figures: list[Figure]) -> Check:
    """A stated deviation is supported when every printed pair keeps it."""
    stated = [one for one in figures if one.metric == DEVIATION_METRIC]
    if not stated:
        elsewhere = [
            one
            for one in ledger.figures.values()
            if one.metric == DEVIATION_METRIC and report_id not in one.reports
        ]
        others = tuple(
            Evidence(
                key="check.elsewhere",
                facts={"printed": one.as_printed, "reports": ", ".join(one.reports)},
            )
            for one in elsewhere
        )
        return Check(name="deviation", status=Status.NOT_PUBLISHED, evidence=others)
    ids = {one.figure_id for one in stated}
    pairs = [one for one in audit(ledger) if one.rule_id == "A9" and ids & set(one.figures)]
    evidence = [
        Evidence(
            key="check.deviation_stated", facts={"printed": one.as_printed, "where": one.where}
        )
        for one in stated
    ]
    counts = {str(answer).lower(): 0 for answer in AuditAnswer}
    for pair in pairs:
        counts[str(pair.answer).lower()] += 1
    facts = {name: str(count) for name, count in counts.items()} | {"total": str(len(pairs))}
    evidence.append(Evidence(key="check.pairs" if pairs else "check.no_pairs", facts=facts))
    evidence += [
        Evidence(key="check.is", texts={"en": pair.text("en"), "zh": pair.text("zh")})
        for pair in pairs
        if pair.answer is not AuditAnswer.FOLLOWS
    ]
    supported = bool(pairs) and all(pair.answer is AuditAnswer.FOLLOWS for pair in pairs)
    status = Status.STATED if supported else Status.PARTLY
    return Check(name="deviation", status=status, evidence=tuple(evidence))


def _third_party(report: Report) -> Check:
    if not any(report.third_party.values()):
        return Check(name="third_party", status=Status.NOT_PUBLISHED, evidence=())
    evidence = [Evidence(key="check.is", texts=report.third_party)]
    named = bool(report.organisation)
    texts = dict.fromkeys(("en", "zh"), report.organisation)
    evidence.append(Evidence(key="check.tester" if named else "check.no_tester", texts=texts))
    status = Status.STATED if named else Status.PARTLY
    return Check(name="third_party", status=status, evidence=tuple(evidence))


def _material(report: Report) -> Check:
    if not any(report.reproduction.values()):
        return Check(name="material", status=Status.NOT_PUBLISHED, evidence=())
    raw = report.raw_data == MEASURED_READINGS
    evidence = (
        Evidence(key="check.is", texts=report.reproduction),
        Evidence(key="check.raw" if raw else "check.no_raw"),
    )
    status = Status.STATED if raw else Status.PARTLY
    return Check(name="material", status=status, evidence=evidence)
