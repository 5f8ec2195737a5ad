"""Commands whose raw texts are kept beside the files: each optional, none of them in a loop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..kernel_files import names_in

if TYPE_CHECKING:
    from pathlib import Path

_FIXED: dict[str, tuple[str, ...]] = {
    "lscpu": ("lscpu", "-J"),
    "numactl": ("numactl", "-H"),
    "findmnt": ("findmnt", "-J", "-o", "TARGET,SOURCE,FSTYPE,OPTIONS"),
    "lsblk": ("lsblk", "-J", "-o", "NAME,KNAME,TYPE,FSTYPE,SIZE,MOUNTPOINT,TRAN,ROTA"),
    "lspci": ("lspci", "-nn"),
    "dmidecode": ("dmidecode", "-t", "bios,system,memory"),
    "nvme list": ("nvme", "list", "-o", "json"),
    "nvme list-subsys": ("nvme", "list-subsys", "-o", "json"),
    "rdma link": ("rdma", "-j", "link", "show"),
    "rdma statistic": ("rdma", "-j", "statistic", "show"),
    "ibv_devinfo": ("ibv_devinfo", "-v"),
    "amd-smi version": ("amd-smi", "version", "--json"),
    "amd-smi static": ("amd-smi", "static", "--json"),
    "rocm-smi topology": ("rocm-smi", "--showtopo"),
    "rocm-smi processes": ("rocm-smi", "--showpids", "--json"),
    "timedatectl": ("timedatectl", "show"),
    "chronyc": ("chronyc", "-n", "tracking"),
    "iostat version": ("iostat", "-V"),
    "containers": ("docker", "ps", "--no-trunc", "--format", "{{.Image}} {{.ID}} {{.Status}}"),
    "processes": ("ps", "-eo", "pid,ppid,pcpu,rss,comm", "--sort=-pcpu"),
}
_ETHTOOL = {"driver": "-i", "pause": "-a", "rings": "-g", "features": "-k", "coalescing": "-c"}
_VIRTUAL_NET = re.compile(r"^(?:lo|veth|docker|br-|virbr|ifb|dummy|tap|tun|bond_slave)")
_MD = re.compile(r"^md\d+$")
_CONTROLLER = re.compile(r"^nvme\d+$")


def tool_commands(root: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Every command with the name it is recorded under; per device where devices are there."""
    found = list(_FIXED.items())
    for interface in names_in(f"{root}/sys/class/net"):
        if _VIRTUAL_NET.match(interface):
            continue
        found.append((f"ethtool {interface}", ("ethtool", interface)))
        found += [
            (f"ethtool {interface} {what}", ("ethtool", flag, interface))
            for what, flag in _ETHTOOL.items()
        ]
        found.append((f"ethtool {interface} statistics", ("ethtool", "-S", interface)))
    for name in names_in(f"{root}/sys/block"):
        if _MD.match(name):
            found.append((f"mdadm {name}", ("mdadm", "--detail", f"/dev/{name}")))
    for name in names_in(f"{root}/sys/class/nvme"):
        if _CONTROLLER.match(name):
            found.append((f"id-ctrl {name}", ("nvme", "id-ctrl", f"/dev/{name}", "-o", "json")))
            found.append((f"smart {name}", ("nvme", "smart-log", f"/dev/{name}", "-o", "json")))
    return found
