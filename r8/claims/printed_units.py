"""Every unit a published figure may carry: its size in seconds, bytes and yuan.

GB and GB/s are decimal here. Where a page's GB is something else, the ledger says so figure by
figure (`unit_base`), and the audit shows why.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from r8.claims.arithmetic import PLAIN, Dimension
from r8.units import BYTES_PER_GB

_SECOND: Dimension = (1, 0, 0)
_PER_SECOND: Dimension = (-1, 0, 0)
_BYTE: Dimension = (0, 1, 0)
_RATE: Dimension = (-1, 1, 0)
BITS_PER_BYTE = 8


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit: what 1 of it is, and whether a share of it is printed in per cent."""

    scale: Fraction
    dimension: Dimension


_ONE = Unit(Fraction(1), PLAIN)
_PER_CENT = Unit(Fraction(1, 100), PLAIN)
# Things that are counted one by one: a whole number of them was not rounded.
COUNTED = (
    "nodes",
    "drives",
    "sessions",
    "tokens",
    "switches",
    "requests of 32",
    "of 7",
    "layers",
    "heads",
    "values",
    "files",
    "ranks",
    "ports",
    "parameters",
)
UNITS: dict[str, Unit] = {
    **dict.fromkeys(("x", *COUNTED), _ONE),
    # "% faster" leaves open whether time saved or speed gained; "% to 40 %" is a band's low end.
    **dict.fromkeys(("%", "% faster", "% to 40 %"), _PER_CENT),
    "s": Unit(Fraction(1), _SECOND),
    "ms": Unit(Fraction(1, 1000), _SECOND),
    "h": Unit(Fraction(3600), _SECOND),
    "B": Unit(Fraction(1), _BYTE),
    "GB": Unit(Fraction(BYTES_PER_GB), _BYTE),
    "TB": Unit(Fraction(1000 * BYTES_PER_GB), _BYTE),
    "GB/s": Unit(Fraction(BYTES_PER_GB), _RATE),
    "Gb/s": Unit(Fraction(BYTES_PER_GB, BITS_PER_BYTE), _RATE),
    "tok/s": Unit(Fraction(1), _PER_SECOND),
    "IO/s": Unit(Fraction(1), _PER_SECOND),
    "CNY": Unit(Fraction(1), (0, 0, 1)),
    "CNY/TB": Unit(Fraction(1, 1000 * BYTES_PER_GB), (0, -1, 1)),
}
