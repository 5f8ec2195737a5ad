"""The cards of a host, each once, from every source that sees them.

Sources of one vendor see the same cards. The first that shows any decides how many devices there
are; a quantity it has no number for is filled by the next source that has one for the same PCI
address, and a card in a slot it does not know is added. Cards named by a number are never joined:
numbers of two sources do not agree, and they shift when a card is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .address import slot_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .card import Card, Page
    from .source import Library, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One card, and the sources its quantities are from."""

    source: str
    card: Card


def vendor_of(source: Library | Tool) -> str:
    """The vendor; a source that names none is alone."""
    return source.vendor or source.name


def seen(pages: Iterable[tuple[Library | Tool, Page]]) -> list[Seen]:
    """Every card of these pages once; pages come in the order of preference."""
    groups: dict[str, list[tuple[str, Page]]] = {}
    for source, page in pages:
        if page.cards:
            groups.setdefault(vendor_of(source), []).append((source.name, page))
    return [one for group in groups.values() for one in _of_vendor(group)]


def _of_vendor(pages: Sequence[tuple[str, Page]]) -> list[Seen]:
    # A page on which every card is lost decides nothing while another source reads them.
    ordered = sorted(pages, key=lambda one: not any(card.values for card in one[1].cards))
    found: dict[str, Seen] = {}
    for name, page in ordered:
        slots = {slot_of(device) for device in found}
        for card in page.cards:
            if card.device in found and slot_of(card.device):
                found[card.device] = _filled(found[card.device], name, card)
            elif not found or name == ordered[0][0] or _is_new(card, slots):
                found.setdefault(card.device, Seen(source=name, card=card))
    return list(found.values())


def _is_new(card: Card, slots: set[str | None]) -> bool:
    slot = slot_of(card.device)
    return slot is not None and None not in slots and slot not in slots


def _filled(one: Seen, name: str, other: Card) -> Seen:
    """The card with the numbers of another source for what it has only reasons for."""
    more = {key: value for key, value in other.values.items() if key in one.card.reasons}
    if not more:
        return one
    reasons = {key: why for key, why in one.card.reasons.items() if key not in more}
    card = replace(one.card, values=one.card.values | more, reasons=reasons)
    return Seen(source=f"{one.source}+{name}", card=card)
