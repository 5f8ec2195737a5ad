"""Sysfs trees of adapters, rebuilt from captures below a directory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from probes.tests.support.captures import capture

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def mlx5_tree(root: Path) -> Path:
    """One mlx5 port as public posts show it, on interface ens1; the interface's words made up."""
    for line in capture("nic_mlx5_hw_counters_grep.txt").splitlines():
        path, _, value = line.removeprefix("/sys/").partition(":")
        write(root / path, value.strip())
    net = root / "class/net/ens1"
    for name, value in {
        "operstate": "up",
        "carrier": "1",
        "speed": "100000",
        "mtu": "9000",
    }.items():
        write(net / name, value)
    write(net / "ifindex", "4")
    write(net / "statistics/rx_bytes", "1704131709")
    write(net / "statistics/rx_packets", "11935233")
    (net / "device/infiniband/mlx5_0").mkdir(parents=True)
    return root


def rxe_tree(root: Path, moment: str) -> Path:
    """The captured soft-RoCE port on eth0 at one moment of its sequence."""
    port = root / "class/infiniband/rxe0/ports/1"
    for name, value in _moment("nic_rxe_hw_counters_seq.txt", moment).items():
        write(port / "hw_counters" / name, value)
    write(port / "state", "4: ACTIVE")
    write(port / "gid_attrs/ndevs/0", "eth0")
    for path, value in _moment("nic_netdev_seq.txt", moment).items():
        write(root / path.removeprefix("/sys/"), value)
    return root


def _moment(name: str, moment: str) -> dict[str, str]:
    for block in re.split(r"^# ", capture(name), flags=re.MULTILINE)[1:]:
        head, _, body = block.partition("\n")
        if head.strip() == moment:
            pairs = [re.split(r"[: ]", line, maxsplit=1) for line in body.splitlines()]
            return {key: value.strip() for key, value in pairs}
    raise KeyError(moment)


def nvme_tree(root: Path) -> Path:
    """The captured controllers, all live."""
    for line in capture("sysfs_nvme.txt").splitlines():
        name, _, value = line.partition(": ")
        write(root / "class/nvme" / name, value)
    return root


def in_fault(root: Path) -> Path:
    """The states captured four seconds into a link fault."""
    for line in capture("nvme_state_fault.txt").splitlines():
        name, _, state = line.partition(" ")
        if name.startswith("nvme"):
            write(root / "class/nvme" / name / "state", state)
    return root


AMD_ADDRESS = "0000:0c:00.0"


def amd_tree(root: Path) -> Path:
    """One card as amdgpu's sysfs ABI describes it; made up, no AMD card was at hand."""
    card = root / "bus/pci/drivers/amdgpu" / AMD_ADDRESS
    files = {
        "mem_info_vram_used": "296747008",
        "mem_info_vram_total": "206141652992",
        "mem_info_gtt_used": "15000000",
        "gpu_busy_percent": "0",
        "hwmon/hwmon3/power1_input": "148000000",
        "hwmon/hwmon3/temp2_label": "junction",
        "hwmon/hwmon3/temp2_input": "37000",
        "hwmon/hwmon3/temp3_label": "mem",
        "hwmon/hwmon3/temp3_input": "31000",
    }
    for name, text in files.items():
        write(card / name, text)
    write(card.parent / "bind", "")
    return root
