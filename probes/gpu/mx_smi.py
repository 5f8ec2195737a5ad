"""`mx-smi --show-memory --show-usage` of MetaX cards: `key : number unit` lines."""

from __future__ import annotations

import re

from .card import CardBuilder, Page, no_cards, whole_lines
from .source import Tool

# Some releases print the colon of Chinese text.
_LINE = re.compile(r"^\s*([\w ]+?)\s*[:：]\s*(\S*)")  # noqa: RUF001
_KEYS = {
    "vis_vram total": ("vram_total_bytes", 1024),
    "vis_vram used": ("vram_used_bytes", 1024),
    "GPU": ("gpu_busy_percent", 1),
}


def parse_mx_smi(text: str) -> Page:
    """The one card whose lines these are."""
    lines = [found.groups() for line in whole_lines(text) if (found := _LINE.match(line))]
    known = [(key, value) for key, value in lines if key in _KEYS]
    if not known:
        return Page(reason=no_cards(text, "known key"))
    builder = CardBuilder("mx")
    for key, value in known:
        builder.take(_KEYS[key][0], value or None, _KEYS[key][1])
    return Page(cards=(builder.card(),))


MX_SMI = Tool(
    name="mx-smi",
    command=("mx-smi", "--show-memory", "--show-usage"),
    parse=parse_mx_smi,
    yields=tuple(quantity for quantity, _ in _KEYS.values()),
)
