"""`r8 diff`: runs against a report, claim by claim, or runs against other runs.

Against a report, every figure of it is a row: those that R8 can measure become claims and are
judged by `r8.verdict.judge` like any other; the others say why not. Absolute values need the
published comparability keys, ratios need none, and a shaped device proves nothing about a
published number.
Against runs, the claims are equivalence within 5 %: ratios anywhere, absolute values where the keys
are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from r8.claims.measured import TOLERANCE, Measure, measure_of
from r8.claims.reader import LOOKS, MIN_BLOCKS
from r8.model import Basis, Claim, Outcome, Verdict
from r8.verdict.judge import judge_session, of_a_rehearsal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Reports
    from r8.message import Message
    from r8.model import Reason, Run
    from r8.verdict.session import Session

# What two sets of runs are compared by: metric, statistic, unit of the view.
COMPARED = (
    ("ttft", "p50", "ns"),
    ("ttft", "max", "ns"),
    ("output_throughput", "", "tokens/s"),
    ("device_read_bandwidth", "busy", "bytes/s"),
    ("ceiling_fraction", "busy", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """One published figure, or one quotient, and what the runs say."""

    name: str
    published: str
    verdict: Verdict | None  # None: R8 cannot measure it
    measured: float | None  # in the figure's own unit, or the quotient
    low: float | None
    high: float | None
    unit: str
    deviation: float | None  # (measured - published) / published, unrounded
    at_least: float | None = None  # the ratio a printed comparison stands for
    why_not: Message | None = None

    @property
    def outcome(self) -> Outcome:
        """The verdict's outcome; what R8 cannot measure is not measured."""
        return Outcome.NOT_MEASURED if self.verdict is None else self.verdict.outcome

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why it came to that: the verdict's reasons, or why R8 cannot measure it."""
        if self.verdict is not None:
            return self.verdict.reasons
        return () if self.why_not is None else (self.why_not,)


def claim_of(figure: Figure, measure: Measure, report_id: str) -> Claim:
    """A published figure as a claim in the metric's own unit."""
    return Claim(
        claim_id=figure.figure_id,
        source=report_id,
        kind=measure.kind,
        scenario=measure.scenario,
        metric=measure.metric,
        numerator_arm=measure.numerator_arm,
        denominator_arm=measure.denominator_arm,
        level=measure.level,
        low=measure.claimed,
        high=None,
        unit=measure.unit,
        tolerance=TOLERANCE,
        as_printed=figure.as_printed,
        figure_ids=(figure.figure_id,),
        comparability=dict(measure.comparability),
        statistic=measure.statistic,
        min_blocks=MIN_BLOCKS,
        looks=LOOKS,
    )


def against_report(
    session: Session, ledger: Ledger, reports: Reports, report_id: str
) -> list[DiffRow]:
    """A row for every figure of the report, in its order; figures printed again come once.

    Raises:
        UsageError: no figure of that report.

    """
    figures = [one for one in ledger.of(report_id) if not _restated(ledger, one, report_id)]
    measures = [(one, measure_of(ledger, reports, one)) for one in figures]
    claims = [
        claim_of(one, found, report_id) for one, found in measures if isinstance(found, Measure)
    ]
    verdicts = {one.claim.claim_id: one for one in judge_session(session, claims)}
    return [
        _row(figure, found, _settled(verdicts[figure.figure_id], session.runs))
        if isinstance(found, Measure)
        else _unmeasured(figure, found)
        for figure, found in measures
    ]


def _restated(ledger: Ledger, figure: Figure, report_id: str) -> bool:
    """A row of this report that repeats another row of this report."""
    return figure.restates is not None and report_id in ledger.figures[figure.restates].reports


def _settled(verdict: Verdict, runs: Sequence[Run]) -> Verdict:
    """Runs that could never speak about a published number are incomparable, not unmeasured."""
    modelled = [run for run in runs if run.basis is not Basis.MEASURED]
    if verdict.outcome is not Outcome.NOT_MEASURED or len(modelled) < len(runs):
        return verdict
    why = of_a_rehearsal(modelled)
    reasons = verdict.reasons if why is None else (why,)
    return replace(verdict, outcome=Outcome.NOT_COMPARABLE, reasons=reasons)


def _row(figure: Figure, measure: Measure, verdict: Verdict) -> DiffRow:
    """Values in the printed unit; a comparison stays a ratio, whatever the page made of it."""
    ratio = measure.denominator_arm is not None
    scale = 1.0 if ratio or figure.value is None else float(figure.value) / measure.claimed
    shown = [
        None if one is None else one * scale
        for one in (verdict.estimate, verdict.low, verdict.high)
    ]
    estimate = verdict.estimate
    return DiffRow(
        name=figure.figure_id,
        published=figure.as_printed,
        at_least=measure.claimed if ratio else None,
        verdict=verdict,
        measured=shown[0],
        low=shown[1],
        high=shown[2],
        unit="x" if ratio else figure.unit,
        deviation=None if estimate is None else (estimate - measure.claimed) / measure.claimed,
    )


def _unmeasured(figure: Figure, why: Message) -> DiffRow:
    return DiffRow(
        name=figure.figure_id,
        published=figure.as_printed,
        verdict=None,
        measured=None,
        low=None,
        high=None,
        unit=figure.unit,
        deviation=None,
        why_not=why,
    )


def against_runs(session: Session, reference: Session) -> list[DiffRow]:
    """Quotients of our runs and theirs: every arm both have, and every ratio of two arms.

    Raises:
        UsageError: the runs share a campaign.

    """
    verdicts = judge_session(session, _equivalences(session, reference), reference)
    return [
        DiffRow(
            name=one.claim.claim_id,
            published="1",
            verdict=one,
            measured=one.estimate,
            low=one.low,
            high=one.high,
            unit="",
            deviation=None if one.estimate is None else one.estimate - 1,
        )
        for one in verdicts
    ]


def _equivalences(session: Session, reference: Session) -> list[Claim]:
    ours, theirs = ({_cell(run) for run in one.runs} for one in (session, reference))
    cells = sorted(ours & theirs)
    claims = []
    for scenario, level, arm in cells:
        claims += [_equivalence(scenario, level, arm, None, view) for view in COMPARED]
        others = [a for s, lv, a in cells if (s, lv) == (scenario, level) and a > arm]
        claims += [
            _equivalence(scenario, level, arm, other, (metric, statistic, "x"))
            for other in others
            for metric, statistic, unit in COMPARED
            if unit
        ]
    return claims


def _cell(run: Run) -> tuple[str, str, str]:
    return (run.scenario, f"c{run.concurrency}", run.arm)


def _equivalence(
    scenario: str, level: str, arm: str, other: str | None, view: tuple[str, str, str]
) -> Claim:
    metric, statistic, unit = view
    arms = arm if other is None else f"{arm} / {other}"
    return Claim(
        claim_id=f"{scenario} {level} {arms} {metric} {statistic}".rstrip(),
        source="reference",
        kind="equivalence",
        scenario=scenario,
        metric=metric,
        numerator_arm=arm,
        denominator_arm=other,
        level=level,
        low=1.0,
        high=None,
        unit=unit,
        tolerance=TOLERANCE,
        as_printed="1",
        figure_ids=(),
        comparability={},
        statistic=statistic,
    )
