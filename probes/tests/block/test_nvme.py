"""NVMe states from captures (`capture only`: this kernel has no NVMe, md or RDMA)."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from probes.block.nvme import NvmeSampler
from probes.block.sysfs import Sysfs
from probes.block.topology import WatchedDevices
from probes.tests.support.captures import captured_host, snapshots
from probes.tests.support.kernel_trees import in_fault, nvme_tree
from probes.tests.support.samplers import rows

if TYPE_CHECKING:
    from pathlib import Path

RDMA = ("nvme1", "nvme2", "nvme3", "nvme4")


def test_a_link_fault_shows_in_the_controllers_state_while_the_array_stays_clean(
    tmp_path: Path,
) -> None:
    disks = snapshots("diskstats_md0_nvmeof_kernel6.12.txt")["before_direct_read"]
    sys_root, proc_root = captured_host(tmp_path, disks)
    watched = WatchedDevices(("md0",), Sysfs(sys_root, proc_root))
    watched.resolve()
    probe = NvmeSampler(watched, sys_root)
    found = rows(probe)
    assert {found[name, "state"].text for name in RDMA} == {"live"}
    assert found["nvme1", "transport"].text == "rdma"
    assert found["nvme1", "address"].text == "traddr=10.0.0.2,trsvcid=4420"
    assert found["md0", "array_state"].text == "clean"
    in_fault(sys_root)
    found = rows(probe)
    assert {found[name, "state"].text for name in RDMA} == {"connecting"}
    assert found["nvme0", "state"].text == "live"
    assert found["md0", "array_state"].text == "clean"


def test_settings_are_written_once_and_padding_is_cut(tmp_path: Path) -> None:
    probe = NvmeSampler(None, nvme_tree(tmp_path))
    assert rows(probe)["nvme0", "model"].text == "QEMU NVMe Ctrl"
    assert ("nvme0", "model") not in rows(probe)


def test_a_controller_that_went_and_came_is_absent_and_then_in_a_new_epoch(tmp_path: Path) -> None:
    root = nvme_tree(tmp_path)
    probe = NvmeSampler(None, root)
    rows(probe)
    kept = tmp_path / "kept"
    shutil.move(root / "class/nvme/nvme3", kept)
    gone = rows(probe)["nvme3", "state"]
    assert (gone.text, gone.reason) == (None, "absent: the controller is gone")
    shutil.move(kept, root / "class/nvme/nvme3")
    back = rows(probe)
    assert back["nvme3", "state"].epoch == 1
    assert "absent" in (back["nvme3", "epoch_cause"].text or "")


def test_another_address_is_another_controller(tmp_path: Path) -> None:
    root = nvme_tree(tmp_path)
    probe = NvmeSampler(None, root)
    rows(probe)
    (root / "class/nvme/nvme1/address").write_text("traddr=10.0.0.9,trsvcid=4420\n")
    found = rows(probe)
    assert found["nvme1", "state"].epoch == 1
    assert "10.0.0.9" in (found["nvme1", "epoch_cause"].text or "")


def test_a_host_without_nvme_says_so_once(tmp_path: Path) -> None:
    probe = NvmeSampler(None, tmp_path)
    assert (rows(probe)["-", "controllers"].reason or "").startswith("absent")
    assert probe.sample() == []
