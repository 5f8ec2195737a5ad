"""`nvidia-smi --query-gpu=.. --format=csv`: columns are found by their heading."""

from __future__ import annotations

import csv
import io

from .card import MIB, CardBuilder, Page, no_cards, whole_lines
from .source import Tool

_COLUMNS = {
    "memory.used": ("vram_used_bytes", MIB),
    "memory.total": ("vram_total_bytes", MIB),
    "utilization.gpu": ("gpu_busy_percent", 1),
    "power.draw": ("power_w", 1),
    "temperature.gpu": ("temp_junction_c", 1),
}


def parse_nvidia_smi(text: str) -> Page:
    """Cards of the rows below the heading. A quantity a card lacks is `[N/A]` there."""
    lines = whole_lines(text)
    start = next((at for at, line in enumerate(lines) if "memory.used" in line), None)
    if start is None:
        return Page(reason=no_cards(text, "heading"))
    try:
        rows = list(csv.reader(io.StringIO("\n".join(lines[start:])), skipinitialspace=True))
    except csv.Error as error:
        return Page(reason=f"failed: csv.Error: {error}")
    names = [name.partition(" [")[0].strip() for name in rows[0]]
    cards = []
    for row in rows[1:]:
        if len(row) != len(names):
            # A torn or garbled line would put numbers under other names.
            continue
        cells = dict(zip(names, row, strict=True))
        builder = CardBuilder(f"gpu{cells.get('index', '?').strip()}")
        for name, (quantity, scale) in _COLUMNS.items():
            if name in cells:
                builder.take(quantity, cells[name].strip("[] "), scale)
        cards.append(builder.card())
    return Page(cards=tuple(cards), reason=None if cards else "absent: no whole row below heading")


NVIDIA_SMI = Tool(
    name="nvidia-smi",
    command=(
        "nvidia-smi",
        f"--query-gpu=timestamp,index,uuid,pci.bus_id,{','.join(_COLUMNS)}",
        "--format=csv,nounits",
    ),
    parse=parse_nvidia_smi,
    yields=tuple(quantity for quantity, _ in _COLUMNS.values()),
)
