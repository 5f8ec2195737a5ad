"""What a vendor says in place of a number, read in one place: a value, or the reason why none.

Tools write `N/A`, `[N/A]`, `[Not Supported]`, `ERR!`, `[GPU requires reset]`, `-`, an empty cell,
or the largest number of a field's width. None of these is 0, and none of them means idle.
"""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"^[+-]?\d{1,18}(?:\.\d{1,15})?$")
_SAID_NO = re.compile(
    r"^\W*(?:n/?a|none|null|not (?:supported|available|found)|unsupported|unknown(?! error))\b"
    r"|^-+$",
    re.IGNORECASE,
)
_SAID_DENIED = re.compile(r"permission", re.IGNORECASE)
# Drivers mark what they do not have with the largest number of its width (65535, 4294967295 and so
# on). No card comes near these limits: the largest draw 2 kW, hold 1 TiB and throttle below 120 C.
_MOST = {
    "_percent": 100,
    "_c": 200,
    "_millicelsius": 200_000,
    "_w": 20_000,
    "_mw": 20_000_000,
    "_uw": 20_000_000_000,
    "_bytes": 1 << 50,
}
_SHOWN = 60


def number(value: object) -> float | None:
    """A finite number from a number or its text; None for all else, booleans included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.match(text):
            return None
        return float(text) if "." in text else int(text)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else None


def reading(quantity: str, value: object, scale: int = 1) -> float | str:
    """A number that can be this quantity, times `scale`; or the reason why there is none."""
    found = number(value)
    if found is None:
        return why_not(value)
    if found < 0:
        # A server's temperature is never below zero; a negative size is an error code.
        return f"failed: {found:g} is negative"
    most = next((most for unit, most in _MOST.items() if quantity.endswith(unit)), 1 << 62)
    if found * scale > most:
        return f"failed: {found:g} is more than any card has"
    return found * scale


def why_not(value: object) -> str:
    """The reason of something that is no number."""
    if value is None:
        return "absent: not in this output"
    if not isinstance(value, str):
        return f"failed: {_short(str(value))!r} is no number"
    said = _short(value.strip().strip("[]"))
    if not said:
        return "absent: empty"
    if _SAID_NO.match(said):
        return f"absent: the tool says {said!r}"
    kind = "denied" if _SAID_DENIED.search(said) else "failed"
    return f"{kind}: the tool says {said!r}"


def _short(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]
