from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from probes.block.disk import COUNTERS, DiskSampler
from probes.block.sysfs import Sysfs
from probes.block.topology import TopologySampler, WatchedDevices
from probes.tests.support.captures import captured_host, snapshots
from probes.tests.support.samplers import rows_by_device

if TYPE_CHECKING:
    from pathlib import Path

    from probes.samples import Sample

    Rows = dict[str, dict[str, Sample]]

NEW = snapshots("diskstats_md0_nvmeof_kernel6.12.txt")
OLD = snapshots("diskstats_md0_nvmeof_kernel6.1_heads_zero.txt")
HEADS = ("nvme1n1", "nvme2n1", "nvme3n1", "nvme4n1")
PATHS = ("nvme1c1n1", "nvme2c2n1", "nvme3c3n1", "nvme4c4n1")
READ_SECTORS = 200 * (1 << 20) // 512


class CapturedHost:
    """The captured machine, set to one snapshot after the other."""

    def __init__(self, root: Path, first: str, names: tuple[str, ...] = ("md0",)) -> None:
        self.sys_root, self.proc_root = captured_host(root, first)
        self.watched = WatchedDevices(names, Sysfs(self.sys_root, self.proc_root))
        self.watched.resolve()
        self.probe = DiskSampler(self.watched, self.proc_root)

    def look(self, diskstats: str | None = None) -> Rows:
        if diskstats is not None:
            (self.proc_root / "diskstats").write_text(diskstats, encoding="ascii")
        return rows_by_device(self.probe)


def _sectors(
    before: Rows,
    after: Rows,
    names: tuple[str, ...],
) -> float:
    return sum(
        (after[name]["read_sectors"].value or 0) - (before[name]["read_sectors"].value or 0)
        for name in names
    )


def test_every_layer_below_the_named_device_is_recorded_and_nothing_else(tmp_path: Path) -> None:
    host = CapturedHost(tmp_path, NEW["before_direct_read"])
    found = host.look()
    assert set(found) == {"md0", *HEADS, *PATHS}
    assert all(set(counters) == set(COUNTERS) for counters in found.values())


def test_on_kernel_6_12_md_heads_and_paths_count_the_same_sectors(tmp_path: Path) -> None:
    host = CapturedHost(tmp_path, NEW["before_direct_read"])
    before, after = host.look(), host.look(NEW["after_direct_read_200MiB"])
    assert _sectors(before, after, ("md0",)) == READ_SECTORS
    assert _sectors(before, after, HEADS) == READ_SECTORS
    assert _sectors(before, after, PATHS) == READ_SECTORS


def test_on_kernel_6_1_heads_stay_zero_and_are_written_raw_beside_their_paths(
    tmp_path: Path,
) -> None:
    host = CapturedHost(tmp_path, OLD["before_direct_read"])
    before, after = host.look(), host.look(OLD["after_direct_read_200MiB"])
    assert {after[head]["read_sectors"].value for head in HEADS} == {0}
    assert _sectors(before, after, PATHS) == _sectors(before, after, ("md0",)) == READ_SECTORS
    topology = TopologySampler(host.watched).sample()[0].samples
    members = {row.device: row.text for row in topology if row.counter == "members"}
    kinds = {row.device: row.text for row in topology if row.counter == "kind"}
    assert members["md0"] == ",".join(HEADS)
    assert members["nvme1n1"] == "nvme1c1n1"
    assert (kinds["nvme1n1"], kinds["nvme1c1n1"]) == ("nvme-head", "nvme-path")


def test_the_captured_sequences_end_no_epoch_not_even_the_link_fault(tmp_path: Path) -> None:
    for name, sequence in (("new", NEW), ("old", OLD)):
        host = CapturedHost(tmp_path / name, next(iter(sequence.values())))
        for snapshot in sequence.values():
            found = host.look(snapshot)
            epochs = {row.epoch for counters in found.values() for row in counters.values()}
            assert epochs == {0}


def test_a_counter_that_goes_back_begins_an_epoch_of_that_device_alone(tmp_path: Path) -> None:
    host = CapturedHost(tmp_path, NEW["after_direct_read_200MiB"])
    host.look()
    restarted = NEW["after_direct_read_200MiB"].replace("117 100 102689", "3 0 24")
    found = host.look(restarted)
    assert {row.epoch for row in found["nvme2c2n1"].values()} == {1}
    assert "went back" in (found["nvme2c2n1"]["epoch_cause"].text or "")
    assert {row.epoch for row in found["md0"].values()} == {0}


def test_requests_in_flight_may_fall_without_ending_an_epoch(tmp_path: Path) -> None:
    text = NEW["before_direct_read"]
    busy = text.replace("90472 0 9448", "90472 7 9448")
    assert busy != text
    host = CapturedHost(tmp_path, busy)
    host.look()
    assert host.look(text)["md0"]["in_flight"].epoch == 0


def test_another_disk_under_the_same_name_begins_an_epoch_though_its_counters_are_higher(
    tmp_path: Path,
) -> None:
    host = CapturedHost(tmp_path, NEW["before_direct_read"])
    host.look()
    (host.sys_root / "class/block/nvme3n1/diskseq").write_text("99\n", encoding="ascii")
    found = host.look(NEW["after_direct_read_200MiB"])
    assert found["nvme3n1"]["reads"].epoch == 1
    assert found["nvme3n1"]["epoch_cause"].text == "diskseq changed from 12 to 99"


def test_a_device_that_disappears_is_null_with_a_reason_and_its_return_an_epoch(
    tmp_path: Path,
) -> None:
    text = NEW["before_direct_read"]
    without = "".join(line for line in text.splitlines(keepends=True) if " md0 " not in line)
    host = CapturedHost(tmp_path, text)
    host.look()
    gone = host.look(without)["md0"]
    assert {row.value for row in gone.values()} == {None}
    assert {row.reason for row in gone.values()} == {"absent: no line in diskstats"}
    back = host.look(text)["md0"]
    assert back["reads"].epoch == 1
    assert back["epoch_cause"].text == "came back after it was absent"


def test_diskstats_that_cannot_be_read_is_a_reason_for_every_counter(tmp_path: Path) -> None:
    host = CapturedHost(tmp_path, NEW["before_direct_read"])
    (host.proc_root / "diskstats").unlink()
    rows = host.look()["md0"]
    assert set(rows) == set(COUNTERS)
    assert all(
        row.value is None and (row.reason or "").startswith("absent") for row in rows.values()
    )


def test_a_named_device_that_never_was_is_recorded_as_absent(tmp_path: Path) -> None:
    host = CapturedHost(tmp_path, NEW["before_direct_read"], names=("md7",))
    assert host.look()["md7"]["reads"].reason == "absent: no line in diskstats"
    rows = TopologySampler(host.watched).sample()[0].samples
    assert [(row.counter, row.text) for row in rows] == [("kind", None)]
    assert (rows[0].reason or "").startswith("absent")


def test_a_member_exchanged_in_the_array_begins_an_epoch_of_the_array(tmp_path: Path) -> None:
    host = CapturedHost(tmp_path, NEW["before_direct_read"])
    (host.sys_root / "devices/virtual/block/md0/slaves/nvme4n1").unlink()
    rows = TopologySampler(host.watched).sample()[0].samples
    causes = [row for row in rows if row.counter == "epoch_cause"]
    assert [row.device for row in causes] == ["md0"]
    assert host.look()["md0"]["reads"].epoch == 1
    # The member that left stays watched.
    assert "nvme4n1" in host.look()


def test_a_state_that_changes_is_seen_but_ends_no_epoch(tmp_path: Path) -> None:
    host = CapturedHost(tmp_path, NEW["before_direct_read"])
    (host.sys_root / "class/nvme/nvme2/state").write_text("connecting\n", encoding="ascii")
    rows = TopologySampler(host.watched).sample()[0].samples
    states = {row.device: row.text for row in rows if row.counter == "state"}
    assert states["nvme2c2n1"] == "connecting"
    assert {row.epoch for row in rows} == {0}


@pytest.mark.parametrize("cut", [1, 40, 400, 900])
def test_torn_diskstats_give_reasons_and_no_zero(tmp_path: Path, cut: int) -> None:
    text = NEW["after_direct_read_200MiB"]
    host = CapturedHost(tmp_path, text)
    whole = host.look()
    torn = host.look(text[:-cut])
    for device, counters in torn.items():
        for counter, row in counters.items():
            if row.reason is None and counter in COUNTERS:
                assert row.value == whole[device][counter].value
