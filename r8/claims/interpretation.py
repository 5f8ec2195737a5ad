"""What a printed comparison can mean: interpretations of "faster", numbers two figures imply.

"16 % faster" is said of a time that shrank to 0.84 of it, and of a speed that grew to 1.16 of it;
the page does not say which. A claim judges one interpretation and is labelled with it. Where a page
prints two levels and no ratio, a claim may be about the ratio they imply: it then names how it was
derived from its figures, and is held to that number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from r8.claims.ledger import Ledger

FASTER = "% faster"
# Ratio of the slower arm's time to the faster one's that a printed per cent stands for.
INTERPRETATIONS: dict[str, Callable[[float], float]] = {
    "time saved": lambda per_cent: 1 / (1 - per_cent / 100),
    "speed-up": lambda per_cent: 1 + per_cent / 100,
}
# Of two printed per cents of use, in the order the claim cites them: (after, before).
DERIVATIONS: dict[str, Callable[[float, float], float]] = {
    "ratio": lambda after, before: after / before,
    # U = 1 - n t / 3600: the load times are as what is left of 100 %, whatever n is.
    "inverted load times": lambda after, before: (100 - before) / (100 - after),
}
# A derived number is written with four decimals.
DERIVED_TOLERANCE = 5e-5


def interpreted(interpretation: str, value: float) -> float:
    """The ratio of times a printed "faster" means, in one of its interpretations."""
    return INTERPRETATIONS[interpretation](value)


def derived_fault(
    derivation: str, low: float, figure_ids: Sequence[str], ledger: Ledger
) -> str | None:
    """Why a derived claim is not what its figures imply; None when it is."""
    if derivation not in DERIVATIONS or len(figure_ids) != len(("after", "before")):
        return f"no derivation {derivation!r} of {len(figure_ids)} figures"
    after, before = (ledger.figures[one] for one in figure_ids)
    if {after.unit, before.unit} != {"%"} or after.value is None or before.value is None:
        return f"a derivation of {after.unit} and {before.unit}, not of two printed per cents"
    implied = DERIVATIONS[derivation](float(after.value), float(before.value))
    if abs(low - implied) > DERIVED_TOLERANCE:
        return f"{low} is not the {derivation} of its figures, {implied:.4f}"
    return None
