"""Rounds of one matrix against each other: repeatability, and what an A/A comparison spreads.

Two rounds are two campaigns: other prompts, another order of arms, engines of their own. The first
is the reference of the second, metric by metric, by the same test of equivalence that reference
runs are judged with: deviation = (second - first) / first on both rounds' own variance, two-sided,
5 %. What one arm spreads between rounds, no difference between arms may be smaller than.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.model import Claim
from r8.verdict.judge import judge_session
from r8.verdict.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from r8.evidence.reader import Evidence
    from r8.model import Run, Verdict
    from r8.verdict.session import Session

TOLERANCE = 0.05
# Absolute values of what a reader of the reports looks at first, and the share of the device. The
# last TTFT of the burst stands beside p50, which jumps with how many requests an engine's first
# step happens to take (view `admissions`).
PRIMARY = (
    ("ttft", "p50", "s"),
    ("ttft", "max", "s"),
    ("output_throughput", "", "tokens/s"),
    ("ceiling_fraction", "mean", ""),
)
MIN_BLOCKS = 2


def compare_rounds(first: Sequence[Evidence], second: Sequence[Evidence]) -> tuple[Verdict, ...]:
    """One verdict a cell and primary metric: whether the second round is the first one again.

    Raises:
        UsageError: both are of one campaign.

    """
    return compare_sessions(open_session(first), open_session(second))


def compare_sessions(first: Session, second: Session) -> tuple[Verdict, ...]:
    """The same, over sessions that are already open."""
    return judge_session(second, round_claims(second.runs), first)


def round_claims(runs: Iterable[Run]) -> tuple[Claim, ...]:
    """Equivalence of every cell's primary metrics; the device's share only where KV is read."""
    cells = sorted({(run.scenario, run.concurrency, run.arm, run.recompute) for run in runs})
    return tuple(
        _claim(scenario, f"c{concurrency}", arm, metric)
        for scenario, concurrency, arm, recompute in cells
        for metric in PRIMARY
        if not (recompute and metric[0] == "ceiling_fraction")
    )


def _claim(scenario: str, level: str, arm: str, metric: tuple[str, str, str]) -> Claim:
    name, statistic, unit = metric
    return Claim(
        claim_id=".".join(("round", arm, level, *filter(None, (name, statistic)))),
        source="reference",
        kind="equivalence",
        scenario=scenario,
        metric=name,
        numerator_arm=arm,
        denominator_arm=None,
        level=level,
        low=1.0,
        high=None,
        unit=unit,
        tolerance=TOLERANCE,
        as_printed=f"+-{TOLERANCE:.0%}",
        figure_ids=(),
        comparability={},
        statistic=statistic,
        min_blocks=MIN_BLOCKS,
        looks=1,
    )


def spread(verdicts: Iterable[Verdict]) -> dict[str, float]:
    """The largest |second / first - 1| of each primary metric and statistic, over all cells."""
    worst: dict[str, float] = {}
    for verdict in verdicts:
        if verdict.estimate is not None:
            metric = f"{verdict.claim.metric} {verdict.claim.statistic or ''}".rstrip()
            worst[metric] = max(worst.get(metric, 0.0), abs(verdict.estimate - 1))
    return worst
