from __future__ import annotations

from pathlib import Path

import pytest

from probes.block.mounts import mount_of_path, parse_mountinfo
from probes.block.place import place_of
from probes.block.sysfs import Sysfs
from probes.errors import ProbeError
from probes.tests.support.captures import captured_host, snapshots

DISKSTATS = snapshots("diskstats_md0_nvmeof_kernel6.12.txt")["before_direct_read"]
HEADS = ("nvme1n1", "nvme2n1", "nvme3n1", "nvme4n1")
PATHS = ("nvme1c1n1", "nvme2c2n1", "nvme3c3n1", "nvme4c4n1")


@pytest.fixture(name="sysfs")
def _sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(*captured_host(tmp_path, DISKSTATS))


def test_md_members_stand_in_the_order_of_their_slots(sysfs: Sysfs, tmp_path: Path) -> None:
    md0 = sysfs.device("md0", sysfs.mounts())
    assert md0 is not None
    assert (md0.kind, md0.members, md0.diskseq) == ("md", HEADS, 15)
    assert (md0.facts["state"], md0.facts["mount"]) == ("clean", "/mnt/xfs")
    slot = tmp_path / "sys/devices/virtual/block/md0/md/dev-nvme1n1/slot"
    slot.write_text("none\n", encoding="ascii")
    spare_last = sysfs.device("md0", [])
    assert spare_last is not None
    assert spare_last.members == (*HEADS[1:], "nvme1n1")


def test_heads_have_their_hidden_paths_as_members_and_paths_their_controller(
    sysfs: Sysfs,
) -> None:
    head = sysfs.device("nvme2n1", [])
    path = sysfs.device("nvme2c2n1", [])
    assert head is not None
    assert path is not None
    assert (head.kind, head.members, head.diskseq) == ("nvme-head", ("nvme2c2n1",), 10)
    assert (path.kind, path.members, path.diskseq) == ("nvme-path", (), 9)
    assert path.facts["state"] == "live"
    assert path.facts["transport"] == "rdma"
    assert path.facts["address"] == "traddr=10.0.0.2,trsvcid=4420"
    assert path.facts["ana_state"] == "optimized"


def test_a_local_namespace_without_paths_is_a_plain_disk(sysfs: Sysfs) -> None:
    local = sysfs.device("nvme0n1", [])
    assert local is not None
    assert (local.kind, local.members) == ("disk", ())
    assert (local.facts["transport"], local.facts["state"]) == ("pcie", "live")


def test_without_multipath_a_fabric_namespace_is_a_plain_disk(tmp_path: Path) -> None:
    sysfs = Sysfs(*captured_host(tmp_path, DISKSTATS, hidden=False))
    device = sysfs.device("nvme1n1", [])
    assert device is not None
    assert device.kind == "disk"


def test_all_layers_below_md_are_found_upper_ones_first(sysfs: Sysfs) -> None:
    assert tuple(sysfs.layers(("md0",), [])) == ("md0", *HEADS, *PATHS)


def test_a_device_that_is_not_there_is_none_and_not_a_guess(sysfs: Sysfs) -> None:
    assert sysfs.layers(("nvme9n1",), []) == {"nvme9n1": None}


def test_a_missing_diskseq_is_a_reason(sysfs: Sysfs, tmp_path: Path) -> None:
    (tmp_path / "sys/devices/virtual/block/md0/diskseq").unlink()
    md0 = sysfs.device("md0", [])
    assert md0 is not None
    assert md0.diskseq is None
    assert md0.reasons["diskseq"].startswith("absent")


def test_a_partition_names_its_disk_and_has_its_diskseq(tmp_path: Path) -> None:
    disk = tmp_path / "sys/devices/pci0/block/sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "diskseq").write_text("3\n", encoding="ascii")
    (disk / "sda1" / "partition").write_text("1\n", encoding="ascii")
    classes = tmp_path / "sys/class/block"
    classes.mkdir(parents=True)
    (classes / "sda").symlink_to(disk)
    (classes / "sda1").symlink_to(disk / "sda1")
    sysfs = Sysfs(tmp_path / "sys", tmp_path / "proc")
    partition = sysfs.device("sda1", [])
    assert partition is not None
    assert (partition.kind, partition.parent, partition.diskseq) == ("partition", "sda", 3)
    assert tuple(sysfs.layers(("sda1",), [])) == ("sda1", "sda")


def test_a_dm_device_has_its_slaves_and_its_own_name(tmp_path: Path) -> None:
    device = tmp_path / "sys/class/block/dm-0"
    (device / "dm").mkdir(parents=True)
    (device / "slaves" / "sda").mkdir(parents=True)
    (device / "dm" / "name").write_text("kv-lv\n", encoding="ascii")
    (device / "dm" / "suspended").write_text("0\n", encoding="ascii")
    dm = Sysfs(tmp_path / "sys", tmp_path / "proc").device("dm-0", [])
    assert dm is not None
    assert (dm.kind, dm.members) == ("dm", ("sda",))
    assert (dm.facts["dm_name"], dm.facts["state"]) == ("kv-lv", "active")


def test_a_loop_device_names_its_backing_file_and_the_device_below(tmp_path: Path) -> None:
    sys_root, proc_root = captured_host(tmp_path, DISKSTATS)
    loop = sys_root / "class/block/loop3/loop"
    loop.mkdir(parents=True)
    (loop / "backing_file").write_text("/mnt/xfs/image\n", encoding="ascii")
    sysfs = Sysfs(sys_root, proc_root)
    device = sysfs.device("loop3", sysfs.mounts())
    assert device is not None
    assert (device.kind, device.parent, device.members) == ("loop", "md0", ())
    assert device.facts["backing_file"] == "/mnt/xfs/image"
    assert device.facts["backing_fstype"] == "xfs"
    assert device.facts["state"] == "attached"


def test_the_nearest_mount_above_a_path_is_its_own_also_with_spaces_in_it() -> None:
    text = (
        "20 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "21 20 7:0 / /kv\\040cache rw shared:1 - xfs /dev/loop0 rw\n"
        "22 20 0:40 / /kv\\040cache/fuse rw - fuse.shaped shaped rw\n"
        "torn line\n"
    )
    mounts = parse_mountinfo(text)
    found = [
        mount_of_path(mounts, path) for path in ("/kv cache/a", "/kv cache2", "/kv cache/fuse/x")
    ]
    assert [mount.fstype if mount else None for mount in found] == ["xfs", "ext4", "fuse.shaped"]


def test_this_machine_says_where_a_real_path_lies(tmp_path: Path) -> None:
    place = place_of(tmp_path, Sysfs())
    assert place["st_dev"] == tmp_path.stat().st_dev
    assert isinstance(place["mount"], str)
    assert (place["device"] is None) == (place["reason"] is not None)


def test_a_file_system_without_a_block_device_is_a_reason() -> None:
    place = place_of(Path("/proc"), Sysfs())
    assert place["device"] is None
    assert str(place["reason"]).startswith("absent")


def test_a_path_that_does_not_exist_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="give --path something that exists"):
        place_of(tmp_path / "nothing", Sysfs())
