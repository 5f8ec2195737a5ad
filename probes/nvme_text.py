"""Output of nvme-cli and the rdma tool: witnesses of what sysfs says, in each of their shapes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .gpu_reading import number

_KELVIN_0C = 273
# One unit of data_units_read is a thousand blocks of 512 bytes.
BYTES_PER_DATA_UNIT = 512_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmePath:
    """One path of `nvme list-subsys`."""

    controller: str
    subsystem: str | None
    nqn: str | None
    transport: str | None
    address: dict[str, str]
    state: str | None


def parse_list_subsys(text: str) -> tuple[list[NvmePath], str | None]:
    """Paths of `nvme list-subsys -o json`, versions 1 and 2; a reason when there is no JSON.

    Version 1 puts names and paths alternately into one list; version 2 nests them under hosts.
    """
    document = _json(text)
    if document is None:
        return [], "absent: no JSON in this output"
    hosts = document if isinstance(document, list) else [document]
    paths: list[NvmePath] = []
    for host in hosts:
        listed = host.get("Subsystems") if isinstance(host, dict) else None
        paths += _paths(listed if isinstance(listed, list) else [])
    return paths, None if paths else "absent: no subsystem has a path"


def _paths(subsystems: list[Any]) -> list[NvmePath]:
    found: list[NvmePath] = []
    name, nqn = None, None
    for entry in subsystems:
        if not isinstance(entry, dict):
            continue
        if "NQN" in entry:
            name, nqn = _text(entry.get("Name")), _text(entry.get("NQN"))
        listed = entry.get("Paths")
        for path in listed if isinstance(listed, list) else ():
            controller = _text(path.get("Name")) if isinstance(path, dict) else None
            if controller is not None:
                found.append(_path(path, controller, name, nqn))
    return found


def _path(path: dict[str, Any], controller: str, name: str | None, nqn: str | None) -> NvmePath:
    address = _text(path.get("Address")) or ""
    pairs = [word.partition("=") for word in address.replace(",", " ").split()]
    return NvmePath(
        controller=controller,
        subsystem=name,
        nqn=nqn,
        transport=_text(path.get("Transport")),
        address={key: value for key, equals, value in pairs if equals} or {"address": address},
        state=_text(path.get("State")),
    )


def parse_smart_log(text: str) -> dict[str, float]:
    """`nvme smart-log -o json`: numbers, some of them written as text; temperature in Celsius.

    Over fabrics this is the target's view, and a target may give a temperature of 0 Kelvin: absent.
    """
    document = _json(text)
    if not isinstance(document, dict):
        return {}
    found = {str(key): value for key, raw in document.items() if (value := number(raw)) is not None}
    kelvin = found.pop("temperature", 0.0)
    if kelvin > 0:
        found["temperature_c"] = kelvin - _KELVIN_0C
    if "data_units_read" in found:
        found["read_bytes"] = found["data_units_read"] * BYTES_PER_DATA_UNIT
    return found


def parse_smartctl(text: str) -> dict[str, float]:
    """`smartctl -j -a`: the same log, temperature in Celsius already."""
    document = _json(text)
    log = document.get("nvme_smart_health_information_log") if isinstance(document, dict) else None
    if not isinstance(log, dict):
        return {}
    found = {str(key): value for key, raw in log.items() if (value := number(raw)) is not None}
    if "temperature" in found:
        found["temperature_c"] = found.pop("temperature")
    if "data_units_read" in found:
        found["read_bytes"] = found["data_units_read"] * BYTES_PER_DATA_UNIT
    return found


def parse_rdma_statistic(text: str) -> dict[str, dict[str, int]]:
    """`rdma -j statistic show`: counters by `<adapter>/<port>`."""
    document = _json(text)
    found: dict[str, dict[str, int]] = {}
    for entry in document if isinstance(document, list) else ():
        if not isinstance(entry, dict):
            continue
        name, port = _text(entry.get("ifname")), entry.get("port")
        if name is None or isinstance(port, bool) or not isinstance(port, int):
            continue
        found[f"{name}/{port}"] = {
            str(key): value
            for key, value in entry.items()
            if key != "port" and isinstance(value, int) and not isinstance(value, bool)
        }
    return found


def parse_rdma_links(text: str) -> dict[str, dict[str, str]]:
    """`rdma -j link show`: state and interface by `<adapter>/<port>`."""
    document = _json(text)
    found: dict[str, dict[str, str]] = {}
    for entry in document if isinstance(document, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("ifname"), str):
            words = {str(key): value for key, value in entry.items() if isinstance(value, str)}
            found[f"{entry['ifname']}/{entry.get('port')}"] = words
    return found


def _json(text: str) -> Any | None:
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    if not starts:
        return None
    try:
        document, _ = json.JSONDecoder().raw_decode(text, min(starts))
    except (ValueError, RecursionError):
        return None
    return document


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
