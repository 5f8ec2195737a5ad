"""The GPU probe: amdgpu's sysfs files as a series; NVML where that is installed.

No command is started in the loop: `rocm-smi` alone costs a tenth of a second of CPU a sample.
`device` is the PCI address, because card numbers differ between tools, drivers and containers.
Utilisation is context only: on some parts it reads 0 under full load. Memory in use shows whether
an earlier process left something behind, not where KV came from: engines reserve nearly all of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import reason_of
from .gpu_nvml import Nvml, open_nvml
from .kernel_files import counter_of, names_in, read_whole
from .readings import Reading, Sample, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Sequence

_DRIVER = "bus/pci/drivers/amdgpu"
_PCI = re.compile(r"^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$")
# Not among these on purpose: current_compute_partition wakes a sleeping card, gpu_metrics is slow.
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
_NO_AMD = "absent: the amdgpu driver has no device here"


@dataclass(frozen=True, slots=True, kw_only=True)
class AmdCard:
    """One PCI function bound to amdgpu, and the path of each counter it has."""

    address: str
    paths: dict[str, str]


def find_amd_cards(sys_root: Path) -> list[AmdCard]:
    """Cards bound to amdgpu, by PCI address. Files that are not there are read as absent later."""
    cards = []
    for name in names_in(f"{sys_root}/{_DRIVER}"):
        if not _PCI.match(name):
            continue
        root = sys_root / _DRIVER / name
        paths = {counter: str(root / file) for counter, file in _FILES.items()}
        cards.append(AmdCard(address=name, paths=paths | _sensors(root)))
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


class GpuProbe:
    """One row a counter of every card; a host without cards says so, once."""

    name = "gpu"

    def __init__(self, sys_root: Path = Path("/sys"), nvml: Nvml | None = None) -> None:
        self._cards = find_amd_cards(sys_root)
        self._nvml = nvml if nvml is not None else open_nvml()
        self._silent = False

    def sample(self) -> Sequence[Sample]:
        """Every counter of every card, null with its reason where it cannot be read."""
        if self._silent:
            return []
        watch = Stopwatch()
        readings = [reading for card in self._cards for reading in _read(card)]
        readings += self._nvml.readings()
        if not self._cards:
            readings.append(Reading(device="amdgpu", counter="cards", reason=_NO_AMD))
            # Nothing will appear later: drivers are not loaded in the middle of a run.
            self._silent = not self._nvml.works
        return [watch.sample(self.name, readings)]


def _read(card: AmdCard) -> list[Reading]:
    readings = []
    for counter, path in card.paths.items():
        try:
            data = read_whole(path).strip()
        except OSError as error:
            reason = reason_of(error)
        else:
            value = counter_of(data)
            if value is not None:
                readings.append(Reading(device=card.address, counter=counter, value=value))
                continue
            reason = f"failed: {data[:40].decode('ascii', 'replace')!r} is no counter"
        readings.append(Reading(device=card.address, counter=counter, reason=reason))
    return readings
