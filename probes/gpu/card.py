"""The shape every GPU source is brought to: cards, whose quantities are each a number or a reason.

Vendors' pages mix numbers, numbers as text, dictionaries with a unit, `N/A`, whole blocks that are
the word `N/A`, and keys that are not there. All of that ends here as a value or as a reason; an
absent quantity is never 0.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

MIB = 1 << 20
EMPTY = "absent: empty output"
_NUMBER = re.compile(r"^[+-]?\d{1,18}(?:\.\d{1,9})?$")
_SAID_NO = re.compile(r"^(?:\W*(?:n/?a|none|not supported|unknown)\b|-+$)", re.IGNORECASE)
# A larger number than this is garbled: nothing has 2^62 bytes of memory or draws so many watts.
_SANE_MAX = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU or partition as one source sees it. `device` is the source's own name for it."""

    device: str
    values: dict[str, float] = field(default_factory=dict)  # by quantity, the unit as suffix
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What one look at a source gave: cards, or the reason why there is none."""

    cards: tuple[Card, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()  # warnings that stood around it


def number(value: object) -> float | None:
    """A finite number from a number or its text; None for all else, booleans included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        found = float(value) if abs(value) <= _SANE_MAX else math.nan
    elif isinstance(value, str) and _NUMBER.match(value.strip()):
        found = float(value.strip())
    else:
        return None
    return found if math.isfinite(found) and abs(found) <= _SANE_MAX else None


def why_not(value: object) -> str:
    """The reason of something that is no number."""
    if value is None:
        return "absent: not in this output"
    shown = " ".join(str(value).split())[:60]
    if isinstance(value, str) and _SAID_NO.match(value.strip()):
        return f"absent: the tool says {shown!r}"
    return f"failed: {shown!r} is no number"


class CardBuilder:
    """Collects the quantities of one card."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._values: dict[str, float] = {}
        self._reasons: dict[str, str] = {}

    def take(self, quantity: str, value: object, scale: float = 1.0) -> None:
        """Set a quantity from a raw value; the first number wins, a later one never erases it."""
        if quantity in self._values:
            return
        found = number(value)
        if found is None or found < 0:
            # A server's temperature is never below zero; a negative size is an error code.
            reason = why_not(value) if found is None else f"failed: {found:g} is negative"
            self._reasons.setdefault(quantity, reason)
            return
        self._values[quantity] = found * scale
        self._reasons.pop(quantity, None)

    def card(self) -> Card:
        """The card with what was taken."""
        return Card(device=self._device, values=self._values, reasons=self._reasons)


def json_documents(text: str) -> tuple[list[Any], list[str]]:
    """Every JSON document that starts at the first column, and the lines that are none.

    Tools print warnings, group hints and banners before, between and after their JSON.
    """
    documents: list[Any] = []
    words: list[str] = []
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        if text[position] in "{[":
            try:
                document, after = decoder.raw_decode(text, position)
            except (ValueError, RecursionError):
                pass
            else:
                documents.append(document)
                position = after
                continue
        line = text[position:end].strip()
        if line:
            words.append(line[:200])
        position = end + 1
    return documents, words


def whole_lines(text: str) -> list[str]:
    """Lines ended by a newline; what stands behind the last newline may be a cut number."""
    return text.split("\n")[:-1]


def no_cards(text: str, what: str) -> str:
    """The reason of an output in which `what` was looked for and not found."""
    if not text.strip():
        return EMPTY
    begin = text.strip().splitlines()[0][:80]
    return f"absent: no {what} in this output, which begins {begin!r}"
