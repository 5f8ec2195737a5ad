"""`amd-smi metric --json` and `static --json` of ROCm 6 to 7.2.

Up to 6.4 a list of cards, from 7.0 a dictionary `gpu_data`; in watch mode a banner and then one
document a tick, or nothing at all. A leaf is {"value", "unit"}, a bare number, or `N/A`; a whole
block may be the word `N/A`, and lists mix both.
"""

from __future__ import annotations

import re
from typing import Any

from .gpu_reading import Card, CardBuilder, Page, json_documents, whole_lines

_BYTES_PER_MIB = 1 << 20
# The tool writes MB and means MiB.
_MEMORY_UNITS = {"MB": _BYTES_PER_MIB, "GB": 1 << 30, "KB": 1 << 10, "B": 1}
_LEAVES = (
    ("vram_used_bytes", "mem_usage", "used_vram"),
    ("vram_total_bytes", "mem_usage", "total_vram"),
    ("gpu_busy_percent", "usage", "gfx_activity"),
    ("mem_busy_percent", "usage", "umc_activity"),
    ("power_w", "power", "socket_power"),
    ("temp_junction_c", "temperature", "hotspot"),
    ("temp_mem_c", "temperature", "mem"),
)
# Limits of `static --limit`: names before and after 7.2.
_LIMITS = (
    ("max_power_w", ("max_power",)),
    ("max_power_w", ("ppt0", "max_power_limit")),
    ("socket_power_limit_w", ("socket_power",)),
    ("socket_power_limit_w", ("ppt0", "socket_power_limit")),
)
_EMPTY = "absent: empty output"
_MONITOR_VRAM = re.compile(r"^(\d+(?:\.\d+)?)/\s*(\d+(?:\.\d+)?)$")


def parse_amd_smi(text: str) -> Page:
    """Cards of the last document in this output; the lines around it are notes."""
    if not text.strip():
        return Page(reason=_EMPTY)
    documents, words = json_documents(text)
    listed = [found for document in documents if (found := _cards_of(document)) is not None]
    if not listed:
        shown = words[0][:80] if words else ""
        reason = f"absent: no GPU document in this output, which begins {shown!r}"
        return Page(reason=reason, notes=tuple(words))
    cards = tuple(_card(entry, place) for place, entry in enumerate(listed[-1]))
    why = None if cards else "absent: the document lists no GPU"
    return Page(cards=cards, reason=why, notes=tuple(words))


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
    for quantity, block, leaf in _LEAVES:
        holder = entry.get(block)
        value = holder.get(leaf) if isinstance(holder, dict) else holder
        _take(builder, quantity, value)
    limits = entry.get("limit")
    for name, steps in _LIMITS:
        found: Any = limits
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        builder.also(name, found.get("value") if isinstance(found, dict) else found)
    return builder.card()


def _take(builder: CardBuilder, quantity: str, leaf: object) -> None:
    value, unit = leaf, None
    if isinstance(leaf, dict):
        value, unit = leaf.get("value"), leaf.get("unit")
    if not quantity.endswith("_bytes"):
        builder.take(quantity, value)
        return
    if isinstance(value, (int, float)) and unit not in _MEMORY_UNITS:
        # A size without a unit could be wrong by a million.
        builder.take(quantity, f"{value} {unit}")
        return
    builder.take(quantity, value, _MEMORY_UNITS.get(unit if isinstance(unit, str) else "", 1))


def parse_amd_monitor(text: str) -> Page:
    """`amd-smi monitor`: a table whose columns and units move between releases.

    Values stand under their headings and a unit follows each as a word of its own: paired by
    order once the units are taken out. A row that does not pair up is a reason, not a guess.
    """
    lines = [line.split() for line in whole_lines(text) if line.strip()]
    head = next((words for words in lines if "GPU" in words and "POWER" in words), None)
    if head is None:
        return Page(reason="absent: no monitor table in this output")
    cards = []
    for words in lines[lines.index(head) + 1 :]:
        values = [word for word in _joined(words) if word not in _UNIT_WORDS]
        if not values or len(values) != len(head):
            continue
        cells = dict(zip(head, values, strict=True))
        if cells["GPU"].isdigit():
            cards.append(_monitor_card(cells))
    return Page(cards=tuple(cards), reason=None if cards else "failed: no row fits the heading")


_UNIT_WORDS = frozenset({"W", "°C", "%", "MHz", "MB", "GB", "Mb/s", "C"})


def _joined(words: list[str]) -> list[str]:
    """`0.6/ 64.0` is one cell."""
    out: list[str] = []
    for word in words:
        if out and out[-1].endswith("/"):
            out[-1] += word
        else:
            out.append(word)
    return out


def _monitor_card(cells: dict[str, str]) -> Card:
    builder = CardBuilder(f"gpu{cells['GPU']}")
    names = {
        "power_w": ("POWER",),
        "temp_junction_c": ("GPU_T", "GPU_TEMP"),
        "temp_mem_c": ("MEM_T", "MEM_TEMP"),
        "gpu_busy_percent": ("GFX%", "GFX_UTIL"),
        "mem_busy_percent": ("MEM%", "MEM_UTIL"),
    }
    for quantity, columns in names.items():
        builder.take(quantity, next((cells[c] for c in columns if c in cells), None))
    both = _MONITOR_VRAM.match(cells.get("VRAM_USAGE", ""))
    if both:
        builder.take("vram_used_bytes", both.group(1), 1 << 30)
        builder.take("vram_total_bytes", both.group(2), 1 << 30)
    else:
        builder.take("vram_used_bytes", cells.get("VRAM_USED"), _BYTES_PER_MIB)
        builder.take("vram_total_bytes", cells.get("VRAM_TOTAL"), _BYTES_PER_MIB)
    return builder.card()
