"""AMD's kernel driver: memory, use, power and temperatures of its cards from sysfs.

`device` is the PCI address, because card numbers differ between tools, drivers and containers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import reason_of
from ..kernel_files import counter_of, names_in, no_counter, read_whole
from .card import Card, CardBuilder, Page
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
    "gtt_total_bytes": "mem_info_gtt_total",
    "gpu_busy_percent": "gpu_busy_percent",
    "mem_busy_percent": "mem_busy_percent",
}
_SENSOR_LABELS = {
    "junction": "temp_junction_millicelsius",
    "mem": "temp_mem_millicelsius",
    "edge": "temp_edge_millicelsius",
}
_POWER = {"power1_input": "power_input_uw", "power1_average": "power_average_uw"}


def _paths(root: Path) -> dict[str, str]:
    return {counter: str(root / file) for counter, file in _FILES.items()} | _sensors(root)


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
    return _Cards(sys_root / _DRIVER)


class _Cards:
    """The cards the driver ever had here, by address; one that is gone has reasons till it is back.

    Its sensors are looked for again then: they have other numbers after a reset.
    """

    def __init__(self, driver: Path) -> None:
        self._driver = driver
        self._paths: dict[str, dict[str, str]] = {}
        self._lost: set[str] = set()

    def __call__(self) -> Page:
        for name in names_in(str(self._driver)):
            if _PCI.match(name) and (name not in self._paths or name in self._lost):
                self._paths[name] = _paths(self._driver / name)
        cards = tuple(_read(address, paths) for address, paths in self._paths.items())
        self._lost = {card.device for card in cards if not card.values}
        reason = None if cards else "absent: the amdgpu driver has no device here"
        return Page(cards=cards, reason=reason)


def _read(address: str, paths: dict[str, str]) -> Card:
    builder = CardBuilder(address)
    for counter, path in paths.items():
        try:
            data = read_whole(path).strip()
        except OSError as error:
            builder.refuse(counter, reason_of(error))
            continue
        value = counter_of(data)
        if value is None:
            builder.refuse(counter, no_counter(data))
        else:
            builder.take(counter, value)
    return builder.card()


AMDGPU = Library(
    name="amdgpu",
    open=_open,
    yields=(*_FILES, *_SENSOR_LABELS.values(), *_POWER.values()),
    vendor="amd",
)
