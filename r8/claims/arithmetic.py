"""Interval arithmetic over what was printed: exact, with units.

A printed 7.53 s stands for any true value that rounds to it, so it is the enclosure 7.525 to
7.535 s. Arithmetic on enclosures gives every value the printed inputs allow and never less: a
derived figure that lies outside is off for every reading of its inputs. A figure that stands in a
formula twice makes the enclosure wider, never narrower. Ends are `Fraction`: no rounding of ours is
added to the rounding of the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


class UndefinedError(ArithmeticError):
    """The operation has no answer: a division by something that may be zero, or mixed units."""


@dataclass(frozen=True, slots=True)
class Enclosure:
    """All values between two ends, both included."""

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        """Refuse ends in the wrong order."""
        if self.low > self.high:
            raise ValueError(f"enclosure from {self.low} down to {self.high}")

    @classmethod
    def exact(cls, value: Fraction | int) -> Enclosure:
        """One value, known without rounding."""
        return cls(Fraction(value), Fraction(value))

    @classmethod
    def around(cls, value: Fraction, half: Fraction) -> Enclosure:
        """`value` give or take `half`."""
        return cls(value - half, value + half)

    @property
    def middle(self) -> Fraction:
        """The value half way between the ends."""
        return (self.low + self.high) / 2

    def __add__(self, other: Enclosure) -> Enclosure:
        return Enclosure(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Enclosure) -> Enclosure:
        return Enclosure(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Enclosure) -> Enclosure:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Enclosure(min(ends), max(ends))

    def __truediv__(self, other: Enclosure) -> Enclosure:
        if other.low <= 0 <= other.high:
            raise UndefinedError("division by something that may be zero")
        return self * Enclosure(1 / other.high, 1 / other.low)

    def scaled(self, factor: Fraction) -> Enclosure:
        """Both ends times `factor`."""
        return self * Enclosure.exact(factor)

    def meets(self, other: Enclosure) -> bool:
        """Whether some value lies in both."""
        return self.low <= other.high and other.low <= self.high

    def gap_to(self, other: Enclosure) -> Fraction:
        """How far `other` lies above (positive) or below (negative) this one; 0 when they meet."""
        if self.meets(other):
            return Fraction(0)
        return other.low - self.high if other.low > self.high else other.high - self.low


# Exponents of second, byte and yuan. Counts (tokens, drives, requests) have no dimension.
Dimension = tuple[int, int, int]
PLAIN: Dimension = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Quantity:
    """An enclosure in seconds, bytes and yuan; dimension None where an input has no unit."""

    enclosure: Enclosure
    dimension: Dimension | None

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.enclosure + other.enclosure, _common(self, other))

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.enclosure - other.enclosure, _common(self, other))

    def __mul__(self, other: Quantity) -> Quantity:
        return Quantity(self.enclosure * other.enclosure, _combined(self, other, 1))

    def __truediv__(self, other: Quantity) -> Quantity:
        return Quantity(self.enclosure / other.enclosure, _combined(self, other, -1))


def extreme(name: str, quantities: list[Quantity]) -> Quantity:
    """`min`, `max` or `mean` of quantities of one dimension."""
    first = quantities[0]
    dimension = first.dimension
    for other in quantities[1:]:
        dimension = _common(Quantity(first.enclosure, dimension), other)
    lows = [one.enclosure.low for one in quantities]
    highs = [one.enclosure.high for one in quantities]
    if name == "mean":
        ends = (sum(lows, Fraction(0)) / len(lows), sum(highs, Fraction(0)) / len(highs))
    else:
        pick = min if name == "min" else max
        ends = (pick(lows), pick(highs))
    return Quantity(Enclosure(*ends), dimension)


def _common(one: Quantity, other: Quantity) -> Dimension | None:
    if one.dimension is None or other.dimension is None:
        return None
    if one.dimension != other.dimension:
        names = [dimension_name(dimension) for dimension in (one.dimension, other.dimension)]
        raise UndefinedError(f"unit mismatch: {' with '.join(names)}")
    return one.dimension


def _combined(one: Quantity, other: Quantity, sign: int) -> Dimension | None:
    if one.dimension is None or other.dimension is None:
        return None
    (a, b, c), (d, e, f) = one.dimension, other.dimension
    return (a + sign * d, b + sign * e, c + sign * f)


def dimension_name(dimension: Dimension) -> str:
    """A dimension in words, for example `byte/second`."""
    names = ("second", "byte", "yuan")
    above = [_power(n, e) for n, e in zip(names, dimension, strict=True) if e > 0]
    below = [_power(n, -e) for n, e in zip(names, dimension, strict=True) if e < 0]
    text = "*".join(above) or "1"
    return "a plain number" if dimension == PLAIN else "/".join([text, *below])


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"
