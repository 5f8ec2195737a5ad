"""The parts of a report about model loading and model switching; empty where none was run."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean
from typing import TYPE_CHECKING

from r8.errors import MetricError
from r8.metrics.utilisation import CURVE, PUBLISHED_SWITCHES_PER_HOUR, SECONDS_PER_HOUR, utilisation
from r8.model import TransferRun
from r8.report.tables import PARAGRAPHS, markdown, number, over_blocks, shown, table
from r8.report.words import say
from r8.text import Markdown
from r8.units import gb_per_s, mb_per_s, s_from_ns
from r8.verdict.intervals import log_interval

if TYPE_CHECKING:
    from r8.verdict.intervals import Interval
    from r8.verdict.session import Session

Runs = Sequence[TransferRun]
Pair = tuple[TransferRun, TransferRun]
LOAD, SWITCH = "load", "switch"
ENGINE = "engine"  # a tool: the workers start engines
# Of the curve; its whole range is in the view `utilisation`.
CURVE_SHOWN = tuple(n for n in CURVE if n == 1 or n % 5 == 0)


def _runs(session: Session, job: str) -> list[TransferRun]:
    return [run for run in session.runs if isinstance(run, TransferRun) and run.job == job]


def loads(session: Session, language: str) -> Markdown:
    """Every loading run beside what its device alone would need, then the ratios of the arms."""
    runs = _runs(session, LOAD)
    if not runs:
        return Markdown()
    rows = [
        [
            run.block,
            run.arm,
            f"c{run.concurrency}",
            run.tool,
            shown(session, run, "work_wall", "", s_from_ns),
            shown(session, run, "predicted_work_wall", "", s_from_ns),
            shown(session, run, "wall_over_predicted", "", float),
            shown(session, run, "work_time", "mean", s_from_ns),
            shown(session, run, "device_read_bytes", "", gb_per_s),
            shown(session, run, "work_bandwidth", "", mb_per_s),
        ]
        for run in runs
    ]
    heads = ["head-block", "head-arm", "head-level", "head-loader", "head-wall", "head-predicted"]
    heads += ["head-measured-predicted", "head-mean-load", "head-device-read", "head-loaded"]
    parts = [
        say(language, "note-loads"),
        table(rows, heads, language),
        _ratios(session, runs, "work_wall", "", language),
        _faster(session, runs, language),
        _engines(session, runs, language, switched=False),
    ]
    return PARAGRAPHS.join(part for part in parts if part)


def _pairs(
    runs: Runs,
) -> dict[tuple[str, str, int], list[Pair]]:
    """Runs of two arms in one block and level, the arm that stands first in the alphabet below."""
    found: dict[tuple[str, str, int], list[Pair]] = {}
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


def _ratios(session: Session, runs: Runs, metric: str, statistic: str, language: str) -> Markdown:
    rows = []
    for (above, below, level), pairs in sorted(_pairs(runs).items()):
        measured = _quotients(session, pairs, metric, statistic)
        expected = _quotients(session, pairs, f"predicted_{metric}", "")
        if not measured or len(measured) != len(expected):
            continue
        both = [one / other for one, other in zip(measured, expected, strict=True)]
        name = f"{above} / {below}"
        rows.append([name, f"c{level}", len(pairs), *map(over_blocks, (measured, expected, both))])
    if not rows:
        return Markdown()
    heads = ["head-ratio", "head-level", "head-blocks", "head-ratio-measured"]
    return table(rows, [*heads, "head-ratio-predicted", "head-measured-predicted"], language)


def _faster(session: Session, runs: Runs, language: str) -> Markdown:
    """The two interpretations of "faster": the published page does not say which it means."""
    rows = []
    for (above, below, level), pairs in sorted(_pairs(runs).items()):
        for what, metric, statistic in (
            ("word-wall", "work_wall", ""),
            ("word-mean-load", "work_time", "mean"),
        ):
            found = _quotients(session, pairs, metric, statistic)
            if not found:
                continue
            # Of the same middle as the ratio above: both interpretations are of one number.
            middle = geometric_mean(found)
            name = say(language, "word-against", below=below, above=above)
            cells = [f"{_per_cent(part):.1f} %" for part in (1 - 1 / middle, middle - 1)]
            rows.append([name, f"c{level}", say(language, what), len(found), *cells])
    if not rows:
        return Markdown()
    heads = ["head-arms", "head-level", "head-of", "head-blocks"]
    return table(rows, [*heads, "head-time-saved", "head-speed-up"], language)


def _quotients(session: Session, pairs: Sequence[Pair], metric: str, statistic: str) -> list[float]:
    found = []
    for above, below in pairs:
        one = session.value(above, metric, statistic).value
        other = session.value(below, metric, statistic).value
        if one is None or other is None or one <= 0 or other <= 0:
            return []
        found.append(one / other)
    return found


def switches(session: Session, language: str) -> Markdown:
    """Measured use beside the model's, then the model's curve with its interval."""
    runs = _runs(session, SWITCH)
    if not runs:
        return Markdown()
    rows = [
        [
            run.block,
            run.arm,
            run.concurrency,
            shown(session, run, "work_time", "mean", s_from_ns),
            shown(session, run, "predicted_work_time", "", s_from_ns),
            number(run.time_scale),
            shown(session, run, "utilisation_measured", "", _per_cent),
            shown(session, run, "utilisation_modelled", "pace", _per_cent),
            shown(session, run, "utilisation_modelled", "n20", _per_cent),
            shown(session, run, "predicted_utilisation", "n20", _per_cent),
        ]
        for run in runs
    ]
    heads = ["head-block", "head-arm", "head-switches", "head-mean-load", "head-predicted-load"]
    heads += ["head-time-scale", "head-served", "head-pace", "head-at-20", "head-at-20-predicted"]
    parts = [
        say(language, "note-switches"),
        table(rows, heads, language),
        _ratios(session, runs, "work_time", "mean", language),
        _engines(session, runs, language, switched=True),
        say(language, "note-curve"),
        _curve(session, runs, language),
    ]
    return PARAGRAPHS.join(part for part in parts if part)


def _engines(session: Session, runs: Runs, language: str, *, switched: bool) -> Markdown:
    """What engines took to stop, start and load, beside their own words."""
    shares = [("utilisation_measured", ""), ("utilisation_modelled", "whole")] if switched else []
    waits = [("engine_wait", "mean")] if switched else []  # nobody was before a loader
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
        if run.tool == ENGINE
    ]
    if not rows:
        return Markdown()
    heads = ["head-block", "head-arm", "head-level", *(["head-wait"] if switched else [])]
    heads += ["head-start", "head-mean-load", "head-said"]
    heads += ["head-served", "head-whole"] if switched else []
    note = say(language, "note-engine-switches" if switched else "note-engine-loads")
    return PARAGRAPHS.join([note, table(rows, heads, language)])


def _curve(session: Session, runs: Runs, language: str) -> Markdown:
    arms = sorted({run.arm for run in runs})
    loads = {arm: _load_interval(session, [run for run in runs if run.arm == arm]) for arm in arms}
    rates = sorted({*CURVE_SHOWN, PUBLISHED_SWITCHES_PER_HOUR})
    rows = [[n, *(_point(n, *loads[arm], language) for arm in arms)] for n in rates]
    return markdown(rows, [say(language, "head-rate"), *arms])


def _load_interval(session: Session, runs: Runs) -> tuple[float | None, Interval | None]:
    """Mean load in modelled seconds over blocks, and its interval where there are enough."""
    found = []
    for run in runs:
        value = session.value(run, "work_time", "mean").value
        if value is None:
            return None, None
        found.append(s_from_ns(value) * run.time_scale)
    interval = log_interval(found)
    return (interval.estimate if interval else sum(found) / len(found)), interval


def _point(n: int, load_s: float | None, interval: Interval | None, language: str) -> str:
    if load_s is None:
        return ""
    if interval is None:
        return _share(n, load_s, language)
    # A slower load leaves less: the interval of the use is the other way round.
    ends = (interval.high, load_s, interval.low)
    low, at, high = (_share(n, one, language) for one in ends)
    if low == at == high == _no_room(language):
        return at
    return Markdown("{} [{}, {}]").format(at, low, high)


def _no_room(language: str) -> str:
    return say(language, "note-no-room", load_s=f"{SECONDS_PER_HOUR:.0f}")


def _share(n: int, load_s: float, language: str) -> str:
    try:
        return f"{_per_cent(utilisation(n, load_s)):.1f} %"
    except MetricError:
        return _no_room(language)


def _per_cent(share: float) -> float:
    return 100 * share
