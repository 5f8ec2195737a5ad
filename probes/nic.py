"""The network probe: interface, driver and RDMA port counters of the named interfaces.

Rows: device `eth0` with counters `netdev.*` and `ethtool.*`, device `mlx5_0/1` with `ib.*` and
`hw.*`. Names behind the dot are the kernel's or driver's own. `ib.*_bytes` is a data counter times
four, its raw words stand beside it. A wrapped 32-bit counter is continued, and the wrap named.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .epochs import EpochTracker
from .errors import reason_of
from .kernel_files import names_in, read_whole
from .nic_counters import (
    BYTES_PER_DATA_WORD,
    DATA_WORDS,
    NO_COUNTERS,
    Unwrapper,
    is_per_queue,
    is_q_counter,
    port_counter,
)
from .nic_ethtool import EthtoolStats
from .readings import INT64_MAX, Reading, Sample, Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_WORDS = ("operstate", "carrier", "speed", "mtu")
_PORT_WORDS = ("state", "phys_state", "rate", "link_layer")
# Among driver statistics are gauges, such as open queue pairs; these only grow.
_GROWING = ("_bytes", "_packets", "_pkts", "_data")
_GONE = "absent: the kernel has no interface of this name in this network namespace"


class NicProbe:
    """All counters of the named interfaces and of the RDMA ports on them."""

    name = "nic"

    def __init__(self, interfaces: tuple[str, ...], sys_root: Path, *, ioctl: bool = True) -> None:
        self._interfaces = interfaces
        self._net = str(sys_root / "class" / "net")
        self._ib = str(sys_root / "class" / "infiniband")
        self._epochs = EpochTracker()
        self._unwrap = Unwrapper()
        self._ioctl = ioctl
        self._stats: dict[str, EthtoolStats] = {}
        self._ports: dict[str, list[str]] = {}

    def sample(self) -> Sequence[Sample]:
        """One sample an interface and one a port, each with the instant of its own read."""
        samples = []
        for interface in self._interfaces:
            samples.append(self._sample(interface, self._interface))
            if interface not in self._ports:
                self._ports[interface] = rdma_ports(self._ib, self._net, interface)
            samples += [self._sample(port, self._port) for port in self._ports[interface]]
        return samples

    def close(self) -> None:
        """Let go of the sockets."""
        for stats in self._stats.values():
            stats.close()

    def _sample(self, device: str, read: Callable[[str], list[Reading]]) -> Sample:
        watch = Stopwatch()
        return watch.sample(self.name, read(device))

    def _interface(self, name: str) -> list[Reading]:
        root = f"{self._net}/{name}"
        if not os.path.isdir(root):  # noqa: PTH112 - asked with every sample
            self._epochs.gone(name)
            self._stats.pop(name, None)
            return [Reading(device=name, counter="operstate", reason=_GONE)]
        words = _words(name, root, _WORDS)
        cause = self._epochs.identity(name, "ifindex", _text(f"{root}/ifindex"))
        values, reasons = _directory(f"{root}/statistics", "netdev.")
        driver, reason = self._driver(name)
        values |= driver
        if reason is not None:
            reasons["ethtool"] = reason
        return [*words, *self._rows(name, values, reasons, cause)]

    def _driver(self, name: str) -> tuple[dict[str, int], str | None]:
        if not self._ioctl:
            return {}, "absent: not asked"
        try:
            stats = self._stats.get(name) or EthtoolStats(name)
            self._stats[name] = stats
            found = stats.read()
        except OSError as error:
            return {}, reason_of(error)
        return {
            f"ethtool.{key}": value
            for key, value in found.items()
            # What exceeds the tables' 63 bits is a driver's error mark.
            if not is_per_queue(key) and value <= INT64_MAX
        }, None

    def _port(self, device: str) -> list[Reading]:
        adapter, _, port = device.partition("/")
        root = f"{self._ib}/{adapter}/ports/{port}"
        values, reasons = _directory(f"{root}/counters", "ib.")
        hardware, without = _directory(f"{root}/hw_counters", "hw.")
        wrapped = []
        for name in [key for key in hardware if is_q_counter(key.removeprefix("hw."))]:
            hardware[name], turned = self._unwrap.take(device, name, hardware[name])
            wrapped += [name] if turned else []
        values |= hardware
        for key in DATA_WORDS & {name.removeprefix("ib.") for name in values}:
            total = values[f"ib.{key}"] * BYTES_PER_DATA_WORD
            if total <= INT64_MAX:
                values[f"ib.{key}_bytes"] = total
        rows = self._rows(device, values, reasons | without, None)
        text = ",".join(wrapped)
        named = [Reading(device=device, counter="wrapped", text=text)] if wrapped else []
        return [*_words(device, root, _PORT_WORDS), *rows, *named]

    def _rows(
        self, device: str, values: dict[str, int], reasons: dict[str, str], cause: str | None
    ) -> list[Reading]:
        growing = {name: value for name, value in values.items() if name.endswith(_GROWING)}
        back = self._epochs.counters(device, growing) if growing else None
        epoch = self._epochs.current(device)
        rows = [
            Reading(device=device, counter=name, value=value, epoch=epoch)
            for name, value in values.items()
        ]
        rows += [
            Reading(device=device, counter=name, reason=reason, epoch=epoch)
            for name, reason in reasons.items()
        ]
        return rows + [
            Reading(device=device, counter="epoch_cause", text=why, epoch=epoch)
            for why in (cause, back)
            if why
        ]


def rdma_ports(ib_root: str, net_root: str, interface: str) -> list[str]:
    """`<adapter>/<port>` of every RDMA port on an interface, by its PCI device or by its GIDs."""
    found = {
        f"{adapter}/{port}"
        for adapter in names_in(f"{net_root}/{interface}/device/infiniband")
        for port in names_in(f"{ib_root}/{adapter}/ports")
    }
    for adapter in names_in(ib_root):
        for port in names_in(f"{ib_root}/{adapter}/ports"):
            gids = f"{ib_root}/{adapter}/ports/{port}/gid_attrs/ndevs"
            if any(_text(f"{gids}/{gid}") == interface for gid in names_in(gids)):
                found.add(f"{adapter}/{port}")
    return sorted(found)


def _directory(root: str, prefix: str) -> tuple[dict[str, int], dict[str, str]]:
    """Every counter file of a directory; a file that is no counter is a reason."""
    values: dict[str, int] = {}
    reasons: dict[str, str] = {}
    names = names_in(root)
    if not names:
        return {}, {prefix.rstrip("."): f"absent: no directory {root}"}
    for name in names:
        if name in NO_COUNTERS:
            continue
        try:
            value, reason = port_counter(read_whole(f"{root}/{name}"))
        except OSError as error:
            value, reason = None, reason_of(error)
        if value is None:
            reasons[prefix + name] = reason or "failed"
        else:
            values[prefix + name] = value
    return values, reasons


def _words(device: str, root: str, names: tuple[str, ...]) -> list[Reading]:
    rows = []
    for name in names:
        try:
            text = read_whole(f"{root}/{name}").decode("utf-8", "replace").strip()
        except OSError as error:
            # `carrier` and `speed` of an interface that is down answer EINVAL.
            rows.append(Reading(device=device, counter=name, reason=reason_of(error)))
        else:
            rows.append(Reading(device=device, counter=name, text=text))
    return rows


def _text(path: str) -> str | None:
    try:
        return read_whole(path).decode("utf-8", "replace").strip()
    except OSError:
        return None
