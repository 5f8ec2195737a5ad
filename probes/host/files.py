"""The small files that describe a host: what must not change during a run, and what may.

An entry is a glob below the root directory. Files that are the same for all processors are listed
once by their value. A section without a file is recorded as unavailable, with the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import reason_of

if TYPE_CHECKING:
    from .identity import Identities

Value = str | dict[str, str]
# A file of settings has a line or two; a longer one is cut, and its length recorded.
_MAX_TEXT = 4096
# Devices made and removed by ordinary work; those under test are in the topology probe's rows.
_PASSING = re.compile(r"/(?:loop|ram|zram|sr|fd|nbd)\d+(?:/|$)")
_PASSING_NETS = re.compile(r"/net/(?:veth|docker|br-|virbr|ifb|dummy|tap|tun)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Files of one subject."""

    name: str
    globs: tuple[str, ...]
    identities: tuple[str, ...] = ()  # globs of serial numbers and addresses, recorded as digests
    together: bool = False  # one entry a file name, holding the distinct values


def _in(folder: str, names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names.split())


_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node/node*"
_PCI = "sys/bus/pci/devices/*"
_NVME = "sys/class/nvme/nvme*"
_NET = "sys/class/net/*"
_RDMA = "sys/class/infiniband/*"
_AMD = "sys/bus/pci/drivers/amdgpu/*"

STABLE = (
    Section(
        name="board",
        globs=_in("sys/class/dmi/id", "bios_* board_name product_name"),
        identities=_in("sys/class/dmi/id", "product_serial board_serial"),
    ),
    Section(
        name="kernel",
        globs=(
            *_in("proc", "version cmdline"),
            *_in("proc/sys/kernel", "random/boot_id numa_balancing"),
            "etc/os-release",
            "sys/module/nvme_core/parameters/*",
        ),
    ),
    Section(
        name="cpu",
        globs=_in(f"{_CPU}/cpu*/cpufreq", "scaling_driver scaling_governor"),
        together=True,
    ),
    Section(name="numa", globs=(*_in(_NODE, "cpulist distance"), *_in(_CPU, "smt/active online"))),
    Section(
        name="memory",
        globs=(
            *_in("sys/kernel/mm/transparent_hugepage", "enabled defrag"),
            *_in("proc/sys/vm", "swappiness dirty_* nr_hugepages vfs_cache_pressure"),
        ),
    ),
    Section(name="pci", globs=_in(_PCI, "max_link_speed max_link_width numa_node")),
    Section(
        name="block",
        globs=(
            *_in("sys/block/*/queue", "scheduler nr_requests read_ahead_kb max_sectors_kb"),
            *_in("sys/block/*/queue", "iostats rotational wbt_lat_usec write_cache"),
            "sys/block/*/size",
        ),
    ),
    Section(
        name="md", globs=_in("sys/block/md*/md", "level chunk_size raid_disks layout array_state")
    ),
    Section(
        name="nvme",
        globs=(
            *_in(_NVME, "transport address subsysnqn model firmware_rev cntlid state numa_node"),
            *_in(_NVME, "ctrl_loss_tmo reconnect_delay fast_io_fail_tmo kato queue_count sqsize"),
            "sys/class/nvme-subsystem/*/iopolicy",
        ),
        identities=_in(_NVME, "serial hostnqn"),
    ),
    Section(
        name="nic",
        globs=(
            *_in(_NET, "mtu speed operstate device/numa_node"),
            *_in(_RDMA, "fw_ver ports/*/state ports/*/rate ports/*/link_layer"),
        ),
        identities=(f"{_NET}/address", f"{_RDMA}/node_guid"),
    ),
    Section(
        name="gpu",
        globs=(
            "opt/rocm/.info/version",
            *_in("sys/module", "amdgpu/version nvidia/version"),
            *_in(_AMD, "vbios_version mem_info_vram_total"),
            *_in(_AMD, "current_compute_partition current_memory_partition"),
        ),
        identities=(f"{_AMD}/unique_id",),
    ),
    Section(name="clock", globs=_in("sys/devices/system/clocksource", "*/current_clocksource")),
)
VOLATILE = (
    Section(name="load", globs=_in("proc", "loadavg uptime")),
    Section(name="memory_now", globs=_in("proc", "meminfo swaps")),
    Section(name="mdstat", globs=("proc/mdstat",)),
    # An idle GPU slows its link down: these values mean something only under load.
    Section(
        name="pci_now",
        globs=_in(_PCI, "current_link_speed current_link_width aer_dev_correctable"),
    ),
    Section(name="gpu_now", globs=_in(_AMD, "mem_info_vram_used power_state")),
    Section(name="cgroup", globs=_in("sys/fs/cgroup", "cpu.max memory.max")),
)


def read_section(section: Section, root: Path, identities: Identities) -> Value | dict[str, Value]:
    """Path -> text of every file there is; a section without any is `unavailable`."""
    found: dict[str, Value] = {}
    for glob in (*section.globs, *section.identities):
        for path in sorted(root.glob(glob)):
            name = "/" + str(path.relative_to(root))
            if _PASSING.search(name) or _PASSING_NETS.search(name):
                continue
            text = _text(path)
            if isinstance(text, str) and glob in section.identities:
                text = identities.one(text)
            found[name] = text
    if not found:
        return {"unavailable": f"absent: no file {section.globs[0]}.."}
    return _distinct(found) if section.together else found


def _text(path: Path) -> Value:
    try:
        data = path.read_bytes()
    except OSError as error:
        return {"unavailable": reason_of(error)}
    text = data[:_MAX_TEXT].decode("utf-8", "replace").strip()
    return text if len(data) <= _MAX_TEXT else f"{text} .. of {len(data)} bytes"


def _distinct(found: dict[str, Value]) -> dict[str, Value]:
    values: dict[str, set[str]] = {}
    for name, value in found.items():
        values.setdefault(Path(name).name, set()).add(str(value))
    return {name: ", ".join(sorted(texts)) for name, texts in values.items()}
