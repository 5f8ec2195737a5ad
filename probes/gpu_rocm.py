"""`rocm-smi` output of ROCm 5 to 7.2: `--json` first, `--csv` and the long table as witnesses.

All values are strings; a metric that failed loses its key; a card without keys is not there; the
exit code says nothing. Two traps of names: `GPU memory use (%)` of 5.x to 6.1.0 is the activity of
the memory controller, not occupancy; and the power's key depends on the ASIC, not on the release.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from .gpu_reading import Card, CardBuilder, Page, json_documents, whole_lines

_CARD = re.compile(r"^card(\d{1,4})$")
_LINE = re.compile(r"^GPU\[(\d{1,4})\]\s*:\s*(.*)$")
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
_EXTRA = {"GPU Memory Allocated (VRAM%)": "vram_used_percent"}
_NO_OUTPUT = "absent: empty output (no driver, nothing supported, or no such card)"


def parse_rocm_smi(text: str) -> Page:
    """Cards of one `rocm-smi` run, from whichever of its three forms this text has."""
    if not text.strip():
        return Page(reason=_NO_OUTPUT)
    documents, words = json_documents(text)
    for document in documents:
        if isinstance(document, dict):
            return _from_json(document, words)
    if "device," in text:
        return _from_csv(text)
    cards = _from_table(text)
    if cards:
        return Page(cards=cards)
    return Page(reason=_refusal(words), notes=tuple(words))


def parse_rocm_pids(text: str) -> dict[str, dict[str, float]]:
    """`--showpids --json`: VRAM bytes and number of GPUs by process, `PID6591` style.

    Fields are split by commas and a process may have a comma in its name: counted from the end.
    """
    found: dict[str, dict[str, float]] = {}
    for document in json_documents(text)[0]:
        system = document.get("system") if isinstance(document, dict) else None
        for key, value in (system or {}).items() if isinstance(system, dict) else ():
            fields = [part.strip() for part in value.split(",")] if isinstance(value, str) else []
            if not (key.upper().startswith("PID") and len(fields) >= 5):  # noqa: PLR2004
                continue
            gpus, vram = fields[-4], fields[-3]
            if gpus.isdigit() and vram.isdigit():
                found[key] = {"gpus": float(gpus), "vram_used_bytes": float(vram)}
    return found


def _from_json(document: dict[str, Any], words: list[str]) -> Page:
    cards = []
    for name, metrics in document.items():
        if not (_CARD.match(str(name)) and isinstance(metrics, dict)):
            continue
        builder = CardBuilder(str(name))
        for key, value in metrics.items():
            _metric(builder, str(key), value)
        cards.append(builder.card())
    reason = None if cards else "absent: no card in the JSON"
    return Page(cards=tuple(cards), reason=reason, notes=tuple(words))


def _metric(builder: CardBuilder, key: str, value: object) -> None:
    # Some keys of `-a` end with a colon.
    name = key.strip().rstrip(":")
    if name in _KEYS:
        builder.take(_KEYS[name], value)
    elif name in _EXTRA:
        builder.also(_EXTRA[name], value)
    elif (sensor := _TEMPERATURE.match(name)) and sensor.group(1).lower() in _SENSORS:
        builder.take(_SENSORS[sensor.group(1).lower()], value)


def _from_csv(text: str) -> Page:
    body = "\n".join(whole_lines(text[text.index("device,") :]))
    cards = []
    try:
        for row in csv.DictReader(io.StringIO(body)):
            name = row.get("device") or ""
            if not _CARD.match(name):
                continue
            builder = CardBuilder(name)
            for key, value in row.items():
                if isinstance(key, str):
                    _metric(builder, key, value)
            cards.append(builder.card())
    except csv.Error as error:
        return Page(cards=tuple(cards), reason=f"failed: csv.Error: {error}")
    return Page(cards=tuple(cards), reason=None if cards else "absent: no card in the CSV")


def _from_table(text: str) -> tuple[Card, ...]:
    builders: dict[str, CardBuilder] = {}
    for line in whole_lines(text):
        found = _LINE.match(line)
        if found is None:
            continue
        key, _, value = found.group(2).rpartition(": ")
        name = f"card{found.group(1)}"
        builder = builders.setdefault(name, CardBuilder(name))
        _metric(builder, key, value)
    return tuple(builder.card() for builder in builders.values())


def _refusal(words: list[str]) -> str:
    shown = words[0] if words else ""
    return f"absent: no card in this output, which begins {shown[:80]!r}"
