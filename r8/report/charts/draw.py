"""Static SVG, the same to the byte for the same numbers: scales, axes, marks.

Colours are classes of the page's style sheet, so one drawing serves light, dark and print. What
tells two arms apart is never colour alone: each has its own lightness, dash and mark, and so the
drawing can be read in grey. Coordinates are rounded to a tenth before they are written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup

from r8.text import html, html_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    # The text of an entry of the catalogues, in the page's language.
    Say = Callable[..., str]

WIDTH = 680
# Styles there are for arms; a report of more arms repeats them, and each has its name beside it.
ARM_STYLES = 5
_WANTED_TICKS = 6
_LOG_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
# Bounds nearer than this factor get the even ticks of a linear axis: powers would be too few.
_NEAR = 4.0


def coordinate(value: float) -> str:
    """A coordinate as text: one decimal, no negative zero, no trailing zero."""
    text = f"{value:.1f}"
    text = text.removesuffix(".0")
    return "0" if text in {"-0", ""} else text


def label(value: float) -> str:
    """A number on an axis: up to four significant digits, thousands by blanks."""
    text = f"{value:.4g}"
    return f"{value:,.0f}".replace(",", " ") if "e" in text else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From values to a coordinate; `log` needs positive bounds."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The coordinate of a value; what lies outside is put on the edge."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round values between the bounds, about six of them."""
        return _log_ticks(self.low, self.high) if self.log else _ticks(self.low, self.high)


def _ticks(low: float, high: float) -> list[float]:
    span = high - low
    if span <= 0:
        return [low]
    raw = span / _WANTED_TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= raw)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    if high < _NEAR * low:
        return [one for one in _ticks(low, high) if one > 0]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [10.0**power * step for power in powers for step in _LOG_STEPS]
    inside = [one for one in found if low * (1 - 1e-9) <= one <= high * (1 + 1e-9)]
    if len(inside) <= _WANTED_TICKS + 2:
        return inside or [low, high]
    return [one for one in inside if math.isclose(math.log10(one) % 1, 0, abs_tol=1e-9)] or inside


@dataclass(slots=True, kw_only=True)
class Drawing:
    """One chart: `title` is read aloud and shown on pointing, `about` says what one sees."""

    name: str  # unique in the page, for the accessible title
    title: str
    about: str
    height: float
    width: float = WIDTH
    parts: list[str] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A straight line."""
        points = zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2), strict=True)
        where = " ".join(f'{key}="{coordinate(value)}"' for key, value in points)
        self.parts.append(f'<line {where} class="{style}"/>')

    def rect(self, x: float, y: float, width: float, height: float, style: str) -> None:
        """A filled box."""
        pairs = zip(
            ("x", "y", "width", "height"), (x, y, max(width, 0), max(height, 0)), strict=True
        )
        where = " ".join(f'{key}="{coordinate(value)}"' for key, value in pairs)
        self.parts.append(f'<rect {where} class="{style}"/>')

    def text(self, x: float, y: float, words: str, style: str = "", anchor: str = "start") -> None:
        """Words; `anchor` is start, middle or end."""
        place = f'x="{coordinate(x)}" y="{coordinate(y)}"'
        how = f' class="{style}"' if style else ""
        self.parts.append(f'<text {place} text-anchor="{anchor}"{how}>{html(words)}</text>')

    def path(
        self, points: Iterable[tuple[float, float]], style: str, *, closed: bool = False
    ) -> None:
        """Straight lines through points; nothing for fewer than two."""
        text = [f"{coordinate(x)} {coordinate(y)}" for x, y in points]
        if len(text) > 1:
            end = "Z" if closed else ""
            self.parts.append(f'<path d="M{"L".join(text)}{end}" class="{style}"/>')

    def mark(self, x: float, y: float, arm: int, size: float = 4.0, style: str = "mark") -> None:
        """The mark of an arm: each has a shape of its own."""
        shape = _MARKS[arm % ARM_STYLES]
        points = " ".join(
            f"{coordinate(x + dx * size)},{coordinate(y + dy * size)}" for dx, dy in shape
        )
        where = f'class="{style} a{arm % ARM_STYLES}"'
        if shape:
            self.parts.append(f'<polygon points="{points}" {where}/>')
            return
        centre = f'cx="{coordinate(x)}" cy="{coordinate(y)}" r="{coordinate(size)}"'
        self.parts.append(f"<circle {centre} {where}/>")

    def svg(self) -> Markup:
        """The element, to be put into a page: words and names may be a run's, styles are ours."""
        box = f"0 0 {coordinate(self.width)} {coordinate(self.height)}"
        name = html_id(self.name)
        head = f'<svg class="chart" viewBox="{box}" role="img" aria-labelledby="{name}-t {name}-d">'
        title = f'<title id="{name}-t">{html(self.title)}</title>'
        about = f'<desc id="{name}-d">{html(self.about)}</desc>'
        return Markup("\n".join([head, title + about, *self.parts, "</svg>"]))  # noqa: S704 - above


# Corners of each arm's mark around its centre; the first is a circle.
_MARKS: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((-1.1, -0.9), (1.1, -0.9), (0, 1.2)),
)


def axis_below(drawing: Drawing, scale: Scale, top: float, bottom: float, words: str) -> None:
    """Grid, ticks and the name of a horizontal axis."""
    for tick in scale.ticks():
        x = scale(tick)
        drawing.line(x, top, x, bottom, "grid")
        drawing.text(x, bottom + 15, label(tick), "tick", "middle")
    drawing.line(scale.begin, bottom, scale.end, bottom, "axis")
    drawing.text((scale.begin + scale.end) / 2, bottom + 33, words, "name", "middle")


def axis_left(drawing: Drawing, scale: Scale, left: float, right: float, words: str) -> None:
    """Grid and ticks of a vertical axis; its name stands above it, level."""
    for tick in scale.ticks():
        y = scale(tick)
        drawing.line(left, y, right, y, "grid")
        drawing.text(left - 6, y + 4, label(tick), "tick", "end")
    drawing.line(left, scale.begin, left, scale.end, "axis")
    drawing.text(left, min(scale.begin, scale.end) - 7, words, "name")


def legend(drawing: Drawing, arms: Sequence[str], y: float, x: float = 0.0) -> None:
    """Marks with the names of their arms, in one row."""
    for number, arm in enumerate(arms):
        drawing.line(x + 2, y - 4, x + 26, y - 4, f"series a{number % ARM_STYLES}")
        drawing.mark(x + 14, y - 4, number)
        drawing.text(x + 32, y, arm, "name")
        x += 52 + 7.2 * len(arm)
