"""A report of run directories as Markdown: the same runs give the same text, byte for byte."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from r8.forensics.certificate import OF_BLOCK, PASSING
from r8.message import Answer
from r8.model import Basis, Outcome
from r8.report.checkpoint import checkpoint_section
from r8.report.rows import calibration_table, identity_table, raw_metric_table
from r8.report.scaling import scaling_section
from r8.report.tables import (
    arms_table,
    certificate_table,
    finding_lines,
    markdown,
    metrics_of,
    number,
    shown,
    verdict_table,
)
from r8.report.transfer import load_section, switch_section
from r8.report.words import render_reason
from r8.units import s_from_ns
from r8.verdict.intervals import log_interval
from r8.verdict.judge import headline, judge_session
from r8.verdict.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from r8.evidence.reader import Evidence
    from r8.model import Claim, Run, Verdict
    from r8.verdict.session import Session

# The arm every other one is divided by: the report asks what the patch is worth.
COMPARED_ARM = "patched"
FIRST_STEP = ("first_step_requests", "")
UNJUDGED = (Outcome.NOT_COMPARABLE, Outcome.NOT_MEASURED)


def report(
    evidences: Sequence[Evidence],
    claims: Iterable[Claim],
    *,
    references: Sequence[Evidence] = (),
) -> str:
    """The whole report; no clock, no host name, no path of the machine it was made on.

    Raises:
        UsageError: as `r8.verdict.judge.judge`.
        MetricError: no runs.

    """
    session = open_session(evidences)
    reference = open_session(references) if references else None
    return report_text(session, judge_session(session, claims, reference))


def report_text(session: Session, verdicts: Sequence[Verdict], language: str = "en") -> str:
    """The same, over a session that is open and verdicts that are passed."""
    verdicts, elsewhere = asked(session, verdicts)
    sections = [
        _head(session, verdicts),
        "## Verdicts\n\n" + verdict_table(verdicts),
        _arms(session),
        _ratios(session),
        scaling_section(session),
        checkpoint_section(session),
        load_section(session),
        switch_section(session),
        _outputs(session),
        _certificate(session, language),
        "## Calibration\n\n" + calibration_table(session),
        _environment(session.runs),
        _not_measured(session, verdicts, elsewhere),
        "## Rows behind the tables\n\nUnrounded, as `data/queries/metrics.sql` gives them; "
        "`r8 metrics RUN` prints all.\n\n" + raw_metric_table(session),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def asked(
    session: Session, verdicts: Sequence[Verdict]
) -> tuple[tuple[Verdict, ...], tuple[Verdict, ...]]:
    """Verdicts on claims of these runs' scenarios, judged ones first; and all others.

    A claim of another scenario that these runs could speak to all the same stays with the first.
    """
    scenarios = {run.scenario for run in session.runs}
    elsewhere = tuple(
        one
        for one in verdicts
        if one.claim.scenario not in scenarios and one.outcome is Outcome.NOT_MEASURED
    )
    here = [one for one in verdicts if one not in elsewhere]
    return tuple(sorted(here, key=lambda one: one.outcome in UNJUDGED)), elsewhere


def _head(session: Session, verdicts: Sequence[Verdict]) -> str:
    runs = session.runs
    scenarios = ", ".join(sorted({run.scenario for run in runs}))
    campaigns = sorted({run.campaign_id for run in runs})
    blocks = {(run.campaign_id, run.block) for run in runs}
    lines = [
        f"# R8 report: {scenarios}",
        "",
        f"{headline(verdicts)}. {len(runs)} runs, {len(blocks)} blocks of {', '.join(campaigns)}.",
    ]
    if any(run.basis is Basis.MODELLED for run in runs):
        rungs = ", ".join(sorted({run.rung for run in runs}))
        warning = (
            f"**Basis: modelled.** The storage device is shaped (step `{rungs}` of the rehearsal): "
            "every number below belongs to the model, none to the published hardware. The shape "
            "is derived from the published bandwidths, so no published claim is comparable here."
        )
        lines += ["", warning]
    return "\n".join(lines)


def _arms(session: Session) -> str:
    table = arms_table(session)
    note = _balance_note(session.runs)
    # Runs without requests stand in a table of their own, further down.
    return f"## Arms, block by block\n\n{note}{table}".rstrip()


def _balance_note(runs: Sequence[Run]) -> str:
    if all(run.balanced for run in runs):
        return "Arms in Williams order, balanced.\n\n"
    return "Arms in Williams order, **not balanced**: the blocks do not fill whole rows.\n\n"


def _ratios(session: Session) -> str:
    """Every other arm's TTFT p50 over the compared arm's, beside the prediction."""
    rows: list[list[object]] = []
    for other, level in sorted({(run.arm, run.concurrency) for run in session.runs}):
        pairs = _pairs(session, other, level) if other != COMPARED_ARM else []
        rows += [row for row, _, _ in pairs]
        measured = [ratio for _, ratio, _ in pairs if ratio is not None]
        predicted = [ratio for _, _, ratio in pairs if ratio is not None]
        if len(measured) > 1:
            rows.append(_pooled(other, level, measured, predicted))
    if not rows:
        return ""
    headers = ["ratio", "level", "block", "TTFT p50 s", f"{COMPARED_ARM} s", "first step"]
    headers += ["ratio measured", "ratio predicted", "measured / predicted"]
    return (
        f"## TTFT p50 over that of `{COMPARED_ARM}`, against the prediction\n\n"
        "Prediction: warm TTFT p50 of the same run plus the bytes loaded until the median request "
        "could be answered, over the bandwidth fio measured (serial for `unpatched`, ceiling for "
        "the others). First step: requests the engine took before any KV was loaded; it answers "
        "them before the others.\n\n" + markdown(rows, headers)
    )


Pair = tuple[list[object], float | None, float | None]


def _pairs(session: Session, other: str, level: int) -> list[Pair]:
    found: list[Pair] = []
    cells = {(r.campaign_id, r.block, r.arm): r for r in session.runs if r.concurrency == level}
    for (campaign_id, block, arm), run in cells.items():
        base = cells.get((campaign_id, block, COMPARED_ARM))
        if arm != other or base is None:
            continue
        above = session.value(run, "ttft", "p50").value
        below = session.value(base, "ttft", "p50").value
        measured = _ratio(above, below)
        predicted = _ratio(
            session.value(run, "predicted_ttft", "p50").value,
            session.value(base, "predicted_ttft", "p50").value,
        )
        row: list[object] = [f"{other} / {COMPARED_ARM}", f"c{level}", block]
        row += [None if one is None else number(s_from_ns(one)) for one in (above, below)]
        row += [" / ".join(shown(session, one, *FIRST_STEP, float) for one in (run, base))]
        row += [number(measured), number(predicted), number(_ratio(measured, predicted))]
        found.append((row, measured, predicted))
    return found


def _ratio(above: float | None, below: float | None) -> float | None:
    if above is None or below is None or not below or not math.isfinite(above / below):
        return None
    return above / below


def _pooled(other: str, level: int, measured: list[float], predicted: list[float]) -> list[object]:
    """The 90 % interval over blocks: each end is a one-sided 95 % bound."""
    cells: list[object] = [f"**{other} / {COMPARED_ARM}**", f"c{level}", f"{len(measured)} blocks"]
    cells += ["", "", "", _interval(measured)]
    if len(predicted) != len(measured):
        return [*cells, "", ""]
    quotients = [a / b for a, b in zip(measured, predicted, strict=True)]
    return [*cells, _interval(predicted), _interval(quotients)]


def _interval(values: list[float]) -> str:
    interval = log_interval(values)
    if interval is None:
        return ""
    return f"{number(interval.estimate)} [{number(interval.low)}, {number(interval.high)}]"


def _outputs(session: Session) -> str:
    table = identity_table(session)
    if not table:
        return ""
    return (
        "## Are the tokens the same?\n\n"
        "`populate` recomputes the prompts that `measure` reads back: measure against populate "
        "says whether restored KV is right, measure against measure whether an arm changes a "
        "token, populate against populate what recomputing alone repeats.\n\n" + table
    )


def _certificate(session: Session, language: str) -> str:
    parts = ["## Certificate", ""]
    for campaign_id in dict.fromkeys(run.campaign_id for run in session.runs):
        runs = [run for run in session.runs if run.campaign_id == campaign_id]
        parts += [f"Campaign `{campaign_id}`:", "", certificate_table(session, runs, language), ""]
    broken = [f for f in session.findings if f.answer not in PASSING]
    silent = [f for f in broken if f.rule_id in OF_BLOCK and f.answer is Answer.UNKNOWN]
    real = [f for f in broken if f not in silent]
    if real:
        parts += ["What did not hold, with its arithmetic:", "", *finding_lines(real, language), ""]
    if silent:
        parts += [
            "Controls a run does not hold itself; another run of its block must:",
            "",
            *finding_lines(silent, language),
            "",
        ]
    parts.append(
        "`r8 explain RULE` tells what a rule is for; `r8 certificate RUN` prints all of it."
    )
    return "\n".join(parts)


def _environment(runs: Sequence[Run]) -> str:
    rows: dict[tuple[str, str], dict[str, None]] = {}
    for run in runs:
        facts = [("site", "name", run.site), ("site", "sha256", run.site_sha256)]
        facts += [("site", "step", run.rung), ("basis", "", str(run.basis))]
        facts += [("seed", f"block {run.block}", str(run.seed))]
        facts += [("versions", key, value) for key, value in run.versions.items()]
        facts += [("comparability", key, value) for key, value in run.comparability.items()]
        facts += [("host", key, value) for key, value in run.host.items()]
        facts += [("kv device", run.arm, run.kv_device)]
        if run.patch:
            facts += [("LMCache", run.arm, f"{run.patch.lmcache_version}, {run.patch.expected}")]
            facts += [("LMCache file sha256", run.arm, run.patch.target_sha256)]
        if run.note:
            facts += [("note", run.run_id, run.note)]
        for group, key, value in facts:
            rows.setdefault((group, key), {})[value] = None
    cells = [[group, key, ", ".join(values)] for (group, key), values in sorted(rows.items())]
    return "## Environment\n\n" + markdown(cells, ["what", "which", "value"])


def _not_measured(
    session: Session, verdicts: Sequence[Verdict], elsewhere: Sequence[Verdict]
) -> str:
    lines = [
        f"* Claim `{verdict.claim.claim_id}` ({verdict.claim.as_printed}): {verdict.outcome}, "
        f"{verdict.reason}."
        for verdict in verdicts
        if verdict.outcome in UNJUDGED
    ]
    absent: dict[tuple[str, str], list[str]] = {}
    for run in session.runs:
        for phase, metric, statistic in metrics_of(run):
            found = session.value(run, metric, statistic, phase=phase)
            if found.value is None:
                name = f"{metric} {statistic}".strip() + f" ({phase})"
                reason = render_reason(found.reason) if found.reason else "no reason"
                absent.setdefault((name, reason), []).append(run.run_id)
    lines += [
        f"* `{name}`: {reason}. Runs: {', '.join(run_ids)}."
        for (name, reason), run_ids in absent.items()
    ]
    if elsewhere:
        names = ", ".join(sorted({one.claim.scenario for one in elsewhere}))
        lines.append(
            f"* {len(elsewhere)} claims of other scenarios were not asked of these runs: {names}."
        )
    return "## Not measured, and why\n\n" + ("\n".join(lines) or "Nothing.")
