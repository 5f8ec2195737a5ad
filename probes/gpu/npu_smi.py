"""`npu-smi info` of Ascend accelerators: a table with two lines a chip."""

from __future__ import annotations

import re

from .card import MIB, Card, CardBuilder, Page, no_cards, whole_lines
from .source import Tool

_PAIR = re.compile(r"(\d+)\s*/\s*(\d+)\s*$")
_BUS = re.compile(r"^[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]$")
_TABLE_CELLS = 3


def parse_npu_smi(text: str) -> Page:
    """Chips by PCI address; the second die of a card gives `-` for its power."""
    cards: list[Card] = []
    upper: list[str] | None = None
    for line in whole_lines(text):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|") or len(cells) < _TABLE_CELLS:
            upper = None
            continue
        if upper is not None and _BUS.match(cells[1]):
            cards.append(_card(upper, cells))
            upper = None
        else:
            upper = cells
    return Page(cards=tuple(cards), reason=None if cards else no_cards(text, "chip"))


def _card(upper: list[str], lower: list[str]) -> Card:
    builder = CardBuilder(f"npu {lower[1]}")
    first, second = upper[2].split(), lower[2].split()
    builder.take("power_w", first[0] if first else None)
    builder.take("temp_junction_c", first[1] if len(first) > 1 else None)
    builder.take("gpu_busy_percent", second[0] if second else None)
    hbm = _PAIR.search(lower[2])
    builder.take("vram_used_bytes", hbm.group(1) if hbm else None, MIB)
    builder.take("vram_total_bytes", hbm.group(2) if hbm else None, MIB)
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
)
