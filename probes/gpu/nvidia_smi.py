"""`nvidia-smi --query-gpu=.. --format=csv`: columns are found by their heading, cards by address.

A lost card is a line of words. Older releases (515) print nothing but that line; the others then
answer one by one, by their number.
"""

from __future__ import annotations

import re
from itertools import takewhile

from .address import address_of
from .card import MIB, Card, CardBuilder, Page, csv_rows, lost_card, no_cards, whole_lines
from .source import Tool

_COLUMNS = {
    "memory.used": ("vram_used_bytes", MIB),
    "memory.total": ("vram_total_bytes", MIB),
    "utilization.gpu": ("gpu_busy_percent", 1),
    "power.draw": ("power_w", 1),
    "temperature.gpu": ("temp_junction_c", 1),
}
_YIELDS = tuple(quantity for quantity, _ in _COLUMNS.values())
_LOST = re.compile(
    r"device handle for GPU ?(?:(?P<number>\d{1,3}): )?"
    r"(?P<address>[0-9A-F]{1,8}(?::[0-9A-F]{2}){2}\.[0-9])?:? *(?P<why>.*)",
    re.IGNORECASE,
)


def parse_nvidia_smi(text: str) -> Page:
    """Cards of the rows below the heading, and those that a line says are lost."""
    lines = whole_lines(text)
    lost = [_lost(found) for line in lines if (found := _LOST.search(line))]
    table = [line for line in lines if not _LOST.search(line)]
    start = next((at for at, line in enumerate(table) if "memory.used" in line), None)
    if start is None:
        return Page(cards=tuple(lost), reason=None if lost else no_cards(text, "heading"))
    heading = [name.partition(" [")[0] for name in table[start].split(",")]
    rows = csv_rows([",".join(heading), *table[start + 1 :]])
    cards = [_card(row) if isinstance(row, dict) else _torn(heading, row) for row in rows]
    named = {card.device for card in cards}
    cards += [card for card in lost if card.device not in named]
    return Page(cards=tuple(cards), reason=None if cards else "absent: no whole row below heading")


def _device(cells: dict[str, str]) -> str:
    """The PCI address, where the page has it, else its number."""
    address = address_of(cells.get("pci.bus_id"))
    return address or f"gpu{cells.get('index', '?').strip()}"


def _card(cells: dict[str, str]) -> Card:
    builder = CardBuilder(_device(cells))
    for name, (quantity, scale) in _COLUMNS.items():
        builder.take(quantity, cells.get(name), scale)
    return builder.card()


def _torn(heading: list[str], row: list[str]) -> Card:
    """A row with too many or too few cells: its first ones name the card, the rest says nothing."""
    names = [name.strip() for name in heading]
    cells = dict(takewhile(lambda pair: pair[0] not in _COLUMNS, zip(names, row, strict=False)))
    reason = f"failed: {len(row)} cells in this row, {len(names)} in the heading"
    return lost_card(_device(cells) or "gpu?", _YIELDS, reason)


def _lost(found: re.Match[str]) -> Card:
    number = found["number"]
    device = address_of(found["address"]) or (f"gpu{number}" if number else "gpu?")
    why = " ".join(found["why"].split()) or "no handle"
    return lost_card(device, _YIELDS, f"failed: the tool says {why[:60]!r}")


_QUERY = (
    f"--query-gpu=timestamp,index,uuid,pci.bus_id,{','.join(_COLUMNS)}",
    "--format=csv,nounits",
)
NVIDIA_SMI = Tool(
    name="nvidia-smi",
    command=("nvidia-smi", *_QUERY),
    parse=parse_nvidia_smi,
    yields=_YIELDS,
    vendor="nvidia",
    each=lambda number: ("nvidia-smi", "-i", str(number), *_QUERY),
    also=(
        ("nvidia-smi",),
        ("nvidia-smi", "-L"),
        ("nvidia-smi", "-q", "-d", "MEMORY,UTILIZATION,POWER,TEMPERATURE,ECC"),
        ("nvidia-smi", "topo", "-m"),
    ),
)
