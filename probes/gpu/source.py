"""What a GPU source declares: a `Library` is read in this process, a `Tool` is a vendor's command.

Quantities have the same names whatever the source: `vram_used_bytes`, `vram_total_bytes`,
`gpu_busy_percent`, `mem_busy_percent`, `power_w`, `temp_junction_c`, `temp_mem_c`. A source that
gives an integer in another unit says so in the name, as in `power_mw`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..samples import Sample, samples_of
from .card import Card, Page, lost_card
from .vendor_number import why_not

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

UNLISTED = "absent: its tool knows this card and gave nothing of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Cheap enough for every tick. `open` takes the sysfs root and gives what reads the cards."""

    name: str
    open: Callable[[Path], Callable[[], Page]]
    yields: tuple[str, ...]  # the quantities it may give
    vendor: str = ""  # sources of one vendor see the same cards


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """A further command that says at which PCI address each card of a tool's own numbers is."""

    command: tuple[str, ...]
    parse: Callable[[str], dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A command that prints its cards; a tenth of a second of CPU and more each time."""

    name: str
    command: tuple[str, ...]
    parse: Callable[[str], Page]
    yields: tuple[str, ...]  # the quantities its page should hold; a missing one gets a reason
    vendor: str = ""
    names: Names | None = None
    # The command of one card by its number, where one lost card silences the page of all.
    each: Callable[[int], tuple[str, ...]] | None = None
    # Further pages for whoever adds a release: never parsed, kept by `nox -s gpu-smoke`.
    also: tuple[tuple[str, ...], ...] = ()

    def page(self, text: str, names: str = "") -> Page:
        """The cards of its output; every quantity it should hold is a value or a reason.

        `names`: the output of the command that names them.
        """
        found = self.parse(text)
        known = self.names.parse(names) if self.names else {}
        cards = [replace(card, device=known.get(card.device, card.device)) for card in found.cards]
        if cards:
            seen = {card.device for card in cards}
            cards += [
                lost_card(one, self.yields, UNLISTED) for one in known.values() if one not in seen
            ]
        return replace(found, cards=tuple(self._completed(card) for card in apart(cards)))

    def _completed(self, card: Card) -> Card:
        absent = dict.fromkeys(self.yields, why_not(None))
        reasons = {**absent, **card.reasons}
        return replace(
            card, reasons={name: why for name, why in reasons.items() if name not in card.values}
        )


def apart(cards: list[Card]) -> list[Card]:
    """The cards with a name each: partitions at one address are told by their order, from `/p1`."""
    met: dict[str, int] = {}
    found = []
    for card in cards:
        count = met.get(card.device, 0)
        met[card.device] = count + 1
        found.append(replace(card, device=f"{card.device}/p{count}") if count else card)
    return found


def page_samples(source: str, page: Page) -> list[Sample]:
    """A page as samples; `device` is each card's own name, a page without cards has a reason."""
    samples = [
        one for card in page.cards for one in samples_of(card.device, card.values, {}, card.reasons)
    ]
    if not page.cards:
        samples += samples_of(source, reasons={"cards": page.reason or "absent: no card"})
    return samples
