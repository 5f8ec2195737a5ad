"""AMD's kernel driver: memory, use, power and temperatures of its cards from sysfs.

`device` is the PCI address, because card numbers differ between tools, drivers and containers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..errors import reason_of
from ..kernel_files import counter_of, names_in, no_counter, read_whole
from .card import Card, Page
from .source import Library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_DRIVER = "bus/pci/drivers/amdgpu"
_PCI = re.compile(r"^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$")
# Left out on purpose: current_compute_partition wakes a sleeping card, gpu_metrics is slow.
_FILES = {
    "vram_used_bytes": "mem_info_vram_used",
    "vram_total_bytes": "mem_info_vram_total",
    "gtt_used_bytes": "mem_info_gtt_used",
    "gpu_busy_percent": "gpu_busy_percent",
    "mem_busy_percent": "mem_busy_percent",
}
_SENSOR_LABELS = {
    "junction": "temp_junction_millicelsius",
    "mem": "temp_mem_millicelsius",
    "edge": "temp_edge_millicelsius",
}
_POWER = {"power1_input": "power_input_uw", "power1_average": "power_average_uw"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _PciCard:
    """One PCI function bound to amdgpu, and the path of each counter it has."""

    address: str
    paths: dict[str, str]


def _find_cards(sys_root: Path) -> list[_PciCard]:
    cards = []
    for name in names_in(f"{sys_root}/{_DRIVER}"):
        if not _PCI.match(name):
            continue
        root = sys_root / _DRIVER / name
        paths = {counter: str(root / file) for counter, file in _FILES.items()}
        cards.append(_PciCard(address=name, paths=paths | _sensors(root)))
    return cards


def _sensors(root: Path) -> dict[str, str]:
    """Power and temperatures by their label: numbers of sensors differ between ASICs."""
    found: dict[str, str] = {}
    for folder in sorted((root / "hwmon").glob("hwmon*")):
        for label in sorted(folder.glob("temp*_label")):
            try:
                counter = _SENSOR_LABELS.get(label.read_text(encoding="ascii").strip())
            except (OSError, ValueError):
                continue
            if counter is not None:
                found[counter] = str(label).removesuffix("_label") + "_input"
        present = [name for name in _POWER if (folder / name).exists()]
        found |= {_POWER[name]: str(folder / name) for name in present}
    if not any(counter in found for counter in _POWER.values()):
        found["power_input_uw"] = str(root / "hwmon" / "power1_input")
    return found


def _open(sys_root: Path) -> Callable[[], Page]:
    """Cards are looked for once: a driver is not loaded in the middle of a run."""
    return partial(_page, _find_cards(sys_root))


def _page(cards: list[_PciCard]) -> Page:
    reason = None if cards else "absent: the amdgpu driver has no device here"
    return Page(cards=tuple(_read(card) for card in cards), reason=reason)


def _read(card: _PciCard) -> Card:
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for counter, path in card.paths.items():
        try:
            data = read_whole(path).strip()
        except OSError as error:
            reasons[counter] = reason_of(error)
            continue
        value = counter_of(data)
        if value is None:
            reasons[counter] = no_counter(data)
        else:
            values[counter] = value
    return Card(device=card.address, values=values, reasons=reasons)


AMDGPU = Library(
    name="amdgpu",
    open=_open,
    yields=(*_FILES, *_SENSOR_LABELS.values(), *_POWER.values()),
)
