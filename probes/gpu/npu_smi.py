"""`npu-smi info` of Ascend accelerators: a table with two lines a chip."""

from __future__ import annotations

import re

from .address import address_of
from .card import MIB, Card, CardBuilder, Page, no_cards, whole_lines
from .source import Tool

_PAIR = re.compile(r"(\d+)\s*/\s*(\d+)\s*$")
_UPPER = re.compile(r"^\d{1,5}\s+\S")
_LOWER = re.compile(r"^\d{1,5}(?:\s+\S+)?$")
# A line of the processes below the chips has four.
_TABLE_CELLS = 3


def parse_npu_smi(text: str) -> Page:
    """Chips by PCI address; the second die of a card gives `-` for its power."""
    cards: list[Card] = []
    upper: list[str] | None = None
    for line in whole_lines(text):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|") or len(cells) != _TABLE_CELLS:
            upper = None
        elif upper is not None and _LOWER.match(cells[0]):
            cards.append(_card(upper, cells))
            upper = None
        else:
            upper = cells if _UPPER.match(cells[0]) else None
    return Page(cards=tuple(cards), reason=None if cards else no_cards(text, "chip"))


def _card(upper: list[str], lower: list[str]) -> Card:
    # A 310B has no PCI address, and says `NA`: its number, then the chip's.
    number = f"npu{upper[0].split()[0]}.{lower[0].split()[0]}"
    builder = CardBuilder(address_of(lower[1]) or number)
    first, second = upper[2].split(), lower[2].split()
    builder.take("power_w", first[0] if first else None)
    builder.take("temp_junction_c", first[1] if len(first) > 1 else None)
    builder.take("gpu_busy_percent", second[0] if second else None)
    hbm = _PAIR.search(lower[2])
    words = second[-1] if second and not second[-1].isdigit() else None  # `NA / NA` is no pair
    builder.take("vram_used_bytes", hbm.group(1) if hbm else words, MIB)
    builder.take("vram_total_bytes", hbm.group(2) if hbm else words, MIB)
    return builder.card()


NPU_SMI = Tool(
    name="npu-smi",
    command=("npu-smi", "info"),
    parse=parse_npu_smi,
    yields=(
        "power_w",
        "temp_junction_c",
        "gpu_busy_percent",
        "vram_used_bytes",
        "vram_total_bytes",
    ),
    also=(("npu-smi", "info", "-l"), ("npu-smi", "info", "-m")),
)
