"""What every GPU source is brought to: the same few quantities, each a number or a reason.

Vendors' pages mix numbers, numbers as text, dictionaries with a unit, `N/A`, whole blocks that are
the word `N/A`, and keys that are simply not there. All of that ends here as a value or as a reason;
an absent reading is never 0.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

# Quantities of a card. Percentages and watts are as the vendor rounds them.
QUANTITIES = (
    "vram_used_bytes",
    "vram_total_bytes",
    "gpu_busy_percent",
    "mem_busy_percent",
    "power_w",
    "temp_junction_c",
    "temp_mem_c",
)
_NUMBER = re.compile(r"^[+-]?\d{1,18}(?:\.\d{1,9})?$")
_ABSENT = "absent: not in this output"
_SAID_NO = re.compile(r"^(?:\W*(?:n/?a|none|not supported|unknown)\b|-+$)", re.IGNORECASE)
# A larger number than this is a garbled one: 2^62 bytes of memory, or watts, are nobody's.
_SANE_MAX = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU or partition as one source sees it; index and name are the source's own."""

    device: str
    values: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)  # further numbers, by the source's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One parsed output: cards, or the reason why there is none; `notes` are warnings in it."""

    cards: tuple[Card, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """For the record."""
        cards = [
            {"device": c.device, "values": c.values, "reasons": c.reasons, "extra": c.extra}
            for c in self.cards
        ]
        return {"cards": cards, "reason": self.reason, "notes": list(self.notes)}


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
        return _ABSENT
    shown = " ".join(str(value).split())[:60]
    if isinstance(value, str) and _SAID_NO.match(value.strip()):
        return f"absent: the tool says {shown!r}"
    return f"failed: {shown!r} is no number"


class CardBuilder:
    """Collects the quantities of one card; what was never given is absent at the end."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._values: dict[str, float] = {}
        self._reasons: dict[str, str] = {}
        self._extra: dict[str, float] = {}

    def take(self, quantity: str, value: object, scale: float = 1.0) -> None:
        """Set a quantity from a raw value; the first number wins, a later one never erases it."""
        found = number(value)
        if quantity in self._values:
            return
        if found is None or found < 0:
            # A temperature below zero is no server's; a negative size is a driver's error code.
            reason = why_not(value) if found is None else f"failed: {found:g} is negative"
            self._reasons.setdefault(quantity, reason)
            return
        self._values[quantity] = found * scale
        self._reasons.pop(quantity, None)

    def also(self, name: str, value: object) -> None:
        """Keep a further number under the source's own name."""
        found = number(value)
        if found is not None:
            self._extra[name] = found

    def card(self) -> Card:
        """The card; every quantity is a value or a reason."""
        for quantity in QUANTITIES:
            if quantity not in self._values:
                self._reasons.setdefault(quantity, _ABSENT)
        return Card(
            device=self._device, values=self._values, reasons=self._reasons, extra=self._extra
        )


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
