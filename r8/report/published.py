"""`reports/published/`: the figures of each report as tables, in R8's own layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.audit.finding import digits
from r8.claims.measured import Measure, measure_of
from r8.report.words import render, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Report, Reports

RELEASE = "public release 505f41e"
_HEADS = (
    *("page-arm", "page-level", "page-metric", "page-statistic", "page-value", "page-unit"),
    *("page-printed", "page-label", "page-basis", "page-figure", "page-measured", "page-where"),
)


def page(ledger: Ledger, reports: Reports, report_id: str, language: str) -> str:
    """One report as Markdown: what it is, its sources with digests, its figures by scenario."""
    report = reports.report(report_id)
    figures = ledger.of(report_id)
    lines = [f"# {report_id}: {report.about[language]}", "", *_facts(report, language), ""]
    lines += _sources(report, figures, language)
    for scenario in dict.fromkeys(one.scenario for one in figures):
        lines += ["", f"## {scenario}", ""]
        known = reports.scenarios.get(scenario)
        if known is not None:
            text = known.baseline[language] or say(language, "page-unpublished")
            lines += [say(language, "page-baseline", baseline=text), ""]
        mine = [one for one in figures if one.scenario == scenario]
        lines += _table(ledger, reports, mine, language)
    return "\n".join(lines) + "\n"


def other_page(ledger: Ledger, reports: Reports, language: str) -> str:
    """Figures that cite no report: gates, device rows, prices."""
    lines = [f"# {say(language, 'page-other')}"]
    figures = [one for one in ledger.figures.values() if not one.reports]
    for scenario in dict.fromkeys(one.scenario for one in figures):
        mine = [one for one in figures if one.scenario == scenario]
        lines += ["", f"## {scenario}", "", *_table(ledger, reports, mine, language)]
    return "\n".join(lines) + "\n"


def _facts(report: Report, language: str) -> list[str]:
    facts = {
        "page-date": report.date,
        "page-platform": report.platform,
        "page-topology": report.topology[language],
        "page-third-party": report.third_party[language],
        "page-reproduction": report.reproduction[language],
    }
    unpublished = say(language, "page-unpublished")
    return [f"- {say(language, entry)}: {text or unpublished}" for entry, text in facts.items()]


def _sources(report: Report, figures: Iterable[Figure], language: str) -> list[str]:
    lines = [
        f"- {say(language, 'page-source')}: <{one.url}> ({one.language}), `{one.file}`, "
        f"SHA-256 `{one.sha256}`"
        for one in report.pages
    ]
    if any(RELEASE in one.where for one in figures):
        lines.append(f"- {say(language, 'page-release')}")
    return lines


def _table(ledger: Ledger, reports: Reports, figures: Iterable[Figure], language: str) -> list[str]:
    heads = [say(language, one) for one in _HEADS]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for one in figures:
        measure = measure_of(ledger, reports, one)
        if isinstance(measure, Measure):
            by = f"{measure.scenario}: {measure.metric} {measure.statistic}".rstrip()
        else:
            by = render(measure, language)
        value = "" if one.value is None else digits(one.value, one.precision)
        cells = [one.arm, one.level, one.metric, one.statistic, value, one.unit, one.as_printed]
        cells += [one.page_label, str(one.basis), f"`{one.figure_id}`", by, one.where]
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return lines
