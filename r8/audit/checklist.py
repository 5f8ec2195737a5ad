"""The five checks buyers are told to make, answered for one report from the ledger alone.

Baseline, platform and topology, run-to-run deviation, third-party report, reproduction material.
Each counts what a buyer needs and what of it is on the pages: all of it is `stated`, some of it
`partly`, none of it `not published`. It says what is on the pages, not what exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from r8.audit.relations import repeats
from r8.message import Answer, Check, Message

if TYPE_CHECKING:
    from r8.audit.finding import AuditFinding
    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Report, Reports
    from r8.message import Facts

DEVIATION_METRIC = "run_to_run_deviation"
_COMPARED = ("_change", "_ratio", "_reduction", "speedup")
RAW_ROWS = "published"


class Status(StrEnum):
    """How a check is answered."""

    STATED = "stated"
    PARTLY = "partly"
    NOT_PUBLISHED = "not published"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistItem:
    """One of the five checks, what was counted, and the lines behind the answer."""

    check: Check
    lines: tuple[Message | AuditFinding, ...]

    @property
    def status(self) -> Status:
        """Whether all, some or none of what a buyer needs is on the pages."""
        if self.check.answer is Answer.HELD:
            return Status.STATED
        return Status.PARTLY if self.check.measured else Status.NOT_PUBLISHED


def checklist(ledger: Ledger, reports: Reports, report_id: str) -> list[ChecklistItem]:
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


def _item(
    name: str, counted: str, parts: list[bool], lines: list[Message | AuditFinding]
) -> ChecklistItem:
    """An item that needs every part; one without any part needs at least one."""
    return ChecklistItem(
        check=Check(
            quantity=counted,
            measured=sum(parts),
            op=">=",
            limit=max(len(parts), 1),
            message=name,
        ),
        lines=tuple(lines),
    )


def _quote(entry: str, quote: str) -> Message:
    """A line that repeats what a field of `Reports` says: `R2.topology`, in every language."""
    return Message(id=entry, facts={"quote": quote})


def _baseline(ledger: Ledger, reports: Reports, figures: list[Figure]) -> ChecklistItem:
    """Every comparison names what it compares with, and prints that reading."""
    lines: list[Message | AuditFinding] = []
    parts: list[bool] = []
    compared = [one for one in figures if one.metric.endswith(_COMPARED)]
    for scenario in dict.fromkeys(one.scenario for one in compared):
        known = reports.scenarios.get(scenario)
        named = known is not None and any(known.baseline.values())
        facts: Facts = {"scenario": scenario, "quote": f"{scenario}.baseline"}
        lines.append(Message(id="baseline-named" if named else "baseline-unnamed", facts=facts))
        for one in (one for one in compared if one.scenario == scenario):
            readable = one.formula is not None and all(
                ledger.figures[name].value is not None for name in ledger.inputs(one.formula)
            )
            if not readable:
                facts = {"figure": one.figure_id, "printed": one.as_printed}
                lines.append(Message(id="baseline-no-reading", facts=facts))
            parts.append(readable and named)
    if not compared:
        lines.append(Message(id="baseline-no-comparison"))
    return _item("checklist-baseline", "comparisons with a named, printed baseline", parts, lines)


def _platform(report: Report) -> ChecklistItem:
    lines: list[Message | AuditFinding] = []
    if report.platform:
        lines.append(Message(id="platform-stated", facts={"platform": report.platform}))
    if report.topology["en"]:
        lines.append(_quote("topology-stated", f"{report.report_id}.topology"))
    parts = [bool(report.platform), bool(report.topology["en"])]
    return _item("checklist-platform", "platform, topology", parts, lines)


def _deviation(ledger: Ledger, report_id: str, figures: list[Figure]) -> ChecklistItem:
    """A stated deviation is supported when every printed pair keeps it."""
    name, counted = "checklist-deviation", "a stated deviation, pairs that keep it"
    stated = [one for one in figures if one.metric == DEVIATION_METRIC]
    if not stated:
        elsewhere: list[Message | AuditFinding] = [
            Message(
                id="deviation-elsewhere",
                facts={"printed": one.as_printed, "reports": ", ".join(one.reports)},
            )
            for one in ledger.figures.values()
            if one.metric == DEVIATION_METRIC and report_id not in one.reports
        ]
        return _item(name, counted, [], elsewhere)
    ids = {one.figure_id for one in stated}
    pairs = [one for one in repeats(ledger) if ids & set(one.figures)]
    lines: list[Message | AuditFinding] = [
        Message(id="deviation-stated", facts={"printed": one.as_printed, "where": one.where})
        for one in stated
    ]
    if pairs:
        answers = [one.answer for one in pairs]
        facts = {
            "total": len(pairs),
            "follows": answers.count(Answer.HELD),
            "off": answers.count(Answer.REFUTED),
            "undetermined": answers.count(Answer.UNKNOWN),
        }
        lines.append(Message(id="deviation-pairs", facts=facts))
    else:
        lines.append(Message(id="deviation-no-pairs"))
    kept = [one.answer is Answer.HELD for one in pairs]
    lines += [one for one in pairs if one.answer is not Answer.HELD]
    return _item(name, counted, [True, *(kept or [False])], lines)


def _third_party(report: Report) -> ChecklistItem:
    name, counted = "checklist-third-party", "a third-party report, its tester"
    if not any(report.third_party.values()):
        return _item(name, counted, [], [])
    tester = Message(id="tester-unnamed")
    if report.organisation:
        tester = Message(id="tester-named", facts={"organisation": report.organisation})
    lines: list[Message | AuditFinding] = [
        _quote("third-party-stated", f"{report.report_id}.third_party"),
        tester,
    ]
    return _item(name, counted, [True, bool(report.organisation)], lines)


def _material(report: Report) -> ChecklistItem:
    name, counted = "checklist-material", "material to repeat it with, its raw rows"
    if not any(report.reproduction.values()):
        return _item(name, counted, [], [])
    raw = report.raw_data == RAW_ROWS
    lines: list[Message | AuditFinding] = [
        _quote("reproduction-stated", f"{report.report_id}.reproduction"),
        Message(id="raw-published" if raw else "raw-unpublished"),
    ]
    return _item(name, counted, [True, raw], lines)
