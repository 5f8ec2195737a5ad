"""`amd-smi metric --json` of ROCm 6 to 7.2.

Up to 6.4 a list of cards, from 7.0 a dictionary `gpu_data`; some releases print a banner first, or
nothing at all. A leaf is {"value", "unit"}, a bare number, or `N/A`; a whole block may be the word
`N/A`, and lists mix both.
"""

from __future__ import annotations

from typing import Any

from .card import MIB, Card, CardBuilder, Page, json_documents, no_cards
from .source import Tool

# The tool writes MB and means MiB.
_MEMORY_UNITS = {"MB": MIB, "GB": 1 << 30, "KB": 1 << 10, "B": 1}
_LEAVES = {
    "vram_used_bytes": ("mem_usage", "used_vram"),
    "vram_total_bytes": ("mem_usage", "total_vram"),
    "gpu_busy_percent": ("usage", "gfx_activity"),
    "mem_busy_percent": ("usage", "umc_activity"),
    "power_w": ("power", "socket_power"),
    "temp_junction_c": ("temperature", "hotspot"),
    "temp_mem_c": ("temperature", "mem"),
}


def parse_amd_smi(text: str) -> Page:
    """Cards of the last document in this output; the lines around it are notes."""
    documents, words = json_documents(text)
    listed = [found for document in documents if (found := _cards_of(document)) is not None]
    if not listed:
        return Page(reason=no_cards(text, "GPU document"), notes=tuple(words))
    cards = tuple(_card(entry, place) for place, entry in enumerate(listed[-1]))
    reason = None if cards else "absent: the document lists no GPU"
    return Page(cards=cards, reason=reason, notes=tuple(words))


def _cards_of(document: Any) -> list[dict[str, Any]] | None:
    """The card dictionaries of one document; None when it is another kind of document."""
    if isinstance(document, dict):
        if "gpu_data" in document:
            document = document["gpu_data"]
        elif "gpu" in document:
            document = [document]
    if not isinstance(document, list):
        return None
    return [entry for entry in document if isinstance(entry, dict) and "gpu" in entry]


def _card(entry: dict[str, Any], place: int) -> Card:
    index = entry.get("gpu")
    known = isinstance(index, int) and not isinstance(index, bool) and index >= 0
    builder = CardBuilder(f"gpu{index}" if known else f"gpu?{place}")
    for quantity, (block, leaf) in _LEAVES.items():
        holder = entry.get(block)
        _take(builder, quantity, holder.get(leaf) if isinstance(holder, dict) else holder)
    return builder.card()


def _take(builder: CardBuilder, quantity: str, leaf: object) -> None:
    value, unit = leaf, "without a unit"
    if isinstance(leaf, dict):
        value, unit = leaf.get("value"), str(leaf.get("unit"))
    if not quantity.endswith("_bytes"):
        builder.take(quantity, value)
    elif isinstance(value, (int, float)) and unit not in _MEMORY_UNITS:
        # Such a size could be wrong by a million; with these words it is no number.
        builder.take(quantity, f"{value} {unit}")
    else:
        builder.take(quantity, value, _MEMORY_UNITS.get(unit, 1))


AMD_SMI = Tool(
    name="amd-smi",
    command=("amd-smi", "metric", "--json"),
    parse=parse_amd_smi,
    yields=tuple(_LEAVES),
)
