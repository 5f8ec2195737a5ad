"""Text of `nvidia-smi`, `npu-smi` and `mx-smi`: snapshots of the other vendors' cards."""

from __future__ import annotations

import csv
import io
import re

from .gpu_reading import Card, CardBuilder, Page, whole_lines

_MIB = 1 << 20
_EMPTY = "absent: empty output"
_NVIDIA = {
    "memory.used": ("vram_used_bytes", _MIB),
    "memory.total": ("vram_total_bytes", _MIB),
    "utilization.gpu": ("gpu_busy_percent", 1),
    "power.draw": ("power_w", 1),
    "temperature.gpu": ("temp_junction_c", 1),
}
_USAGE_LINE = re.compile(r"^\s*([\w%()\-/ .]+?)\s*[:：]\s*(.*?)\s*$")  # noqa: RUF001 - seen so
_NPU_USAGES = {
    "HBM Capacity(MB)": ("vram_total_bytes", _MIB),
    "Aicore Usage Rate(%)": ("gpu_busy_percent", 1),
    "HBM Bandwidth Usage Rate(%)": ("mem_busy_percent", 1),
    "NPU Real-time Power(W)": ("power_w", 1),
    "Temperature(C)": ("temp_junction_c", 1),
}
_PAIR = re.compile(r"(\d+)\s*/\s*(\d+)\s*$")
_BUS = re.compile(r"^[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9]$")
_MX = {
    "vis_vram total": ("vram_total_bytes", 1024),
    "vis_vram used": ("vram_used_bytes", 1024),
    "GPU": ("gpu_busy_percent", 1),
}
_TABLE_CELLS = 3


def parse_nvidia_smi(text: str) -> Page:
    """`nvidia-smi --query-gpu=... --format=csv,nounits`: columns are found by their heading.

    A quantity the card does not give is `[N/A]` or `[Not Supported]`.
    """
    lines = whole_lines(text)
    start = next((at for at, line in enumerate(lines) if "memory.used" in line), None)
    if start is None:
        shown = lines[0][:80] if lines else ""
        return Page(reason=f"absent: no heading in this output, which begins {shown!r}")
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
        for name, (quantity, scale) in _NVIDIA.items():
            value = cells.get(name)
            builder.take(quantity, value.strip("[] ") if value is not None else None, scale)
        cards.append(builder.card())
    return Page(cards=tuple(cards), reason=None if cards else "absent: no whole row below heading")


def parse_npu_info(text: str) -> Page:
    """`npu-smi info`: two lines a chip; the second die of a card gives `-` for power."""
    cards: list[Card] = []
    upper: list[str] | None = None
    for line in whole_lines(text):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|") or len(cells) < _TABLE_CELLS:
            upper = None
            continue
        if upper is not None and _BUS.match(cells[1]):
            cards.append(_npu_card(upper, cells))
            upper = None
        else:
            upper = cells
    return Page(cards=tuple(cards), reason=None if cards else _none(text, "chip"))


def _npu_card(upper: list[str], lower: list[str]) -> Card:
    builder = CardBuilder(f"npu {lower[1]}")
    first, second = upper[2].split(), lower[2].split()
    builder.take("power_w", first[0] if first else None)
    builder.take("temp_junction_c", first[1] if len(first) > 1 else None)
    builder.take("gpu_busy_percent", second[0] if second else None)
    hbm = _PAIR.search(lower[2])
    builder.take("vram_used_bytes", hbm.group(1) if hbm else None, _MIB)
    builder.take("vram_total_bytes", hbm.group(2) if hbm else None, _MIB)
    return builder.card()


def parse_npu_usages(text: str) -> Page:
    """`npu-smi info -t usages -i N`: `key : value` lines; occupancy is given in percent only."""
    return _key_lines(text, "npu", _NPU_USAGES, {"HBM Usage Rate(%)": "vram_used_percent"})


def parse_mx_smi(text: str) -> Page:
    """`mx-smi --show-memory --show-usage`: `key : number unit` lines, also with wide colons."""
    return _key_lines(text, "mx", _MX, {})


def _key_lines(
    text: str, device: str, wanted: dict[str, tuple[str, int]], extra: dict[str, str]
) -> Page:
    builder, seen = CardBuilder(device), 0
    for line in whole_lines(text):
        found = _USAGE_LINE.match(line)
        if found is None:
            continue
        key, words = found.group(1), found.group(2).split()
        value = words[0] if words else None
        if key in wanted:
            seen += 1
            builder.take(wanted[key][0], value, wanted[key][1])
        elif key in extra:
            builder.also(extra[key], value)
    if not seen:
        return Page(reason=_none(text, "known key"))
    return Page(cards=(builder.card(),))


def _none(text: str, what: str) -> str:
    return f"absent: no {what} in this output" if text.strip() else _EMPTY
