"""`amd-smi metric --json` of ROCm 6 to 7.2, and its `--csv`.

Up to 6.4 a list of cards, from 7.0 a dictionary `gpu_data`; some releases print a banner first, a
document for each card, or nothing at all. A leaf is {"value", "unit"}, a bare number, `N/A`, or a
number with its unit in one text; a whole block may be the word `N/A`, and lists mix both. The page
numbers its cards; `amd-smi list` says at which PCI address each of them is.
"""

from __future__ import annotations

from typing import Any

from .address import address_of
from .card import (
    MIB,
    TOTAL,
    Card,
    CardBuilder,
    Page,
    csv_rows,
    json_documents,
    no_cards,
    whole_lines,
)
from .source import Names, Tool
from .vendor_number import number

# The tool writes MB and means MiB.
_MEMORY_UNITS = {"MB": MIB, "GB": 1 << 30, "KB": 1 << 10, "B": 1}
# By quantity: the block, and what the leaf is called in one release or another.
_LEAVES: dict[str, tuple[str, tuple[str, ...]]] = {
    "vram_used_bytes": ("mem_usage", ("used_vram",)),
    "vram_total_bytes": ("mem_usage", ("total_vram",)),
    # The host's memory that the card maps: of an APU all there is.
    "gtt_used_bytes": ("mem_usage", ("used_gtt",)),
    "gtt_total_bytes": ("mem_usage", ("total_gtt",)),
    "gpu_busy_percent": ("usage", ("gfx_activity",)),
    "mem_busy_percent": ("usage", ("umc_activity",)),
    # MI200 has an average alone, MI300 an instantaneous one; later releases choose themselves.
    "power_w": ("power", ("socket_power", "current_socket_power", "average_socket_power")),
    "temp_junction_c": ("temperature", ("hotspot",)),
    "temp_mem_c": ("temperature", ("mem",)),
}
# Sizes of the CSV form have no unit: MiB, where a card's whole memory comes to 1 GiB up to 4 TiB.
_CSV_MIB = range(1 << 10, 1 << 22)


def parse_amd_smi(text: str) -> Page:
    """Cards of all documents in this output, the last of each; the lines around it are notes."""
    documents, words = json_documents(text)
    entries: dict[object, dict[str, Any]] = {}
    listed = False
    for document in documents:
        found = _cards_of(document)
        listed |= found is not None
        for place, entry in enumerate(found or ()):
            index = entry["gpu"]
            entries[index if _is_index(index) else f"?{place}"] = entry
    if not listed:
        rows = _csv_cards(text)
        if rows:
            return Page(cards=tuple(rows))
        return Page(reason=no_cards(text, "GPU document"), notes=tuple(words))
    cards = tuple(_card(f"gpu{index}", entry) for index, entry in entries.items())
    reason = None if cards else "absent: the document lists no GPU"
    return Page(cards=cards, reason=reason, notes=tuple(words))


def _is_index(index: object) -> bool:
    return isinstance(index, int) and not isinstance(index, bool) and index >= 0


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


def _card(device: str, entry: dict[str, Any]) -> Card:
    builder = CardBuilder(device)
    for quantity, (block, leaves) in _LEAVES.items():
        holder = entry.get(block)
        if not isinstance(holder, dict):
            builder.take(quantity, holder)
            continue
        for leaf in leaves:
            if leaf in holder:
                _take(builder, quantity, holder[leaf])
        builder.take(quantity, None)
    return builder.card()


def _take(builder: CardBuilder, quantity: str, leaf: object) -> None:
    value, unit = leaf, "without a unit"
    if isinstance(leaf, dict):
        value, unit = leaf.get("value"), str(leaf.get("unit"))
    elif isinstance(leaf, str) and len(parts := leaf.split()) == 2:  # noqa: PLR2004 - "101 W"
        value, unit = (parts[0], parts[1]) if number(parts[0]) is not None else (leaf, unit)
    if not quantity.endswith("_bytes"):
        builder.take(quantity, value)
    elif number(value) is not None and unit not in _MEMORY_UNITS:
        # Such a size could be wrong by a million; with these words it is no number.
        builder.take(quantity, f"{value} {unit}")
    else:
        builder.take(quantity, value, _MEMORY_UNITS.get(unit, 1))


def _csv_cards(text: str) -> list[Card]:
    """Cards of `--csv`, which puts the leaves of all blocks side by side."""
    lines = whole_lines(text)
    start = next((at for at, line in enumerate(lines) if "gpu" in line.split(",")[:2]), None)
    rows = [] if start is None else csv_rows(lines[start:])
    cards = []
    for row in (one for one in rows if isinstance(one, dict)):
        index = row.get("gpu", "").strip()
        if not index.isdigit():
            continue
        total = number(row.get(_LEAVES[TOTAL][1][0]))
        in_mib = total is not None and total in _CSV_MIB
        builder = CardBuilder(f"gpu{index}")
        for quantity, (_, leaves) in _LEAVES.items():
            value = next((row[leaf] for leaf in leaves if leaf in row), None)
            if quantity.endswith("_bytes") and not in_mib and number(value) is not None:
                value = f"{value} without a unit"
            builder.take(quantity, value, MIB if quantity.endswith("_bytes") else 1)
        cards.append(builder.card())
    return cards


def parse_list(text: str) -> dict[str, str]:
    """`gpu0` by the PCI address that `amd-smi list --json` gives; partitions differ in function."""
    found = {}
    for document in json_documents(text)[0]:
        for entry in _cards_of(document) or ():
            address = address_of(entry.get("bdf"))
            if _is_index(entry["gpu"]) and address:
                found[f"gpu{entry['gpu']}"] = address
    return found


AMD_SMI = Tool(
    name="amd-smi",
    command=("amd-smi", "metric", "--json"),
    parse=parse_amd_smi,
    yields=tuple(_LEAVES),
    vendor="amd",
    names=Names(command=("amd-smi", "list", "--json"), parse=parse_list),
    also=(
        ("amd-smi", "version"),
        ("amd-smi", "metric", "--csv"),
        ("amd-smi", "monitor", "--json"),
        ("amd-smi", "static", "--json", "--vram", "--partition"),
        ("amd-smi", "partition", "--json"),
    ),
)
