"""What a printed number stands for: its value, its unit, and every value that prints like it.

`7.53` was rounded to 0.01, so it stands for 7.525 to 7.535. `16M` was rounded to a million. A
range `361-365` is printed for everything between its rounded ends. Where the text says about, `~`
or roughly, zeros before the point are not taken for digits: `~280` stands for 275 to 285.

Units are sizes in seconds, bytes and yuan. GB and GB/s are decimal here. Where a page's GB is
something else, the ledger says so figure by figure (`unit_base`), and the audit shows why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from r8.claims.arithmetic import PLAIN, Dimension, Enclosure
from r8.units import BYTES_PER_GB, BYTES_PER_GBIT

_NUMBER = re.compile(r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?([KMB](?![\w/]))?")
_MULTIPLIERS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9}
_APPROXIMATE = re.compile(r"~|about|roughly")
TEN = Fraction(10)

_PER_SECOND: Dimension = (-1, 0, 0)
BYTE: Dimension = (0, 1, 0)
_RATE: Dimension = (-1, 1, 0)


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit: what 1 of it is, and what it measures."""

    scale: Fraction
    dimension: Dimension


# Things that are counted one by one: a whole number of them was not rounded.
COUNTED = (
    *("nodes", "drives", "sessions", "tokens", "switches", "requests of 32", "of 7", "layers"),
    *("heads", "values", "files", "ranks", "ports", "parameters"),
)
UNITS: dict[str, Unit] = {
    **dict.fromkeys(("x", *COUNTED), Unit(Fraction(1), PLAIN)),
    # "% faster" leaves open whether time saved or speed gained; "% to 40 %" is a band's low end.
    **dict.fromkeys(("%", "% faster", "% to 40 %"), Unit(Fraction(1, 100), PLAIN)),
    "s": Unit(Fraction(1), (1, 0, 0)),
    "ms": Unit(Fraction(1, 1000), (1, 0, 0)),
    "h": Unit(Fraction(3600), (1, 0, 0)),
    "B": Unit(Fraction(1), BYTE),
    "GB": Unit(Fraction(BYTES_PER_GB), BYTE),
    "TB": Unit(Fraction(1000 * BYTES_PER_GB), BYTE),
    "GB/s": Unit(Fraction(BYTES_PER_GB), _RATE),
    "Gb/s": Unit(Fraction(BYTES_PER_GBIT), _RATE),
    "tok/s": Unit(Fraction(1), _PER_SECOND),
    "IO/s": Unit(Fraction(1), _PER_SECOND),
    "CNY": Unit(Fraction(1), (0, 0, 1)),
    "CNY/TB": Unit(Fraction(1, 1000 * BYTES_PER_GB), (0, -1, 1)),
}


@dataclass(frozen=True, slots=True)
class Printed:
    """One number of a printed text: its size without sign, and the step of its last digit."""

    value: Fraction
    step: Fraction


def printed_numbers(text: str) -> list[Printed]:
    """Every number of the text, in order."""
    about = _APPROXIMATE.search(text) is not None
    return [_printed(found, approximate=about) for found in _NUMBER.finditer(text)]


def printed_enclosure(
    text: str, value: Fraction, *, counted: bool = False
) -> tuple[Enclosure, Fraction] | None:
    """All values that print as `value` does in `text`, and the step of the last printed digit.

    A whole number that was counted or specified (24 drives, 100 Gb/s) is exact, unless the text
    says about. None when the text prints no such number, nor a range `a-b` around it.
    """
    numbers = printed_numbers(text)
    for one in numbers:
        if one.value == abs(value):
            if counted and one.step == 1 and not _APPROXIMATE.search(text):
                return Enclosure.exact(value), one.step
            return Enclosure.around(value, one.step / 2), one.step
    for low, high in pairwise(numbers):
        if low.value < value < high.value:
            ends = (low.value - low.step / 2, high.value + high.step / 2)
            return Enclosure(*ends), max(low.step, high.step)
    return None


def _printed(found: re.Match[str], *, approximate: bool) -> Printed:
    whole, decimals, suffix = found[1].replace(",", ""), found[2] or "", found[3] or ""
    unit = Fraction(_MULTIPLIERS[suffix])
    step = TEN ** -(len(decimals) - 1) if decimals else Fraction(1)
    if approximate and not decimals:
        step = TEN ** (len(whole) - len(whole.rstrip("0"))) if whole.strip("0") else step
    return Printed(value=Fraction(whole + decimals) * unit, step=step * unit)


def plain(value: Fraction | float, digits: int = 6) -> str:
    """A value as people write it: up to `digits` significant digits, no exponent below 1e15."""
    return f"{float(value):.{digits}g}" if abs(value) < 10**digits else f"{float(value):.0f}"
