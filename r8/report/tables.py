"""Tables of a report: rows made of session values, drawn by tabulate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabulate import tabulate

from r8.forensics.rules import RULES
from r8.message import Answer, Message
from r8.model import Outcome
from r8.report.chinese import translated
from r8.report.explain import title
from r8.report.words import render, render_checks, render_meaning
from r8.units import gb_per_s, mb_per_s, s_from_ns
from r8.verdict.intervals import log_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from r8.evidence.reader import Evidence
    from r8.model import Finding, Measurement, Run, Verdict
    from r8.verdict.session import Session

NOTHING = "-"
MARKS = {
    Answer.HELD: "held",
    Answer.REFUTED: "REFUTED",
    Answer.UNKNOWN: "unknown",
    Answer.NOT_APPLICABLE: "n/a",
}
# The terminal shows the first words of a reason; the report and --json have all of it.
TERMINAL_REASON_CHARS = 160
# Metrics the tables below show, repeated unrounded at the end of a report.
SHOWN_METRICS = (
    ("measure", "ttft", "p50"),
    ("measure", "ttft", "p90"),
    ("measure", "ttft", "max"),
    ("warm", "ttft", "p50"),
    ("measure", "predicted_ttft", "p50"),
    ("measure", "predicted_ttft", "max"),
    ("measure", "first_step_requests", ""),
    ("measure", "output_throughput", ""),
    ("measure", "n_failed", ""),
    ("measure", "engine_hit_bytes", ""),
    ("measure", "device_read_bytes", ""),
    ("measure", "process_read_bytes", ""),
    ("measure", "patch_read_bytes", ""),
    ("measure", "device_read_bandwidth", "mean"),
    ("measure", "device_read_bandwidth", "busy"),
    ("measure", "device_read_bandwidth", "peak_1s"),
    ("measure", "ceiling_fraction", "busy"),
    ("calibration", "ceiling_bandwidth", ""),
    ("calibration", "serial_bandwidth", ""),
)


# Of a run without a KV engine.
WORK_METRICS = (
    ("measure", "work_wall", ""),
    ("measure", "work_time", "mean"),
    ("measure", "work_time", "max"),
    ("measure", "work_bytes", ""),
    ("measure", "work_bandwidth", ""),
    ("measure", "device_read_bytes", ""),
    ("measure", "process_read_bytes", ""),
    ("measure", "device_read_bandwidth", "mean"),
    ("measure", "device_read_bandwidth", "busy"),
    ("calibration", "ceiling_bandwidth", ""),
)


# Where engines are the loaders, as well.
ENGINE_METRICS = (
    ("measure", "engine_wait", "mean"),
    ("measure", "engine_start", "mean"),
    ("measure", "engine_said_load", "mean"),
)


def metrics_of(run: Run) -> tuple[tuple[str, str, str], ...]:
    """What the tables show of one run: phase, metric, statistic."""
    if run.work is None:
        return SHOWN_METRICS
    return WORK_METRICS + (ENGINE_METRICS if run.work.tool == "engine" else ())


def markdown(rows: Iterable[Sequence[object]], headers: Sequence[str]) -> str:
    """A GitHub table; absent cells are a dash, bars inside cells are escaped."""
    cells = [[_cell(value) for value in row] for row in rows]
    return tabulate(cells, headers=list(headers), tablefmt="github", disable_numparse=True)


def _cell(value: object) -> str:
    text = NOTHING if value is None or value == "" else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


def summary(evidences: Sequence[Evidence], verdicts: Sequence[Verdict]) -> str:
    """The verdicts for a terminal: one row a claim, what was judged first."""
    judged = {Outcome.NOT_MEASURED, Outcome.NOT_COMPARABLE}
    ordered = sorted(verdicts, key=lambda verdict: verdict.outcome in judged)
    rows = [
        [
            verdict.claim.claim_id,
            str(verdict.outcome),
            number(verdict.estimate),
            span(verdict),
            verdict.n_blocks,
            _short(verdict.reason),
        ]
        for verdict in ordered
    ]
    headers = ["claim", "outcome", "estimate", "interval", "blocks", "reason"]
    table = tabulate(
        rows,
        headers=headers,
        tablefmt="simple",
        disable_numparse=True,
        maxcolwidths=[None, None, None, None, None, 70],
    )
    basis = ", ".join(sorted({str(one.run.basis) for one in evidences}))
    return f"{table}\n\nbasis: {basis}; runs: {len(evidences)}"


def finding_table(findings: Iterable[Finding]) -> str:
    """One run's certificate for a terminal, all arithmetic included."""
    rows = [
        [
            one.rule_id,
            MARKS[one.answer],
            render_checks(one.checks),
            render_meaning(one.checks),
        ]
        for one in findings
    ]
    headers = ["rule", "answer", "arithmetic", "what it means"]
    widths = [None, None, 60, 40]
    return tabulate(rows, headers=headers, maxcolwidths=widths, disable_numparse=True)


def measurement_table(measurements: Iterable[Measurement]) -> str:
    """Every metric for a terminal, unrounded, with the reason of what is absent."""
    rows = [
        [one.run_id, one.phase, one.metric, one.statistic, one.value, one.unit, one.n, one.reason]
        for one in measurements
    ]
    headers = ["run", "phase", "metric", "statistic", "value", "unit", "n", "reason"]
    return tabulate(rows, headers=headers, disable_numparse=True)


def _short(text: str) -> str:
    if len(text) <= TERMINAL_REASON_CHARS:
        return text
    return text[:TERMINAL_REASON_CHARS].rsplit(" ", 1)[0] + " ..."


def number(value: float | None) -> str:
    """Four significant digits, a dash when absent."""
    return NOTHING if value is None else f"{value:.4g}"


def span(verdict: Verdict) -> str:
    """A verdict's interval as it was used: a bound for one-sided kinds."""
    if verdict.low is None or verdict.high is None or verdict.confidence is None:
        return NOTHING
    level = f"({verdict.confidence:.3g})"
    if verdict.claim.kind in {"at-least", "prediction"}:
        return f">= {number(verdict.low)} {level}"
    return f"{number(verdict.low)} to {number(verdict.high)} {level}"


def verdict_table(verdicts: Iterable[Verdict]) -> str:
    """Every verdict with its claim, interval and reason."""
    rows = [
        [
            verdict.claim.claim_id,
            verdict.claim.source,
            verdict.claim.as_printed,
            f"**{verdict.outcome}**",
            number(verdict.estimate),
            span(verdict),
            verdict.n_blocks,
            verdict.basis,
            verdict.reason,
        ]
        for verdict in verdicts
    ]
    headers = ["claim", "source", "as printed", "outcome", "estimate", "interval"]
    return markdown(rows, [*headers, "blocks", "basis", "why"])


def arms_table(session: Session) -> str:
    """One row a run, in the order it was run: what its requests and its device did.

    Work runs have no requests; `r8.report.transfer` has a table of theirs.
    """
    rows = []
    for run in session.runs:
        if run.work is not None:
            continue
        answers = [f.answer for f in session.findings if f.run_id == run.run_id]
        held, silent = answers.count(Answer.HELD), answers.count(Answer.NOT_APPLICABLE)
        rows.append(
            [
                run.block,
                run.order,
                run.arm,
                f"c{run.concurrency}",
                shown(session, run, "ttft", "p50", s_from_ns),
                shown(session, run, "ttft", "max", s_from_ns),
                shown(session, run, "ttft", "p50", s_from_ns, phase="warm"),
                shown(session, run, "output_throughput", "", float),
                shown(session, run, "device_read_bytes", "", gb_per_s),
                shown(session, run, "device_read_bandwidth", "busy", mb_per_s),
                shown(session, run, "ceiling_fraction", "busy", float),
                f"{held} of {len(RULES) - silent}",
            ]
        )
    headers = ["block", "place", "arm", "level", "TTFT p50 s", "TTFT max s", "warm TTFT p50 s"]
    headers += ["output tokens/s", "device read GB", "busy MB/s", "of ceiling", "rules held"]
    return markdown(rows, headers) if rows else ""


def shown(
    session: Session,
    run: Run,
    metric: str,
    statistic: str,
    convert: Callable[[float], float],
    *,
    phase: str = "measure",
) -> str:
    """One value of a run in the unit a reader expects; NOTHING where it cannot be had."""
    value = session.value(run, metric, statistic, phase=phase).value
    return NOTHING if value is None else number(convert(value))


def over_blocks(values: Sequence[float]) -> str:
    """Geometric mean of the blocks with its 90 % interval; the value itself where one is all."""
    interval = log_interval(values)
    if interval is None:
        return number(values[0]) if len(values) == 1 else NOTHING
    return f"{number(interval.estimate)} [{number(interval.low)}, {number(interval.high)}]"


def certificate_table(session: Session, runs: Sequence[Run], language: str = "en") -> str:
    """Rules down, runs across."""
    by_rule = {(f.rule_id, f.run_id): MARKS[f.answer] for f in session.findings}
    rows = [
        [
            rule.rule_id,
            title(rule, language),
            *(by_rule.get((rule.rule_id, run.run_id)) for run in runs),
        ]
        for rule in RULES
    ]
    names = [f"b{run.block} {run.arm} c{run.concurrency}" for run in runs]
    return markdown(rows, ["rule", "what it says", *names])


def finding_lines(findings: Iterable[Finding], language: str = "en") -> list[str]:
    """One bullet a finding, with all its arithmetic."""
    return [f"* {_finding_line(one, language)}" for one in findings]


def _finding_line(finding: Finding, language: str) -> str:
    answer = MARKS[finding.answer]
    facts = {
        "rule": finding.rule_id,
        "answer": translated(answer, language) or answer,
        "run": finding.run_id,
        "checks": render_checks(finding.checks, language),
        "meaning": render_meaning(finding.checks, language),
    }
    return render(Message(id="finding-line", facts=facts), language)
