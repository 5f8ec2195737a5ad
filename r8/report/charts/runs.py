"""What the runs of a session did: time to first token request by request, and throughput."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.report.charts.draw import ARM_STYLES, WIDTH, Drawing, Scale, axis_below, axis_left, legend
from r8.units import s_from_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from r8.model import Run
    from r8.report.charts.draw import Say
    from r8.verdict.session import Session

_LEFT, _TOP, _ROW, _BOTTOM = 150.0, 58.0, 26.0, 48.0
# Above this many requests a row shows its percentiles instead of every one of them.
_DOTS_MAX = 200
_TTFT = """
    SELECT ttft_ns FROM ttft WHERE run_id = $run AND phase = $phase AND ttft_ns IS NOT NULL
    ORDER BY ttft_ns
"""
_TTFT_PERCENTILES = """
    SELECT unnest(quantile_disc(ttft_ns, list_transform(range(1, 100), lambda p: p / 100.0)))
    FROM ttft WHERE run_id = $run AND phase = $phase AND ttft_ns IS NOT NULL
"""


def arms_of(session: Session) -> list[str]:
    """Names of the arms in the order that gives each its style."""
    return sorted({run.arm for run in session.runs})


def ttft_chart(session: Session, level: int, say: Say, prefix: str) -> Markup:
    """Every cold request of a level on a line for its run, warm ones below as hollow marks."""
    arms = arms_of(session)
    runs = sorted(
        (run for run in session.runs if run.concurrency == level),
        key=lambda run: (run.scenario, run.arm, run.campaign_id, run.block),
    )
    rows = [(run, _ttft_s(session, run, "measure"), _ttft_s(session, run, "warm")) for run in runs]
    longest = max((value for _, cold, warm in rows for value in (*cold, *warm)), default=1.0)
    x = Scale(low=0, high=longest * 1.04, begin=_LEFT, end=WIDTH - 20)
    bottom = _TOP + _ROW * len(rows)
    drawing = Drawing(
        name=f"{prefix}ttft-c{level}",
        title=f"{say('chart-ttft')}, c{level}",
        about=say("chart-ttft-about"),
        height=bottom + _BOTTOM,
    )
    legend(drawing, arms, 14)
    drawing.text(0, 36, say("chart-ttft-legend"), "tick")
    axis_below(drawing, x, _TOP - 8, bottom, say("chart-ttft-axis"))
    for number, (run, cold, warm) in enumerate(rows):
        y = _TOP + _ROW * (number + 0.5)
        arm = arms.index(run.arm)
        drawing.text(_LEFT - 10, y + 4, f"{run.arm} b{run.block}", "row", "end")
        for value in warm:
            drawing.mark(x(value), y, arm, 3.4, "hollow")
        for value in cold:
            drawing.mark(x(value), y, arm, 3.4, "faint")
        p50 = session.value(run, "ttft", "p50").value
        if p50 is not None and p50 < float("inf"):
            at = x(s_from_ns(p50))
            drawing.line(at, y - 10, at, y + 10, f"median a{arm % ARM_STYLES}")
    return drawing.svg()


def _ttft_s(session: Session, run: Run, phase: str) -> list[float]:
    named = {"run": run.run_id, "phase": phase}
    ((count,),) = session.rows(
        "SELECT count(*) FROM ttft WHERE run_id = $run AND phase = $phase", named
    )
    query = _TTFT if count <= _DOTS_MAX else _TTFT_PERCENTILES
    return [s_from_ns(value) for (value,) in session.rows(query, named)]


def throughput_chart(session: Session, say: Say, prefix: str) -> Markup:
    """Output tokens a second against offered concurrency: a mark a run, a line through means."""
    arms = arms_of(session)
    levels = sorted({run.concurrency for run in session.runs})
    values = {run.run_id: session.value(run, "output_throughput", "").value for run in session.runs}
    most = max((value for value in values.values() if value is not None), default=1.0)
    height = 300.0
    y = Scale(low=0, high=most * 1.08, begin=height - _BOTTOM, end=_TOP)
    drawing = Drawing(
        name=f"{prefix}throughput",
        title=say("chart-throughput"),
        about=say("chart-throughput-about"),
        height=height,
    )
    legend(drawing, arms, 14)
    axis_left(drawing, y, 60, WIDTH - 20, say("head-output-tokens"))
    step = (WIDTH - 80) / len(levels)
    places = {level: 60 + step * (number + 0.5) for number, level in enumerate(levels)}
    for level, place in places.items():
        drawing.text(place, height - _BOTTOM + 16, f"c{level}", "tick", "middle")
    drawing.text(60 + (WIDTH - 80) / 2, height - 14, say("chart-concurrency"), "name", "middle")
    for number, arm in enumerate(arms):
        mine = [run for run in session.runs if run.arm == arm and values[run.run_id] is not None]
        _arm_throughput(drawing, mine, values, places, y, number, len(arms))
    return drawing.svg()


def _arm_throughput(  # one arm of the chart, its place and its style
    drawing: Drawing,
    runs: Sequence[Run],
    values: dict[str, float | None],
    places: dict[int, float],
    y: Scale,
    number: int,
    arms: int,
) -> None:
    shift = 22.0 * (number - (arms - 1) / 2)
    means = []
    for level, place in places.items():
        found = sorted(v for run in runs if run.concurrency == level and (v := values[run.run_id]))
        for value in found:
            drawing.mark(place + shift, y(value), number)
        if found:
            mean = sum(found) / len(found)
            means.append((place + shift, y(mean)))
            drawing.line(
                place + shift - 9,
                y(mean),
                place + shift + 9,
                y(mean),
                f"median a{number % ARM_STYLES}",
            )
            # Neighbours stand 22 apart and a number is wider: they take turns above and below.
            below = 20 if number % 2 else -11
            drawing.text(place + shift, y(mean) + below, f"{mean:.4g}", "tick halo", "middle")
    drawing.path(means, f"series a{number % ARM_STYLES}")
