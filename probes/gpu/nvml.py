"""NVIDIA's library through nvidia-ml-py, where somebody installed it; nothing here needs it."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import reason_of
from ..samples import INT64_MAX
from .card import Card, Page
from .source import Library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_ASKED: dict[str, Callable[[Any, Any], object]] = {
    "vram_used_bytes": lambda nvml, card: nvml.nvmlDeviceGetMemoryInfo(card).used,
    "vram_total_bytes": lambda nvml, card: nvml.nvmlDeviceGetMemoryInfo(card).total,
    "gpu_busy_percent": lambda nvml, card: nvml.nvmlDeviceGetUtilizationRates(card).gpu,
    "power_mw": lambda nvml, card: nvml.nvmlDeviceGetPowerUsage(card),
    "temp_junction_c": lambda nvml, card: nvml.nvmlDeviceGetTemperature(card, 0),
}


def open_nvml(
    _sys_root: Path, load: Callable[[str], Any] = importlib.import_module
) -> Callable[[], Page]:
    """Open the library. A binding without its driver fails in more ways than ImportError."""
    handles: dict[str, Any] = {}  # by PCI address
    try:
        nvml = load("pynvml")
        nvml.nvmlInit()
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            address = nvml.nvmlDeviceGetPciInfo(handle).busId
            if isinstance(address, bytes):
                address = address.decode("ascii", "replace")
            handles[str(address).lower()] = handle
    except ImportError:
        return lambda: Page(reason="absent: nvidia-ml-py is not installed")
    except Exception as error:  # noqa: BLE001 - NVMLError has no base a host without it can name
        lost = Page(reason=reason_of(error))
        return lambda: lost
    return partial(_page, nvml, handles)


def _page(nvml: Any, handles: dict[str, Any]) -> Page:
    cards = tuple(_card(nvml, address, handle) for address, handle in handles.items())
    return Page(cards=cards, reason=None if cards else "absent: the library lists no card")


def _card(nvml: Any, address: str, handle: Any) -> Card:
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for quantity, ask in _ASKED.items():
        try:
            value = ask(nvml, handle)
        except Exception as error:  # noqa: BLE001 - see above
            reasons[quantity] = reason_of(error)
            continue
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64_MAX:
            values[quantity] = value
        else:
            reasons[quantity] = f"failed: {value!r} is no counter"[:120]
    return Card(device=address, values=values, reasons=reasons)


NVML = Library(name="nvml", open=open_nvml, yields=tuple(_ASKED))
