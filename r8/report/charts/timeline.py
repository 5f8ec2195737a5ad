"""One run as a person can watch it: the device, the network, the GPU, and who waited for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.report.charts.draw import WIDTH, Drawing, Scale, axis_below, axis_left, label
from r8.units import NS_PER_S, mb_per_s, s_from_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from r8.model import Run
    from r8.report.charts.draw import Say
    from r8.verdict.session import Session

_LEFT, _RIGHT, _PANEL, _GAP, _TOP, _BOTTOM = 64.0, WIDTH - 16, 92.0, 34.0, 52.0, 46.0
# Room the name of a band needs, in drawing units.
_PHASE_NAME = 70.0
# Seconds shown before the cold read begins: the drop and the rewarming read end there.
_BEFORE_S = 4.0
_AFTER_S = 1.0
# A drawing has no more columns than this; a longer run is averaged over whole sample intervals.
_COLUMNS = 600
_DEVICE = "FROM device_columns($run, $device, $low, $high, $column) ORDER BY begin_ns"
_NIC = "FROM nic_columns($run, $low, $high, $column) ORDER BY begin_ns"
_POINTS = """
    SELECT begin_ns, value FROM timeline
    WHERE run_id = $run AND series = $series AND ($device IS NULL OR device = $device)
      AND begin_ns BETWEEN $low AND $high ORDER BY begin_ns
"""
_GPU = """
    SELECT begin_ns, max(value) FROM timeline WHERE run_id = $run AND series = 'gpu_busy'
      AND begin_ns BETWEEN $low AND $high GROUP BY begin_ns ORDER BY begin_ns
"""
_PHASES = """
    SELECT phase, begin_ns, end_ns FROM timeline_phases
    WHERE run_id = $run AND phase IN ('drop', 'rewarm', 'measure', 'warm') AND end_ns IS NOT NULL
    ORDER BY begin_ns
"""

Steps = list[tuple[float, float, float]]  # begin s, end s, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The seconds every timeline of a session shows, since each run's measure_begin."""

    low_s: float
    high_s: float


def window_of(session: Session) -> Window:
    """From shortly before the cold reads to the end of the longest warm read."""
    (last,) = session.connection.execute(
        "SELECT max(end_ns) FROM timeline_phases WHERE phase IN ('measure', 'warm')"
    ).fetchall()[0]
    return Window(low_s=-_BEFORE_S, high_s=s_from_ns(last or NS_PER_S) + _AFTER_S)


def timeline_chart(session: Session, run: Run, window: Window, say: Say, prefix: str) -> Markup:
    """Device, network and GPU where they were recorded, then requests; one axis of seconds."""
    named = _bounds(run, window)
    device = _rates(session, _DEVICE, {**named, "device": run.kv_device})
    network = _rates(session, _NIC, named)
    gpu = _points(session, _GPU, {key: named[key] for key in ("run", "low", "high")})
    panels = 2 + bool(network) + bool(gpu)
    bottom = _TOP + panels * _PANEL + (panels - 1) * _GAP
    x = Scale(low=window.low_s, high=window.high_s, begin=_LEFT, end=_RIGHT)
    drawing = Drawing(
        name=f"{prefix}time-{run.run_id}",
        title=say("chart-timeline", arm=run.arm, level=f"c{run.concurrency}", block=run.block),
        about=say("chart-timeline-about"),
        height=bottom + _BOTTOM,
    )
    _shade_phases(drawing, session, run, x, bottom, say)
    top = _TOP
    ceiling = session.value(run, "ceiling_bandwidth", "", phase="calibration").value
    limit = 0.0 if ceiling is None else mb_per_s(ceiling)
    words = f"{run.kv_device}, MB/s" if device else f"{run.kv_device}: {say('chart-no-samples')}"
    y = _rate_panel(drawing, device, x, (top, limit), "area", words)
    if limit:
        drawing.line(_LEFT, y(limit), _RIGHT, y(limit), "ceiling")
        words = f"{say('chart-ceiling')} {label(round(limit, 1))}"
        drawing.text(_RIGHT, top - 7, words, "tick", "end")
    if network:
        top += _PANEL + _GAP
        _rate_panel(drawing, network, x, (top, 0.0), "area net", say("chart-network"))
    if gpu:
        top += _PANEL + _GAP
        _gpu_panel(drawing, gpu, x, top, say)
    _request_panel(drawing, session, run, x, top + _PANEL + _GAP, named, say)
    axis_below(drawing, x, bottom, bottom, say("chart-seconds"))
    return drawing.svg()


def not_recorded(session: Session, run: Run) -> list[str]:
    """Series a run does not hold, to be said beside its timeline: absent is not zero."""
    found = {
        probe
        for (probe,) in session.rows(
            "SELECT DISTINCT probe FROM probes WHERE run_id = $run AND value IS NOT NULL",
            {"run": run.run_id},
        )
    }
    return [name for name in ("nic", "gpu") if name not in found]


def _bounds(run: Run, window: Window) -> dict[str, object]:
    low, high = int(window.low_s * NS_PER_S), int(window.high_s * NS_PER_S)
    return {"run": run.run_id, "low": low, "high": high, "column": max(1, (high - low) // _COLUMNS)}


def _rates(session: Session, query: str, named: dict[str, object]) -> Steps:
    rows = session.rows(query, named)
    return [(s_from_ns(begin), s_from_ns(end), mb_per_s(rate)) for begin, end, rate in rows]


def _points(session: Session, query: str, named: dict[str, object]) -> list[tuple[float, float]]:
    rows = session.rows(query, named)
    return [(s_from_ns(at), value) for at, value in rows]


def _shade_phases(
    drawing: Drawing, session: Session, run: Run, x: Scale, bottom: float, say: Say
) -> None:
    names = {"measure": "chart-cold", "warm": "chart-warm"}
    rows = session.rows(_PHASES, {"run": run.run_id})
    free = _LEFT  # where the next name may begin: bands can be narrower than their names
    for phase, begin_ns, end_ns in rows:
        begin, end = x(s_from_ns(begin_ns)), x(s_from_ns(end_ns))
        if phase not in names or end <= begin:
            continue
        drawing.rect(begin, _TOP - 20, end - begin, bottom - _TOP + 20, f"phase {phase}")
        words = say(names[phase])
        if max(begin, free) + _PHASE_NAME <= _RIGHT:
            at = max(begin + 4, free)
            drawing.text(at, _TOP - 24, words, "phase-name")
            free = at + _PHASE_NAME
        else:  # the band is at the edge: its name ends where the band ends
            drawing.text(end, _TOP - 24, words, "phase-name", "end")


def _rate_panel(
    drawing: Drawing, steps: Steps, x: Scale, place: tuple[float, float], style: str, words: str
) -> Scale:
    """Rates as an area; `place` is the panel's top and the least its axis must reach."""
    top, least = place
    bottom = top + _PANEL
    most = max([value for _, _, value in steps] + [least]) or 1.0
    y = Scale(low=0, high=most * 1.08, begin=bottom, end=top)
    axis_left(drawing, y, _LEFT, _RIGHT, words)
    outline: list[tuple[float, float]] = []
    for begin, end, value in steps:
        outline += [(x(begin), y(value)), (x(end), y(value))]
    if outline:
        closed = [(outline[0][0], bottom), *outline, (outline[-1][0], bottom)]
        drawing.path(closed, style, closed=True)
    return y


def _gpu_panel(
    drawing: Drawing, points: Sequence[tuple[float, float]], x: Scale, top: float, say: Say
) -> None:
    y = Scale(low=0, high=100, begin=top + _PANEL, end=top)
    axis_left(drawing, y, _LEFT, _RIGHT, say("chart-gpu"))
    drawing.path([(x(at), y(value)) for at, value in points], "series a0")


def _request_panel(
    drawing: Drawing,
    session: Session,
    run: Run,
    x: Scale,
    top: float,
    named: dict[str, object],
    say: Say,
) -> None:
    bottom = top + _PANEL
    bounds = {key: named[key] for key in ("run", "low", "high")}
    flight = _points(session, _POINTS, {**bounds, "series": "in_flight", "device": None})
    firsts = {
        phase: _points(session, _POINTS, {**bounds, "series": "first_tokens", "device": phase})
        for phase in ("measure", "warm")
    }
    most = max([value for _, value in flight] + [float(run.concurrency)])
    y = Scale(low=0, high=most * 1.1, begin=bottom, end=top)
    words = say("chart-requests")
    axis_left(drawing, y, _LEFT, _RIGHT, words)
    drawing.path(_staircase(flight, x, y), "flight")
    for points in firsts.values():
        if not points:
            continue
        drawing.path(_staircase([(points[0][0], 0.0), *points], x, y), "firsts")
        for at, value in _thinned(points):
            drawing.mark(x(at), y(value), 3, 2.6, "first")


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    step = -(-len(points) // _COLUMNS)
    return points[::step] if step else []


def _staircase(
    points: Sequence[tuple[float, float]], x: Scale, y: Scale
) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    before = 0.0
    for at, value in points:
        found += [(x(at), y(before)), (x(at), y(value))]
        before = value
    return found
