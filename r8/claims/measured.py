"""Which scenario and metric of R8 can measure a published figure, or why none can.

A reading maps to a row of the view `metrics`; a comparison maps through its own formula: `a / b` is
the ratio of the two arms, `a / b - 1` the same ratio less 1. A reduction is turned over, so that
every comparison claims at least something. A percentile that its samples cannot support is the
maximum, and is measured as the maximum.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from r8.claims.printed_units import UNITS
from r8.model import Basis
from r8.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from r8.claims.formula import Node
    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Reports

# The deviation the reports themselves state for two runs.
TOLERANCE = 0.05
# Scenario of the figures -> arm of the figures -> arm of the runs.
ARMS: dict[str, dict[str, str]] = {
    "r1-parallel-read": {"array-unpatched": "unpatched", "array-patched": "patched"},
    # "Each full-model snapshot": the reading in which the printed times and rates fit each other.
    "r1-checkpoint": {"baseline": "local-full-each", "array": "array-full-each"},
    "r2-cold-recovery": {one: one for one in ("array", "local-nvme", "recompute")},
    "r3-tp4x2": {one: one for one in ("pool", "fs-own", "fs-cross", "local-nvme", "recompute")},
}
# Scenarios whose pages print one size of the machine and no level.
LEVELS = {"r1-checkpoint": "c8"}
# Scenarios whose figures no formula of the ledger turns into a measure: "faster" without saying of
# what, levels of a model, a model's name for a level. A claims file says how each is read.
JUDGED_BY = {
    "r1-model-load": "claims-r1-model-load.toml",
    "r1-model-switch": "claims-r1-model-switch.toml",
    "r9-model-load": "claims-r9-model-load.toml",
}
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
_LEVEL = re.compile(r"c(\d+)")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMeasured:
    """Why R8 cannot measure a figure: a sentence of the catalogue, and what it names."""

    key: str
    detail: str = ""


def measure_of(ledger: Ledger, figure: Figure) -> Measure | NotMeasured:
    """The measure of one figure, or the reason there is none."""
    if figure.value is None:
        return NotMeasured(key="why.unpublished")
    if figure.basis is Basis.SPECIFICATION:
        return NotMeasured(key="why.specification")
    if figure.scenario in JUDGED_BY:
        return NotMeasured(key="why.claims", detail=JUDGED_BY[figure.scenario])
    if figure.basis in {Basis.MODELLED, Basis.ESTIMATED}:
        return NotMeasured(key="why.basis", detail=str(figure.basis))
    if figure.formula is not None:
        return _comparison(ledger, figure, figure.formula)
    return _reading(figure)


def samples_needed(rank: int) -> int:
    """Fewest samples in which the p-`rank` is not the maximum by necessity: 1 / (1 - q)."""
    return math.ceil(1 / (1 - Fraction(rank, 100)))


def _reading(figure: Figure) -> Measure | NotMeasured:
    arms = ARMS.get(figure.scenario)
    if arms is None:
        return NotMeasured(key="why.scenario", detail=figure.scenario)
    level = figure.level or LEVELS.get(figure.scenario, "")
    if figure.arm not in arms or not _LEVEL.fullmatch(level):
        return NotMeasured(key="why.cell", detail=figure.arm or "-")
    view = _view(figure)
    if view is None:
        name = f"{figure.metric} {figure.statistic}".strip()
        return NotMeasured(key="why.metric", detail=name)
    metric, statistic, unit = view
    quantity = Fraction(figure.value or 0) * UNITS[figure.unit].scale
    if figure.unit_base is not None:
        quantity = quantity * figure.unit_base / 10**9
    return Measure(
        kind="value",
        scenario=figure.scenario,
        level=level,
        metric=metric,
        statistic=statistic,
        numerator_arm=arms[figure.arm],
        denominator_arm=None,
        claimed=float(quantity * NS_PER_S) if unit == "ns" else float(quantity),
        unit=unit,
    )


def _view(figure: Figure) -> tuple[str, str, str] | None:
    percentile = _PERCENTILE.fullmatch(figure.statistic)
    level = _LEVEL.fullmatch(figure.level)
    if figure.metric == "ttft" and percentile and level:
        rank = int(percentile[1])
        if int(level[1]) < samples_needed(rank):
            return ("ttft", "max", "ns")
    return _VIEWS.get((figure.metric, figure.statistic))


def _comparison(ledger: Ledger, figure: Figure, formula: Node) -> Measure | NotMeasured:
    """`a / b` or `a / b - 1` of two measurable readings of one cell."""
    change = formula.kind == "-" and str(formula.parts[1]) == "1"
    ratio = formula.parts[0] if change else formula
    parts = ratio.parts
    if ratio.kind != "/" or any(one.kind != "figure" for one in parts):
        return NotMeasured(key="why.through", detail=", ".join(ledger.inputs(formula)))
    above, below = (_reading(ledger.figures[one.text]) for one in parts)
    for one in (above, below):
        if isinstance(one, NotMeasured):
            return one
    if not (isinstance(above, Measure) and isinstance(below, Measure)):
        raise TypeError("a reading is a measure or says why not")
    if (above.metric, above.statistic, above.level) != (below.metric, below.statistic, below.level):
        return NotMeasured(key="why.through", detail=", ".join(one.text for one in parts))
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


def keys_of(reports: Reports, measure: Measure) -> Mapping[str, str]:
    """Comparability keys of a measure: none for a ratio, those of its own medium for a value."""
    if measure.denominator_arm is not None:
        return {}
    keys = dict(reports.comparability.get(measure.scenario, {}))
    unused = {"local-nvme": ("array",), "recompute": ("array", "local")}
    unused["local-full-each"] = unused["local-nvme"]
    for name in unused.get(measure.numerator_arm, ("local",)):
        keys.pop(name, None)
    return keys
