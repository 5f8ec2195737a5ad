"""NVIDIA's library through nvidia-ml-py, if somebody installed it; nothing here needs it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import reason_of
from .readings import INT64_MAX, Reading

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True, kw_only=True)
class Nvml:
    """The opened library, or why it is not open."""

    module: Any = None
    reason: str | None = None
    handles: dict[str, Any] = field(default_factory=dict)  # by PCI address

    @property
    def works(self) -> bool:
        """Whether a card can be asked."""
        return bool(self.handles)

    def readings(self) -> list[Reading]:
        """Memory, power, use and temperature of each card."""
        if self.reason is not None:
            return [Reading(device="nvml", counter="cards", reason=self.reason)]
        return [one for address, card in self.handles.items() for one in self._card(address, card)]

    def _card(self, address: str, handle: Any) -> list[Reading]:
        nvml = self.module
        asked: dict[str, Callable[[], object]] = {
            "vram_used_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            "vram_total_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total,
            "gpu_busy_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "power_mw": lambda: nvml.nvmlDeviceGetPowerUsage(handle),
            "temp_junction_c": lambda: nvml.nvmlDeviceGetTemperature(handle, 0),
        }
        return [_reading(address, counter, ask) for counter, ask in asked.items()]


def _reading(address: str, counter: str, ask: Callable[[], object]) -> Reading:
    try:
        value = ask()
    except Exception as error:  # noqa: BLE001 - NVMLError has no base a host without it can name
        return Reading(device=address, counter=counter, reason=reason_of(error))
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64_MAX:
        return Reading(device=address, counter=counter, value=value)
    reason = f"failed: {value!r} is no counter"[:120]
    return Reading(device=address, counter=counter, reason=reason)


def open_nvml(load: Callable[[str], Any] = importlib.import_module) -> Nvml:
    """Open the library. A binding without its driver fails in more ways than ImportError."""
    try:
        nvml = load("pynvml")
        nvml.nvmlInit()
        handles = {}
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            address = nvml.nvmlDeviceGetPciInfo(handle).busId
            if isinstance(address, bytes):
                address = address.decode("ascii", "replace")
            handles[str(address).lower()] = handle
    except ImportError:
        return Nvml(reason="absent: nvidia-ml-py is not installed")
    except Exception as error:  # noqa: BLE001 - see above
        return Nvml(reason=reason_of(error))
    return Nvml(module=nvml, handles=handles)
