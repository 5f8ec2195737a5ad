"""The network probe: interface, driver and RDMA port counters of the named interfaces.

Rows: device `eth0` with counters `netdev.*` and `ethtool.*`, device `mlx5_0/1` with `ib.*` and
`hw.*`. Names behind the dot are the kernel's or driver's own. `ib.*_bytes` is a data counter times
four; its raw words stand beside it. A wrapped 32-bit counter is continued, and `wrapped` names it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..epochs import EpochTracker
from ..errors import reason_of
from ..kernel_files import names_in, read_whole, read_word, word_or_none
from ..plan import Setting, names
from ..probe import Context, Probe, Sampler, Status, Thread
from ..samples import INT64_MAX, Batch, Sample, Stopwatch, samples_of
from .counters import (
    BYTES_PER_DATA_WORD,
    DATA_WORDS,
    NO_COUNTERS,
    Unwrapper,
    is_per_queue,
    is_q_counter,
    port_counter,
)
from .ethtool import EthtoolStats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

NAME = "nic"
NICS: Setting[tuple[str, ...]] = Setting(
    key="nics", default=(), accept=names, example='interface names: ["ens1f0np0"]'
)
_WORDS = ("operstate", "carrier", "speed", "mtu")
_PORT_WORDS = ("state", "phys_state", "rate", "link_layer")
# Among driver statistics are gauges, such as open queue pairs; these only grow.
_GROWING = ("_bytes", "_packets", "_pkts", "_data")
_GONE = "absent: the kernel has no interface of this name in this network namespace"


class NicSampler:
    """All counters of the named interfaces and of the RDMA ports on them."""

    def __init__(self, interfaces: tuple[str, ...], sys_root: Path) -> None:
        self._interfaces = interfaces
        self._net = str(sys_root / "class" / "net")
        self._ib = str(sys_root / "class" / "infiniband")
        self._epochs = EpochTracker()
        self._unwrap = Unwrapper()
        self._stats: dict[str, EthtoolStats] = {}
        self._ports: dict[str, list[str]] = {}

    def sample(self) -> Sequence[Batch]:
        """One batch an interface and one a port, each with the instant of its own read."""
        batches = []
        for interface in self._interfaces:
            batches.append(_batch(interface, self._interface))
            if interface not in self._ports:
                self._ports[interface] = rdma_ports(self._ib, self._net, interface)
            batches += [_batch(port, self._port) for port in self._ports[interface]]
        return batches

    def _interface(self, name: str) -> list[Sample]:
        root = f"{self._net}/{name}"
        if not os.path.isdir(root):  # noqa: PTH112 - asked with every sample
            self._epochs.gone(name)
            self._stats.pop(name, None)
            return samples_of(name, reasons={"operstate": _GONE})
        words = _words(name, root, _WORDS)
        cause = self._epochs.identity(name, "ifindex", word_or_none(f"{root}/ifindex"))
        values, reasons = _directory(f"{root}/statistics", "netdev.")
        try:
            values |= self._driver(name)
        except OSError as error:
            reasons["ethtool"] = reason_of(error)
        return [*words, *self._counted(name, values, reasons, cause)]

    def _driver(self, name: str) -> dict[str, int]:
        if name not in self._stats:
            self._stats[name] = EthtoolStats(name)
        return {
            f"ethtool.{key}": value
            for key, value in self._stats[name].read().items()
            # What exceeds 63 bits is a driver's error mark.
            if not is_per_queue(key) and value <= INT64_MAX
        }

    def _port(self, device: str) -> list[Sample]:
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
        named = {"wrapped": ",".join(wrapped)} if wrapped else {}
        return [
            *_words(device, root, _PORT_WORDS),
            *self._counted(device, values, reasons | without, None),
            *samples_of(device, texts=named),
        ]

    def _counted(
        self, device: str, values: dict[str, int], reasons: dict[str, str], cause: str | None
    ) -> list[Sample]:
        growing = {name: value for name, value in values.items() if name.endswith(_GROWING)}
        back = self._epochs.counters(device, growing) if growing else None
        epoch = self._epochs.current(device)
        return samples_of(device, values, reasons=reasons, epoch=epoch, causes=[cause, back])


def _batch(device: str, read: Callable[[str], list[Sample]]) -> Batch:
    watch = Stopwatch()
    return watch.batch(NAME, read(device))


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
            if any(word_or_none(f"{gids}/{gid}") == interface for gid in names_in(gids)):
                found.add(f"{adapter}/{port}")
    return sorted(found)


def _directory(root: str, prefix: str) -> tuple[dict[str, int], dict[str, str]]:
    """Every counter file of a directory; a file that is no counter is a reason."""
    values: dict[str, int] = {}
    reasons: dict[str, str] = {}
    found = names_in(root)
    if not found:
        return {}, {prefix.rstrip("."): f"absent: no directory {root}"}
    for name in found:
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


def _words(device: str, root: str, counters: Iterable[str]) -> list[Sample]:
    texts: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for name in counters:
        try:
            texts[name] = read_word(f"{root}/{name}")
        except OSError as error:
            # `carrier` and `speed` of an interface that is down answer EINVAL.
            reasons[name] = reason_of(error)
    return samples_of(device, texts=texts, reasons=reasons)


def _start(context: Context) -> Mapping[str, Sampler]:
    nics = context.plan[NICS]
    return {NAME: NicSampler(nics, context.sys_root)} if nics else {}


def _check(context: Context) -> Status:
    ib, net = (str(context.sys_root / "class" / kind) for kind in ("infiniband", "net"))
    interfaces = [name for name in names_in(net) if name != "lo"]
    ports = [port for name in interfaces for port in rdma_ports(ib, net, name)]
    sampler = NicSampler(tuple(interfaces), context.sys_root)
    samples = [one for batch in sampler.sample() for one in batch.samples]
    driver = {one.device for one in samples if one.counter.startswith("ethtool.")}
    detail = f"{', '.join(interfaces) or 'no interface'}; driver statistics of {len(driver)}; "
    detail += f"RDMA ports: {', '.join(ports) or 'absent'}"
    return Status(works="yes" if interfaces else "no", detail=detail)


NIC = Probe(
    name=NAME,
    start=_start,
    check=_check,
    rate_hz=1.0,
    thread=Thread.PATIENT,
    settings=(NICS,),
)
