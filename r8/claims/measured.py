"""Which scenario and metric of R8 can measure a published figure, or why none can.

A measured value maps to a row of the view `metrics`; a comparison maps through its own formula:
`a / b` is the ratio of the two arms, `a / b - 1` the same ratio less 1. A reduction is turned
over, so that every comparison claims at least something. A percentile that its samples cannot
support is the maximum, and is measured as the maximum.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from r8.claims.printed import UNITS
from r8.message import Message
from r8.model import Basis
from r8.roles import CONTRACTS
from r8.units import BYTES_PER_GB, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from r8.claims.formula import Node
    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Reports

# The deviation the reports themselves state for two runs.
TOLERANCE = 0.05
# Metric and statistic of the figures -> those of the view `metrics`, and the view's unit.
_VIEWS: dict[tuple[str, str], tuple[str, str, str]] = {
    ("ttft", "p50"): ("ttft", "p50", "ns"),
    # R1 names no statistic; the later reports of the series print the p50 of the burst.
    ("ttft", "not stated"): ("ttft", "p50", "ns"),
    ("ttft", "p90"): ("ttft", "p90", "ns"),
    ("tpot", "p50"): ("tpot", "p50", "ns"),
    ("output_throughput", ""): ("output_throughput", "", "tokens/s"),
    ("read_bandwidth", "not stated"): ("device_read_bandwidth", "busy", "bytes/s"),
    ("disk_read_bandwidth", "peak 1 s"): ("device_read_bandwidth", "peak_1s", "bytes/s"),
    ("disk_read_bandwidth", "mean of 1 s windows > 0.5 GB/s"): (
        "device_read_bandwidth",
        "busy",
        "bytes/s",
    ),
    ("save_time", "not stated"): ("save_time", "", "ns"),
    ("write_bandwidth", "sustained"): ("device_write_bandwidth", "busy", "bytes/s"),
}
LEVEL = re.compile(r"c(\d+)")
_PERCENTILE = re.compile(r"p(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How runs of R8 can meet a figure; values in the view's own unit, ratios plain."""

    kind: str  # "value" or "at-least"
    scenario: str
    level: str
    metric: str
    statistic: str
    numerator_arm: str
    denominator_arm: str | None
    claimed: float
    unit: str
    unit_size: float = 1.0  # of the figure's unit, its GB included, in `unit`
    # What a run must share before absolute values are compared; a ratio needs none of it.
    comparability: Mapping[str, str] = field(default_factory=dict)


def measure_of(ledger: Ledger, reports: Reports, figure: Figure) -> Measure | Message:
    """The measure of one figure, or the reason there is none."""
    if figure.value is None:
        return Message(id="unmeasured-unpublished")
    if figure.basis is Basis.SPECIFICATION:
        return Message(id="unmeasured-specification")
    scenario = reports.scenarios.get(figure.scenario)
    if scenario is not None and scenario.judged_by:
        return Message(id="unmeasured-claims", facts={"file": scenario.judged_by})
    if figure.basis in {Basis.MODELLED, Basis.ESTIMATED}:
        return Message(id="unmeasured-basis", facts={"basis": str(figure.basis)})
    if figure.formula is not None:
        return _comparison(ledger, reports, figure, figure.formula)
    return _value(reports, figure)


def samples_needed(rank: int) -> int:
    """Fewest samples in which the p-`rank` is not the maximum by necessity: 1 / (1 - q)."""
    return math.ceil(1 / (1 - Fraction(rank, 100)))


def _value(reports: Reports, figure: Figure) -> Measure | Message:
    scenario = reports.scenarios.get(figure.scenario)
    if scenario is None or not scenario.arms:
        return Message(id="unmeasured-scenario", facts={"scenario": figure.scenario})
    arm, level = scenario.arms.get(figure.arm), figure.level or scenario.level
    if arm is None or not LEVEL.fullmatch(level):
        return Message(id="unmeasured-cell", facts={"arm": figure.arm or "-"})
    view = _view(figure)
    if view is None:
        name = f"{figure.metric} {figure.statistic}".strip()
        return Message(id="unmeasured-metric", facts={"metric": name})
    metric, statistic, unit = view
    size = UNITS[figure.unit].scale * (NS_PER_S if unit == "ns" else 1)
    if figure.unit_base is not None:
        size = size * figure.unit_base / BYTES_PER_GB
    untouched = CONTRACTS[arm.role].other_keys
    keys = {name: key for name, key in scenario.comparability.items() if name not in untouched}
    return Measure(
        kind="value",
        scenario=figure.scenario,
        level=level,
        metric=metric,
        statistic=statistic,
        numerator_arm=arm.run,
        denominator_arm=None,
        claimed=float(Fraction(figure.value or 0) * size),
        unit=unit,
        unit_size=float(size),
        comparability=keys,
    )


def _view(figure: Figure) -> tuple[str, str, str] | None:
    percentile = _PERCENTILE.fullmatch(figure.statistic)
    level = LEVEL.fullmatch(figure.level)
    if figure.metric == "ttft" and percentile and level:
        rank = int(percentile[1])
        if int(level[1]) < samples_needed(rank):
            return ("ttft", "max", "ns")
    return _VIEWS.get((figure.metric, figure.statistic))


def _comparison(
    ledger: Ledger, reports: Reports, figure: Figure, formula: Node
) -> Measure | Message:
    """`a / b` or `a / b - 1` of two measurable values of one cell."""
    change = formula.kind == "-" and str(formula.parts[1]) == "1"
    ratio = formula.parts[0] if change else formula
    parts = ratio.parts
    if ratio.kind != "/" or any(one.kind != "figure" for one in parts):
        return _through(ledger.inputs(formula))
    above, below = (_value(reports, ledger.figures[one.text]) for one in parts)
    for one in (above, below):
        if isinstance(one, Message):
            return one
    if not (isinstance(above, Measure) and isinstance(below, Measure)):
        raise TypeError("a value is a measure or says why not")
    if (above.metric, above.statistic, above.level) != (below.metric, below.statistic, below.level):
        return _through([one.text for one in parts])
    claimed = float(Fraction(figure.value or 0) * UNITS[figure.unit].scale) + int(change)
    if claimed < 1:
        above, below, claimed = below, above, 1 / claimed
    return Measure(
        kind="at-least",
        scenario=above.scenario,
        level=above.level,
        metric=above.metric,
        statistic=above.statistic,
        numerator_arm=above.numerator_arm,
        denominator_arm=below.numerator_arm,
        claimed=claimed,
        unit="x",
    )


def _through(figures: list[str]) -> Message:
    if not figures:
        return Message(id="unmeasured-numbers")
    return Message(id="unmeasured-through", facts={"figures": ", ".join(figures)})
