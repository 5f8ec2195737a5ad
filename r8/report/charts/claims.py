"""Published against measured: one row a claim, the stated value at 1, the interval beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.model import Outcome
from r8.report.charts.draw import WIDTH, Drawing, Scale, axis_below
from r8.verdict.numbers import claimed_ratio, limits_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from r8.model import Verdict
    from r8.report.charts.draw import Say

_LEFT, _TOP, _ROW, _BOTTOM = 250.0, 44.0, 34.0, 48.0
# Room around the extremes, on the logarithmic axis.
_MARGIN = 1.12
_LEAST, _MOST = 0.8, 1.25
_STYLE = {
    Outcome.REPRODUCED: "good",
    Outcome.DEVIATES: "bad",
    Outcome.INCONCLUSIVE: "open",
}
_NAME_CHARS = 36


def claims_chart(verdicts: Sequence[Verdict], say: Say, prefix: str) -> Markup:
    """The chart of every claim; a claim without a number says in words what it came to."""
    ends = [_LEAST, _MOST]
    for one in verdicts:
        low, high = limits_of(one.claim)
        stated = claimed_ratio(one.claim, one.claim.low)
        ends += [low / stated, *([] if high is None else [high / stated])]
        ends += [value / stated for value in (one.low, one.estimate, one.high) if value]
    # A difference may be allowed down to nothing: that end lies on the edge of a logarithmic axis.
    ends = [end for end in ends if end > 0]
    x = Scale(
        low=min(ends) / _MARGIN, high=max(ends) * _MARGIN, begin=_LEFT, end=WIDTH - 20, log=True
    )
    bottom = _TOP + _ROW * len(verdicts)
    drawing = Drawing(
        name=f"{prefix}claims",
        title=say("chart-claims"),
        about=say("chart-claims-about"),
        height=bottom + _BOTTOM,
    )
    axis_below(drawing, x, _TOP - 8, bottom, say("chart-log-axis"))
    drawing.line(x(1), _TOP - 8, x(1), bottom, "one")
    drawing.text(x(1), _TOP - 14, say("chart-as-stated"), "tick", "middle")
    for number, verdict in enumerate(verdicts):
        _row(drawing, verdict, x, _TOP + _ROW * (number + 0.5), say)
    return drawing.svg()


def _row(drawing: Drawing, verdict: Verdict, x: Scale, y: float, say: Say) -> None:
    claim = verdict.claim
    name = claim.claim_id if len(claim.claim_id) <= _NAME_CHARS else claim.claim_id[:34] + "\u2026"
    drawing.text(0, y - 2, name, "row")
    printed = claim.as_printed if len(claim.as_printed) <= _NAME_CHARS else claim.claim_id
    drawing.text(
        0, y + 11, printed if printed != claim.claim_id else say("chart-own-claim"), "tick"
    )
    low, high = limits_of(claim)
    stated = claimed_ratio(claim, claim.low)
    right = x.end if high is None else x(high / stated)
    drawing.rect(x(low / stated), y - 8, right - x(low / stated), 16, "allowed")
    if verdict.estimate is None:
        drawing.text(x.begin + 6, y + 4, say(f"outcome-{verdict.outcome}"), "tick halo")
        return
    style = _STYLE.get(verdict.outcome, "open")
    if verdict.low is not None and verdict.high is not None:
        begin, end = x(verdict.low / stated), x(verdict.high / stated)
        drawing.line(begin, y, end, y, f"interval {style}")
        for edge in (begin, end):
            drawing.line(edge, y - 5, edge, y + 5, f"interval {style}")
    drawing.mark(x(verdict.estimate / stated), y, 0, 4.5, f"dot {style}")
    drawing.text(x.end, y - 10, say(f"outcome-{verdict.outcome}"), "tick halo", "end")
