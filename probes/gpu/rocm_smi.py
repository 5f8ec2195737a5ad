"""`rocm-smi --json` of ROCm 5 to 7.2.

All values are strings; a metric that failed loses its key; a card without keys is not there; the
exit code says nothing. Two names mislead: `GPU memory use (%)` of 5.x to 6.1.0 is the activity of
the memory controller, not occupancy; and the power's key depends on the ASIC, not on the release.
"""

from __future__ import annotations

import re
from typing import Any

from .card import Card, CardBuilder, Page, json_documents, no_cards
from .source import Tool

_CARD = re.compile(r"^card(\d{1,4})$")
_TEMPERATURE = re.compile(r"^Temperature \(Sensor ([\w ]+)\) \(c\)$", re.IGNORECASE)
_SENSORS = {"junction": "temp_junction_c", "memory": "temp_mem_c", "mem": "temp_mem_c"}
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


def parse_rocm_smi(text: str) -> Page:
    """Cards of the first JSON document; the lines around it are notes."""
    documents, words = json_documents(text)
    for document in documents:
        if isinstance(document, dict):
            cards = tuple(
                _card(str(name), metrics)
                for name, metrics in document.items()
                if _CARD.match(str(name)) and isinstance(metrics, dict)
            )
            reason = None if cards else "absent: no card in the JSON"
            return Page(cards=cards, reason=reason, notes=tuple(words))
    return Page(reason=no_cards(text, "card"), notes=tuple(words))


def _card(name: str, metrics: dict[str, Any]) -> Card:
    builder = CardBuilder(name)
    for raw_key, value in metrics.items():
        # Some keys of `-a` end with a colon.
        key = str(raw_key).strip().rstrip(":")
        if key in _KEYS:
            builder.take(_KEYS[key], value)
        elif (sensor := _TEMPERATURE.match(key)) and sensor.group(1).lower() in _SENSORS:
            builder.take(_SENSORS[sensor.group(1).lower()], value)
    return builder.card()


ROCM_SMI = Tool(
    name="rocm-smi",
    command=(
        "rocm-smi",
        *("--showuse", "--showmeminfo", "vram", "--showmemuse", "--showpower", "--showtemp"),
        "--json",
    ),
    parse=parse_rocm_smi,
    yields=tuple(dict.fromkeys((*_KEYS.values(), *_SENSORS.values()))),
)
