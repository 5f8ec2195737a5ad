"""The parts of a report about model loading and model switching; empty where none was run."""

from __future__ import annotations

from statistics import geometric_mean
from typing import TYPE_CHECKING

from r8.errors import MetricError
from r8.metrics.utilisation import CURVE, PUBLISHED_SWITCHES_PER_HOUR, SECONDS_PER_HOUR, utilisation
from r8.report.tables import markdown, number, over_blocks, shown
from r8.units import gb_per_s, mb_per_s, s_from_ns
from r8.verdict.intervals import log_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.model import Run
    from r8.verdict.intervals import Interval
    from r8.verdict.session import Session

LOAD, SWITCH = "load", "switch"
ENGINE = "engine"  # a tool: the workers start engines
# Of the curve; its whole range is in the view `utilisation`.
CURVE_SHOWN = tuple(n for n in CURVE if n == 1 or n % 5 == 0)

LOAD_NOTE = (
    "Prediction: bytes of the models over the bandwidth fio measured in the same block. All "
    "loaders go at one barrier, each with a model of its own. Several blocks: geometric mean of "
    "their ratios and its 90 % interval."
)
SWITCH_NOTE = (
    "U = 1 - n * t_load / 3600 s from the load times of these runs: **basis modelled**, "
    "whatever the loads are. Measured beside it: what a run that switches at a compressed time "
    "scale really served. Prediction: bytes of one model over the bandwidth fio measured."
)
ENGINE_LOAD_NOTE = (
    "The engine as the loader: its load is what its own log marks, seen by our clock; beside it "
    "the seconds it prints itself. Start: from the start of its process to its first answer."
)
ENGINE_SWITCH_NOTE = (
    "Engines switched for real: stop one, start the next, load, serve until the next switch. Their "
    "load alone is in the model; what they wait for the engine before and what they take to start "
    "is not, and is in what was served. The load is at the run's time scale, the rest is not. Last "
    "column: the model with the whole switch, until the first answer, for its load."
)
CURVE_NOTE = (
    "Utilisation by switches an hour, basis modelled; the interval is that of the load time over "
    "blocks (90 %)."
)


def _runs(session: Session, job: str) -> list[Run]:
    return [run for run in session.runs if run.work is not None and run.work.job == job]


def load_section(session: Session) -> str:
    """Every loading run beside what its device alone would need, then the ratios of the arms."""
    runs = _runs(session, LOAD)
    if not runs:
        return ""
    rows = [
        [
            run.block,
            run.arm,
            f"c{run.concurrency}",
            run.work.tool if run.work else None,
            shown(session, run, "work_wall", "", s_from_ns),
            shown(session, run, "predicted_work_wall", "", s_from_ns),
            shown(session, run, "wall_over_predicted", "", float),
            shown(session, run, "work_time", "mean", s_from_ns),
            shown(session, run, "device_read_bytes", "", gb_per_s),
            shown(session, run, "work_bandwidth", "", mb_per_s),
        ]
        for run in runs
    ]
    headers = ["block", "arm", "level", "loader", "wall clock s", "predicted s"]
    headers += ["measured / predicted", "mean load s", "device read GB", "loaded MB/s"]
    parts = [
        "## Concurrent model loading",
        LOAD_NOTE,
        markdown(rows, headers),
        _ratios(session, runs, "work_wall", "", "predicted_work_wall"),
        _faster(session, runs),
        _engines(session, runs, ENGINE_LOAD_NOTE),
    ]
    return "\n\n".join(part for part in parts if part)


def _pairs(runs: Sequence[Run]) -> dict[tuple[str, str, int], list[tuple[Run, Run]]]:
    """Runs of two arms in one block and level, the arm that stands first in the alphabet below."""
    found: dict[tuple[str, str, int], list[tuple[Run, Run]]] = {}
    for below in runs:
        for above in runs:
            place = (below.campaign_id, below.block, below.concurrency)
            if above.arm > below.arm and place == (
                above.campaign_id,
                above.block,
                above.concurrency,
            ):
                found.setdefault((above.arm, below.arm, below.concurrency), []).append(
                    (above, below)
                )
    return found


def _ratios(
    session: Session, runs: Sequence[Run], metric: str, statistic: str, predicted: str
) -> str:
    rows = []
    for (above, below, level), pairs in sorted(_pairs(runs).items()):
        measured = _quotients(session, pairs, metric, statistic)
        expected = _quotients(session, pairs, predicted, "")
        if not measured or len(measured) != len(expected):
            continue
        both = [one / other for one, other in zip(measured, expected, strict=True)]
        name = f"{above} / {below}"
        rows.append([name, f"c{level}", len(pairs), *map(over_blocks, (measured, expected, both))])
    if not rows:
        return ""
    headers = ["ratio", "level", "blocks", "ratio measured", "ratio predicted"]
    return markdown(rows, [*headers, "measured / predicted"])


def _faster(session: Session, runs: Sequence[Run]) -> str:
    """The two readings of "faster", labelled: the published page does not say which it means."""
    rows = []
    for (above, below, level), pairs in sorted(_pairs(runs).items()):
        for what, metric, statistic in (
            ("wall clock", "work_wall", ""),
            ("mean load", "work_time", "mean"),
        ):
            found = _quotients(session, pairs, metric, statistic)
            if not found:
                continue
            # Of the same middle as the ratio above, so that the two readings are of one number.
            middle = geometric_mean(found)
            name = f"{below} against {above}"
            cells = [f"{_per_cent(part):.1f} %" for part in (1 - 1 / middle, middle - 1)]
            rows.append([name, f"c{level}", what, len(found), *cells])
    if not rows:
        return ""
    headers = ["arms", "level", "of", "blocks", "read as time saved", "read as speed-up"]
    return markdown(rows, headers)


def _quotients(
    session: Session, pairs: Sequence[tuple[Run, Run]], metric: str, statistic: str
) -> list[float]:
    found = []
    for above, below in pairs:
        one = session.value(above, metric, statistic).value
        other = session.value(below, metric, statistic).value
        if one is None or other is None or one <= 0 or other <= 0:
            return []
        found.append(one / other)
    return found


def switch_section(session: Session) -> str:
    """Measured use beside the model's, then the model's curve with its interval."""
    runs = _runs(session, SWITCH)
    if not runs:
        return ""
    rows = [
        [
            run.block,
            run.arm,
            run.concurrency,
            shown(session, run, "work_time", "mean", s_from_ns),
            shown(session, run, "predicted_work_time", "", s_from_ns),
            number(run.work.time_scale if run.work else None),
            shown(session, run, "utilisation_measured", "", _per_cent),
            shown(session, run, "utilisation_modelled", "pace", _per_cent),
            shown(session, run, "utilisation_modelled", "n20", _per_cent),
            shown(session, run, "predicted_utilisation", "n20", _per_cent),
        ]
        for run in runs
    ]
    headers = ["block", "arm", "switches", "mean load s", "predicted load s", "time scale"]
    headers += ["served %, measured", "% by the model at this pace", "% at 20/h, modelled"]
    headers += ["% at 20/h, predicted"]
    parts = [
        "## Model switching",
        SWITCH_NOTE,
        markdown(rows, headers),
        _ratios(session, runs, "work_time", "mean", "predicted_work_time"),
        _engines(session, runs, ENGINE_SWITCH_NOTE),
        CURVE_NOTE,
        _curve(session, runs),
    ]
    return "\n\n".join(part for part in parts if part)


def _engines(session: Session, runs: Sequence[Run], note: str) -> str:
    """What engines took to stop, start and load, beside their own words."""
    served = note is ENGINE_SWITCH_NOTE
    shares = [("utilisation_measured", ""), ("utilisation_modelled", "whole")] if served else []
    waits = [("engine_wait", "mean")] if served else []  # nobody was before a loader
    rows = [
        [
            run.block,
            run.arm,
            f"c{run.concurrency}",
            *(shown(session, run, *one, s_from_ns) for one in waits),
            shown(session, run, "engine_start", "mean", s_from_ns),
            shown(session, run, "work_time", "mean", s_from_ns),
            shown(session, run, "engine_said_load", "mean", s_from_ns),
            *(shown(session, run, *one, _per_cent) for one in shares),
        ]
        for run in runs
        if run.work is not None and run.work.tool == ENGINE
    ]
    headers = ["block", "arm", "level", *(["mean wait for the one before s"] if served else [])]
    headers += ["mean start s", "mean load s", "mean load by its own words s"]
    headers += ["served %, measured", "% by the model, whole switch"] if served else []
    return f"{note}\n\n{markdown(rows, headers)}" if rows else ""


def _curve(session: Session, runs: Sequence[Run]) -> str:
    arms = sorted({run.arm for run in runs})
    loads = {arm: _load_interval(session, [run for run in runs if run.arm == arm]) for arm in arms}
    rates = sorted({*CURVE_SHOWN, PUBLISHED_SWITCHES_PER_HOUR})
    rows = [[n, *(_point(n, *loads[arm]) for arm in arms)] for n in rates]
    return markdown(rows, ["switches an hour", *arms])


def _load_interval(session: Session, runs: Sequence[Run]) -> tuple[float | None, Interval | None]:
    """Mean load in modelled seconds over blocks, and its interval where there are enough."""
    found = []
    for run in runs:
        value = session.value(run, "work_time", "mean").value
        if value is None or run.work is None:
            return None, None
        found.append(s_from_ns(value) * run.work.time_scale)
    interval = log_interval(found)
    return (interval.estimate if interval else sum(found) / len(found)), interval


def _point(n: int, load_s: float | None, interval: Interval | None) -> str:
    if load_s is None:
        return ""
    if interval is None:
        return _share(n, load_s)
    # A slower load leaves less: the interval of the use is the other way round.
    low, at, high = (_share(n, one) for one in (interval.high, load_s, interval.low))
    return at if low == at == high == _NO_ROOM else f"{at} [{low}, {high}]"


_NO_ROOM = f"> {SECONDS_PER_HOUR:.0f} s of loads"


def _share(n: int, load_s: float) -> str:
    try:
        return f"{_per_cent(utilisation(n, load_s)):.1f} %"
    except MetricError:
        return _NO_ROOM


def _per_cent(share: float) -> float:
    return 100 * share
