"""Asking a vendor's tool: its page, and where one lost card silences the others, card by card."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .card import Card, Page

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tool import ToolRun
    from .source import Tool

# The largest boxes hold 16 cards; a tool that never says "no such card" is not asked for ever.
MAX_CARDS = 16
_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a tool said, and what was understood of it."""

    page: Page
    runs: tuple[ToolRun, ...]  # the first is its page, the others as they came


def ask(tool: Tool, run: Callable[[tuple[str, ...]], ToolRun]) -> Asked:
    """Run a tool's commands; whatever fails is a reason, of the page or of one card."""
    said = run(tool.command)
    if said.reason:
        return Asked(page=Page(reason=said.reason), runs=(said,))
    page = tool.page(said.stdout)
    if not page.cards:
        complaint = " ".join(said.stderr.split())[:_SHOWN]
        why = f"{page.reason}; it complains {complaint!r}" if complaint else page.reason
        return Asked(page=replace(page, reason=why), runs=(said,))
    if tool.names:
        named = run(tool.names.command)
        return Asked(page=tool.page(said.stdout, named.stdout), runs=(said, named))
    if tool.each and not any(card.values for card in page.cards):
        return _one_by_one(tool, tool.each, page, said, run)
    return Asked(page=page, runs=(said,))


def _one_by_one(
    tool: Tool,
    each: Callable[[int], tuple[str, ...]],
    whole: Page,
    said: ToolRun,
    run: Callable[[tuple[str, ...]], ToolRun],
) -> Asked:
    """Every card by its number until the tool knows no more; nothing is lost if that fails."""
    cards: dict[str, Card] = {card.device: card for card in whole.cards}
    runs = [said]
    for number in range(MAX_CARDS):
        runs.append(run(each(number)))
        page = tool.page(runs[-1].stdout)
        if not page.cards:
            break
        cards |= {card.device: card for card in page.cards}
    return Asked(page=replace(whole, cards=tuple(cards.values())), runs=tuple(runs))
