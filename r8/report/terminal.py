"""Tables for a terminal: verdicts, one run's certificate, metrics. The report has all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.console import table
from r8.model import Outcome
from r8.report.tables import METRIC_HEADS, answer_word, number, span
from r8.report.words import render_checks, render_meaning, render_reasons, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from r8.evidence.reader import Evidence
    from r8.model import Finding, Measurement, Verdict

# The terminal shows the first words of a reason; the report and --json have all of it.
REASON_CHARS = 160
_REASON_WIDTH = 70


def summary(evidences: Sequence[Evidence], verdicts: Sequence[Verdict]) -> str:
    """The verdicts: one row a claim, what was judged first."""
    unjudged = {Outcome.NOT_MEASURED, Outcome.NOT_COMPARABLE}
    rows = [
        [
            verdict.claim.claim_id,
            str(verdict.outcome),
            number(verdict.estimate),
            span(verdict),
            verdict.n_blocks,
            _short(render_reasons(verdict.reasons)),
        ]
        for verdict in sorted(verdicts, key=lambda one: one.outcome in unjudged)
    ]
    heads = ["head-claim", "head-outcome", "head-estimate", "head-interval", "head-blocks"]
    heads_said = [say("en", one) for one in [*heads, "head-reason"]]
    found = table(rows, heads_said, widths=[None, None, None, None, None, _REASON_WIDTH])
    basis = ", ".join(sorted({str(one.run.basis) for one in evidences}))
    return f"{found}\n\nbasis: {basis}; runs: {len(evidences)}"


def finding_table(findings: Iterable[Finding], language: str = "en") -> str:
    """One run's certificate, all arithmetic included."""
    rows = [
        [
            one.rule_id,
            answer_word(one.answer, language),
            render_checks(one.checks, language),
            render_meaning(one.checks, language),
        ]
        for one in findings
    ]
    heads = ["head-rule", "head-answer", "head-arithmetic", "head-meaning"]
    return table(rows, [say(language, one) for one in heads], widths=[None, None, 60, 40])


def measurement_table(measurements: Iterable[Measurement]) -> str:
    """Every metric, unrounded, with the reason of what is absent."""
    rows = [
        [one.run_id, one.phase, one.metric, one.statistic, one.value, one.unit, one.n, one.reason]
        for one in measurements
    ]
    headers = [say("en", one) for one in (*METRIC_HEADS, "head-reason")]
    return table(rows, headers)


def _short(text: str) -> str:
    if len(text) <= REASON_CHARS:
        return text
    return text[:REASON_CHARS].rsplit(" ", 1)[0] + " ..."
