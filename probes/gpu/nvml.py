"""NVIDIA's library through nvidia-ml-py, where somebody installed it; nothing here needs it.

A card that is lost answers every call with an error, the one for its handle included; the others go
on. It is asked again with every look, by its PCI address, because numbers shift meanwhile.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import reason_of
from ..kernel_files import names_in
from .address import address_of
from .card import Card, CardBuilder, Page, lost_card
from .source import Library
from .vendor_number import why_not

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_DRIVER = "bus/pci/drivers/nvidia"
_ASKED: dict[str, Callable[[Any, Any], object]] = {
    "vram_used_bytes": lambda nvml, card: nvml.nvmlDeviceGetMemoryInfo(card).used,
    "vram_total_bytes": lambda nvml, card: nvml.nvmlDeviceGetMemoryInfo(card).total,
    "gpu_busy_percent": lambda nvml, card: nvml.nvmlDeviceGetUtilizationRates(card).gpu,
    "power_mw": lambda nvml, card: nvml.nvmlDeviceGetPowerUsage(card),
    "temp_junction_c": lambda nvml, card: nvml.nvmlDeviceGetTemperature(card, 0),
}


def open_nvml(
    sys_root: Path, load: Callable[[str], Any] = importlib.import_module
) -> Callable[[], Page]:
    """Open the library. A binding without its driver fails in more ways than ImportError."""
    try:
        nvml = load("pynvml")
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    except ImportError:
        return lambda: Page(reason="absent: nvidia-ml-py is not installed")
    except Exception as error:  # noqa: BLE001 - NVMLError has no base a host without it can name
        lost = Page(reason=reason_of(error))
        return lambda: lost
    return _Cards(
        nvml, count, [one for one in names_in(f"{sys_root}/{_DRIVER}") if address_of(one)]
    )


class _Cards:
    """A handle for each card the library counts; those without one are asked for again."""

    def __init__(self, nvml: Any, count: int, bound: list[str]) -> None:
        self._nvml = nvml
        self._handles: dict[str, Any] = {}  # by device; None: lost
        lost = []
        for index in range(count):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                self._handles[_address(nvml, handle)] = handle
            except Exception:  # noqa: BLE001 - see open_nvml
                lost.append(index)
        # In a container the kernel shows cards that are not given to it: only a count that fits
        # says which addresses are the lost ones.
        rest = [one for one in bound if one not in self._handles]
        names = rest if len(rest) == len(lost) else [f"gpu{index}" for index in lost]
        self._index = dict(zip(names, lost, strict=True))
        self._handles |= dict.fromkeys(names)

    def __call__(self) -> Page:
        """Every card the library ever counted, each with what it answers now."""
        cards = tuple(self._card(device) for device in self._handles)
        return Page(cards=cards, reason=None if cards else "absent: the library lists no card")

    def _card(self, device: str) -> Card:
        handle = self._handles[device]
        if handle is None:
            try:
                handle = self._found(device)
            except Exception as error:  # noqa: BLE001 - see open_nvml
                return lost_card(device, _ASKED, _why(error))
        card = _read(self._nvml, device, handle)
        # A handle from before a card was lost stays dead when it comes back.
        self._handles[device] = handle if card.values else None
        return card

    def _found(self, device: str) -> Any:
        if address_of(device):
            return self._nvml.nvmlDeviceGetHandleByPciBusId(device.encode())
        return self._nvml.nvmlDeviceGetHandleByIndex(self._index[device])


def _address(nvml: Any, handle: Any) -> str:
    address = nvml.nvmlDeviceGetPciInfo(handle).busId
    text = address.decode("ascii", "replace") if isinstance(address, bytes) else str(address)
    return address_of(text) or text.lower()


def _why(error: Exception) -> str:
    """The reason of an error of the library: its words tell what is absent from what is broken."""
    text = reason_of(error)
    kind = why_not(str(error) or text).partition(":")[0]
    return f"{kind}:{text.partition(':')[2]}"


def _read(nvml: Any, device: str, handle: Any) -> Card:
    builder = CardBuilder(device)
    for quantity, ask in _ASKED.items():
        try:
            builder.take(quantity, ask(nvml, handle))
        except Exception as error:  # noqa: BLE001 - see open_nvml
            builder.refuse(quantity, _why(error))
    return builder.card()


NVML = Library(name="nvml", open=open_nvml, yields=tuple(_ASKED), vendor="nvidia")
