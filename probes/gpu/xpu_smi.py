"""`xpu-smi dump` of Intel's accelerators (1.x): a heading, then one row a card and second.

Utilization and memory are `N/A` in the first row of a card and where the kernel lacks its counters.
The whole memory is in no column of a dump. Release 2.0 has other options, and no `dump`.
"""

from __future__ import annotations

from .address import address_of
from .card import MIB, Card, CardBuilder, Page, csv_rows, json_documents, no_cards, whole_lines
from .source import Names, Tool

_COLUMNS = {
    "GPU Memory Used (MiB)": ("vram_used_bytes", MIB),
    "GPU Utilization (%)": ("gpu_busy_percent", 1),
    "GPU Power (W)": ("power_w", 1),
    "GPU Core Temperature (Celsius Degree)": ("temp_junction_c", 1),
    "GPU Memory Temperature (Celsius Degree)": ("temp_mem_c", 1),
}


def parse_xpu_smi(text: str) -> Page:
    """Cards of the rows below the heading; of several rows the later one adds what was absent."""
    lines = whole_lines(text)
    start = next((at for at, line in enumerate(lines) if "DeviceId" in line), None)
    if start is None:
        return Page(reason=no_cards(text, "heading"))
    builders: dict[str, CardBuilder] = {}
    for row in csv_rows(lines[start:]):
        number = row.get("DeviceId", "").strip() if isinstance(row, dict) else ""
        if not isinstance(row, dict) or not number.isdigit():
            continue
        device = f"xpu{number}"
        builder = builders.setdefault(device, CardBuilder(device))
        for name, (quantity, scale) in _COLUMNS.items():
            builder.take(quantity, row.get(name), scale)
    cards: tuple[Card, ...] = tuple(builder.card() for builder in builders.values())
    return Page(cards=cards, reason=None if cards else "absent: no whole row below heading")


def parse_discovery(text: str) -> dict[str, str]:
    """`xpu0` by the PCI address that `xpu-smi discovery -j` gives."""
    found = {}
    for document in json_documents(text)[0]:
        listed = document.get("device_list") if isinstance(document, dict) else None
        for entry in listed if isinstance(listed, list) else ():
            address = address_of(entry.get("pci_bdf_address")) if isinstance(entry, dict) else None
            if address:
                found[f"xpu{entry.get('device_id')}"] = address
    return found


XPU_SMI = Tool(
    name="xpu-smi",
    command=("xpu-smi", "dump", "-d", "-1", "-m", "0,1,3,4,18", "-n", "2"),
    parse=parse_xpu_smi,
    yields=(*(quantity for quantity, _ in _COLUMNS.values()), "vram_total_bytes"),
    names=Names(command=("xpu-smi", "discovery", "-j"), parse=parse_discovery),
    also=(("xpu-smi", "-v"), ("xpu-smi", "stats", "-d", "0")),
)
