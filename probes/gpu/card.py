"""The shape every GPU source is brought to: cards, whose quantities are each a number or a reason.

Vendors' pages mix numbers, numbers as text, dictionaries with a unit, `N/A`, whole blocks that are
the word `N/A`, and keys that are not there. All of that ends here as a value or as a reason; an
absent quantity is never 0.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .vendor_number import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MIB = 1 << 20
EMPTY = "absent: empty output"
USED, TOTAL = "vram_used_bytes", "vram_total_bytes"
# No accelerator that holds a model has so little: of unified memory it is the carve-out, 512 MiB on
# Strix Halo and 0 on MI300A, and says nothing of what is in use.
CARVE_OUT_BYTES = 1 << 30
UNIFIED = "it uses the host's memory (unified)"


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


def is_unified(card: Card) -> bool:
    """Whether a card's memory is the host's, as far as its source tells."""
    return UNIFIED in card.reasons.get(TOTAL, "")


def lost_card(device: str, quantities: Iterable[str], reason: str) -> Card:
    """A card that is known and not read: each of its quantities has the one reason."""
    return Card(device=device, reasons=dict.fromkeys(quantities, reason))


class CardBuilder:
    """Collects the quantities of one card."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._values: dict[str, float] = {}
        self._reasons: dict[str, str] = {}

    def take(self, quantity: str, value: object, scale: int = 1) -> None:
        """Set a quantity from a raw value; the first number wins, a later one never erases it."""
        if quantity in self._values:
            return
        found = reading(quantity, value, scale)
        if isinstance(found, str):
            self._reasons.setdefault(quantity, found)
            return
        self._values[quantity] = found
        self._reasons.pop(quantity, None)

    def refuse(self, quantity: str, reason: str) -> None:
        """Set the reason of a quantity that could not be asked for."""
        if quantity not in self._values:
            self._reasons[quantity] = reason

    def card(self) -> Card:
        """The card with what was taken; of unified memory both sizes are absent."""
        total = self._values.get(TOTAL)
        if total is not None and total <= CARVE_OUT_BYTES:
            reason = f"absent: {total:.0f} bytes of its own, {UNIFIED}"
            for quantity in (USED, TOTAL):
                self._values.pop(quantity, None)
                self._reasons[quantity] = reason
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


def csv_rows(lines: Sequence[str]) -> list[dict[str, str] | list[str]]:
    """Rows below a heading, cells by the heading's names; a row of another length as it is.

    A torn or garbled row would put numbers under other names; the card it speaks of is still there.
    """
    try:
        rows = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error:
        return []
    if not rows:
        return []
    names = [name.strip() for name in rows[0]]
    return [
        dict(zip(names, row, strict=True)) if len(row) == len(names) else row
        for row in rows[1:]
        if any(cell.strip() for cell in row)
    ]
