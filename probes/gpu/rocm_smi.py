"""`rocm-smi --json` of ROCm 5 to 7.2, and its `--csv`.

All values are strings; a metric that failed loses its key; a card without keys is not there; the
exit code says nothing. Two names mislead: `GPU memory use (%)` of 5.x to 6.1.0 is the activity of
the memory controller, not occupancy; and the power's key depends on the ASIC, not on the release.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .address import address_of
from .card import (
    Card,
    CardBuilder,
    Page,
    csv_rows,
    json_documents,
    lost_card,
    no_cards,
    whole_lines,
)
from .source import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

_CARD = re.compile(r"^card(\d{1,4})$")
_COMPLAINT = re.compile(r"\bGPU\[(\d{1,4})\]\s*:?\s*(.*)")
_TEMPERATURE = re.compile(r"^Temperature \(Sensor ([\w ]+)\) \(c\)$", re.IGNORECASE)
_SENSORS = {"junction": "temp_junction_c", "memory": "temp_mem_c", "mem": "temp_mem_c"}
_BUS = "PCI Bus"
_KEYS = {
    "VRAM Total Used Memory (B)": "vram_used_bytes",
    "VRAM Total Memory (B)": "vram_total_bytes",
    "GPU use (%)": "gpu_busy_percent",
    "GPU Memory Read/Write Activity (%)": "mem_busy_percent",
    "GPU memory use (%)": "mem_busy_percent",
    # MI300 gives the instantaneous socket power, older parts an average; one of the two is there.
    "Current Socket Graphics Package Power (W)": "power_w",
    "Average Graphics Package Power (W)": "power_w",
}
_YIELDS = tuple(dict.fromkeys((*_KEYS.values(), *_SENSORS.values())))


def parse_rocm_smi(text: str) -> Page:
    """Cards of the first JSON document, or of a CSV; the lines around it are notes."""
    documents, words = json_documents(text)
    document = next((one for one in documents if isinstance(one, dict)), None)
    if document is None:
        document = _of_csv(text)
    if document is None:
        return Page(reason=no_cards(text, "card"), notes=tuple(words))
    read = {
        str(name): _card(str(name), metrics)
        for name, metrics in document.items()
        if _CARD.match(str(name)) and isinstance(metrics, dict)
    }
    cards = (*read.values(), *_complained(words, set(read)))
    reason = None if cards else "absent: no card in the JSON"
    return Page(cards=cards, reason=reason, notes=tuple(words))


def _of_csv(text: str) -> dict[str, Mapping[str, str]] | None:
    lines = whole_lines(text)
    start = next((at for at, line in enumerate(lines) if line.startswith("device,")), None)
    if start is None:
        return None
    rows = [row for row in csv_rows(lines[start:]) if isinstance(row, dict)]
    return {row.get("device", ""): row for row in rows}


def _complained(words: list[str], read: set[str]) -> list[Card]:
    """Cards that are in no document, of which a line says what went wrong with them."""
    said: dict[str, str] = {}
    for line in words:
        if (found := _COMPLAINT.search(line)) and f"card{found[1]}" not in read:
            said.setdefault(f"card{found[1]}", " ".join(found[2].split())[:60])
    return [
        lost_card(name, _YIELDS, f"failed: the tool says {why!r}") for name, why in said.items()
    ]


def _card(name: str, metrics: dict[str, Any]) -> Card:
    # Some keys of `-a` end with a colon.
    given = {str(key).strip().rstrip(":"): value for key, value in metrics.items()}
    builder = CardBuilder(address_of(given.get(_BUS)) or name)
    for key, value in given.items():
        if key in _KEYS:
            builder.take(_KEYS[key], value)
        elif (sensor := _TEMPERATURE.match(key)) and sensor.group(1).lower() in _SENSORS:
            builder.take(_SENSORS[sensor.group(1).lower()], value)
    return builder.card()


_SHOWN = ("--showuse", "--showmeminfo", "vram", "--showmemuse", "--showpower", "--showtemp")
ROCM_SMI = Tool(
    name="rocm-smi",
    command=("rocm-smi", *_SHOWN, "--showbus", "--json"),
    parse=parse_rocm_smi,
    yields=_YIELDS,
    vendor="amd",
    also=(
        ("rocm-smi",),
        ("rocm-smi", *_SHOWN, "--csv"),
        ("rocm-smi", "--showmeminfo", "all", "--json"),
        ("rocm-smi", "--showtopo"),
    ),
)
