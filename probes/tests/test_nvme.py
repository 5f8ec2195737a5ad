"""NVMe states from captures (`capture only`: this kernel has no NVMe, md or RDMA)."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from probes.disk import WatchedDevices
from probes.nvme import NvmeProbe, controller_of
from probes.nvme_text import parse_list_subsys, parse_smart_log, parse_smartctl
from probes.tests.captures import capture, captured_host, snapshots
from probes.tests.kernel_trees import in_fault, nvme_tree
from probes.topology import Sysfs

if TYPE_CHECKING:
    from pathlib import Path

    from probes.readings import Reading

RDMA = ("nvme1", "nvme2", "nvme3", "nvme4")


def rows(probe: NvmeProbe) -> dict[tuple[str, str], Reading]:
    return {(row.device, row.counter): row for one in probe.sample() for row in one.readings}


def test_a_link_fault_shows_in_the_controllers_state_while_the_array_stays_clean(
    tmp_path: Path,
) -> None:
    disks = snapshots("diskstats_md0_nvmeof_kernel6.12.txt")["before_direct_read"]
    sys_root, proc_root = captured_host(tmp_path, disks)
    watched = WatchedDevices(("md0",), Sysfs(sys_root, proc_root))
    watched.resolve()
    probe = NvmeProbe(watched, sys_root)
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
    probe = NvmeProbe(None, nvme_tree(tmp_path))
    assert rows(probe)["nvme0", "model"].text == "QEMU NVMe Ctrl"
    assert ("nvme0", "model") not in rows(probe)


def test_a_controller_that_went_and_came_is_absent_and_then_in_a_new_epoch(tmp_path: Path) -> None:
    root = nvme_tree(tmp_path)
    probe = NvmeProbe(None, root)
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
    probe = NvmeProbe(None, root)
    rows(probe)
    (root / "class/nvme/nvme1/address").write_text("traddr=10.0.0.9,trsvcid=4420\n")
    found = rows(probe)
    assert found["nvme1", "state"].epoch == 1
    assert "10.0.0.9" in (found["nvme1", "epoch_cause"].text or "")


def test_a_host_without_nvme_says_so_once(tmp_path: Path) -> None:
    probe = NvmeProbe(None, tmp_path)
    assert (rows(probe)["-", "controllers"].reason or "").startswith("absent")
    assert probe.sample() == []


def test_a_path_has_a_controller_and_a_head_has_none(tmp_path: Path) -> None:
    disks = snapshots("diskstats_md0_nvmeof_kernel6.12.txt")["before_direct_read"]
    sys_root, _ = captured_host(tmp_path, disks)
    assert controller_of(sys_root, "nvme1c1n1") == "nvme1"
    assert controller_of(sys_root, "nvme0n1") == "nvme0"
    assert controller_of(sys_root, "nvme1n1") is None


@pytest.mark.parametrize(
    ("name", "controllers", "states"),
    [
        ("list-subsys_cli2.3_live.json", {*RDMA, "nvme0"}, {"live"}),
        ("list-subsys_cli2.3_connecting.json", {*RDMA, "nvme0"}, {"live", "connecting"}),
        ("list-subsys_cli1.x_shape.json", {"nvme0"}, {"live"}),
    ],
)
def test_both_shapes_of_list_subsys_give_the_same_paths(
    name: str, controllers: set[str], states: set[str]
) -> None:
    paths, reason = parse_list_subsys(capture(f"nvme_{name}"))
    assert reason is None
    assert {path.controller for path in paths} == controllers
    assert {path.state for path in paths} == states
    rdma = [path for path in paths if path.transport == "rdma"]
    assert all(path.address == {"traddr": "10.0.0.2", "trsvcid": "4420"} for path in rdma)
    assert all(path.nqn for path in paths)


def test_list_subsys_without_a_driver_is_absent() -> None:
    assert parse_list_subsys("Failed to scan topology\n") == (
        [],
        "absent: no JSON in this output",
    )


def test_a_smart_log_counts_kelvin_and_a_target_without_a_sensor_has_no_temperature() -> None:
    local = parse_smart_log(capture("nvme_smart-log_local_cli2.3.json"))
    assert (local["temperature_c"], local["read_bytes"]) == (50, 512_000)
    assert "temperature_c" not in parse_smart_log(capture("nvme_smart-log_nvmet_cli2.3.json"))
    assert parse_smartctl(capture("nvme_smartctl_j_a.json"))["temperature_c"] == 50
    assert parse_smart_log("no json") == {}
