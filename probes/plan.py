"""What to record: the plan file of `record`, checked key by key before anything starts."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .errors import ProbeError

if TYPE_CHECKING:
    from collections.abc import Callable

# Counters of disks are what certificates rest on; the rest is context and may be coarser.
DEFAULT_RATES_HZ = {"disk": 10.0, "process": 2.0, "host": 1.0, "engine": 1.0, "topology": 0.2}
DEFAULT_RATES_HZ |= {"nvme": 2.0, "nic": 1.0, "gpu": 1.0, "nfs": 5.0}
# Beyond this the sampler would disturb what it watches.
MAX_RATE_HZ = 100.0
# Slower than this a probe would not be seen to have stopped.
MIN_RATE_HZ = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one `record` process watches on its host."""

    host: str = field(default_factory=socket.gethostname)
    block_devices: tuple[str, ...] = ()  # kernel names
    engines: dict[str, int] = field(default_factory=dict)  # instance -> root pid
    metrics: dict[str, str] = field(default_factory=dict)  # instance -> URL of /metrics
    rates_hz: dict[str, float] = field(default_factory=lambda: dict(DEFAULT_RATES_HZ))
    iostat: bool = True
    nfs_dirs: tuple[str, ...] = ()  # absolute; the NFS mounts they lie on are watched
    nics: tuple[str, ...] = ()  # network interfaces, with the RDMA ports on them
    gpu: bool = True  # look for GPUs; a host without says so once
    nvme: bool = True  # controller states; likewise

    def with_overrides(self, values: dict[str, Any], where: str) -> Plan:
        """This plan with the given keys replaced; rates are merged with the present ones."""
        unknown = sorted(set(values) - set(_CHECKS))
        if unknown:
            raise _refused(f"unknown key {unknown[0]!r}", where, f"use one of {_KEYS}")
        checked: dict[str, Any] = {key: _CHECKS[key](values[key], where) for key in values}
        if "rates_hz" in checked:
            checked["rates_hz"] = {**self.rates_hz, **checked["rates_hz"]}
        return replace(self, **checked)


def load_plan(path: Path) -> Plan:
    """Read a plan file; ProbeError names the key that is wrong."""
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        what = f"cannot read the plan: {error.strerror}"
        raise _refused(what, str(path), "check --plan") from error
    except ValueError as error:
        what = f"the plan is not JSON: {error}"
        raise _refused(what, str(path), "write a JSON object") from error
    if not isinstance(values, dict):
        raise _refused("the plan is not a JSON object", str(path), f"use the keys {_KEYS}")
    return Plan().with_overrides(values, str(path))


def _refused(what: str, where: str, next_step: str) -> ProbeError:
    return ProbeError(what, where=where, next_step=next_step)


def _host(value: object, where: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise _refused(f"host is {value!r}", where, "give the host a name")


def kernel_name(device: str) -> str:
    """`/dev/mapper/kv` or `/dev/md0` as the kernel calls it; a bare name stays as it is."""
    return Path(os.path.realpath(device)).name if device.startswith("/") else device


def _block_devices(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) and name for name in value):
        return tuple(dict.fromkeys(kernel_name(name) for name in value))
    raise _refused(f"block_devices is {value!r}", where, 'give kernel names: ["md0", "nvme0n1"]')


def _engines(value: object, where: str) -> dict[str, int]:
    if isinstance(value, dict) and all(type(pid) is int and pid > 0 for pid in value.values()):
        return value
    raise _refused(f"engines is {value!r}", where, 'give the root pid of each: {"a": 4711}')


def _metrics(value: object, where: str) -> dict[str, str]:
    if isinstance(value, dict) and all(_is_url(url) for url in value.values()):
        return value
    next_step = 'give a URL each: {"a": "http://127.0.0.1:8000/metrics"}'
    raise _refused(f"metrics is {value!r}", where, next_step)


def _is_url(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _rates_hz(value: object, where: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise _refused(f"rates_hz is {value!r}", where, 'give rates: {"disk": 10}')
    for name, rate in value.items():
        if name not in DEFAULT_RATES_HZ:
            known = ", ".join(DEFAULT_RATES_HZ)
            raise _refused(f"rates_hz names no probe {name!r}", where, f"use {known}")
        number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
        if not number or not MIN_RATE_HZ <= rate <= MAX_RATE_HZ:
            span = f"a rate between {MIN_RATE_HZ:g} and {MAX_RATE_HZ:g} Hz"
            raise _refused(f"rates_hz of {name} is {rate!r}", where, f"give {span}")
    return {name: float(rate) for name, rate in value.items()}


def _nics(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) and name for name in value):
        return tuple(dict.fromkeys(value))
    raise _refused(f"nics is {value!r}", where, 'give interface names: ["ens1f0np0"]')


def _nfs_dirs(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(
        isinstance(name, str) and name.startswith("/") for name in value
    ):
        return tuple(dict.fromkeys(value))
    raise _refused(f"nfs_dirs is {value!r}", where, 'give absolute paths: ["/mnt/nfs/models"]')


def _flag(key: str) -> Callable[[object, str], bool]:
    def check(value: object, where: str) -> bool:
        if isinstance(value, bool):
            return value
        raise _refused(f"{key} is {value!r}", where, "give true or false")

    return check


_CHECKS: dict[str, Callable[[object, str], Any]] = {
    "host": _host,
    "block_devices": _block_devices,
    "engines": _engines,
    "metrics": _metrics,
    "rates_hz": _rates_hz,
    "iostat": _flag("iostat"),
    "nfs_dirs": _nfs_dirs,
    "nics": _nics,
    "gpu": _flag("gpu"),
    "nvme": _flag("nvme"),
}
_KEYS = ", ".join(_CHECKS)
