"""The certificate in a report: what every rule found in every run, and its arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.certificate import OF_BLOCK, PASSING
from r8.forensics.rules import RULES
from r8.message import Answer
from r8.report.explain import title
from r8.report.tables import PARAGRAPHS, answer_word, bullets, markdown, table
from r8.report.words import render_checks, render_meaning, say
from r8.text import Markdown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from r8.model import Finding, Run
    from r8.verdict.session import Session


def certificate(session: Session, language: str) -> Markdown:
    """Rules down and runs across, then what did not hold."""
    parts: list[object] = []
    for campaign_id in dict.fromkeys(run.campaign_id for run in session.runs):
        runs = [run for run in session.runs if run.campaign_id == campaign_id]
        parts += [
            say(language, "note-campaign", id=campaign_id),
            _rules_by_runs(session, runs, language),
        ]
    broken = [one for one in session.findings if one.answer not in PASSING]
    silent = [one for one in broken if one.rule_id in OF_BLOCK and one.answer is Answer.UNKNOWN]
    real = [one for one in broken if one not in silent]
    for entry, findings in (("note-broken", real), ("note-silent", silent)):
        if findings:
            parts += [say(language, entry), _lines(findings, language)]
    return PARAGRAPHS.join([*parts, say(language, "note-explain")])


def _rules_by_runs(session: Session, runs: Sequence[Run], language: str) -> Markdown:
    by_rule = {(f.rule_id, f.run_id): answer_word(f.answer, language) for f in session.findings}
    rows = [
        [
            rule.rule_id,
            title(rule, language),
            *(by_rule.get((rule.rule_id, run.run_id)) for run in runs),
        ]
        for rule in RULES
    ]
    names = [f"b{run.block} {run.arm} c{run.concurrency}" for run in runs]
    return markdown(rows, [say(language, "head-rule"), say(language, "head-says"), *names])


def _lines(findings: Iterable[Finding], language: str) -> Markdown:
    """One bullet a finding, with all its arithmetic."""
    texts = [
        say(
            language,
            "finding-line",
            rule=one.rule_id,
            answer=answer_word(one.answer, language),
            run=one.run_id,
            checks=render_checks(one.checks, language),
            meaning=render_meaning(one.checks, language),
        )
        for one in findings
    ]
    return bullets(texts)


def arithmetic(session: Session, language: str) -> Markdown:
    """Every rule of every run with the numbers it compared."""
    parts = []
    for run in session.runs:
        rows = [
            [one.rule_id, answer_word(one.answer, language), render_checks(one.checks, language)]
            for one in session.findings
            if one.run_id == run.run_id
        ]
        heads = ["head-rule", "head-answer", "head-arithmetic"]
        parts += [Markdown("### {}").format(run.run_id), table(rows, heads, language)]
    return PARAGRAPHS.join(parts)
