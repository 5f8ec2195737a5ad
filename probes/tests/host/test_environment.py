"""Captures of the environment: nothing is fatal, nobody is identified, changes are named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from probes.cli import main
from probes.host.environment import capture, differences, summary
from probes.host.identity import Identities
from probes.host.tools import tool_commands

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "etc/machine-id": "0123456789abcdef",
    "proc/version": "Linux version 6.8.0",
    "proc/cmdline": "iommu=pt",
    "proc/self/mounts": "/dev/md0 /mnt/kv xfs rw,noatime 0 0\n/dev/loop3 /x xfs rw 0 0\n",
    "sys/class/dmi/id/board_name": "Board",
    "sys/class/dmi/id/product_serial": "SERIAL-0042",
    "sys/class/net/ens1/address": "02:00:5e:10:00:01",
    "sys/class/net/ens1/mtu": "9000",
    "sys/class/nvme/nvme1/model": "Array Lun          ",
    "sys/class/nvme/nvme1/serial": "ARRAYSERIAL7  ",
    "sys/class/nvme/nvme1/state": "live",
    "sys/block/md0/md/array_state": "clean",
    "sys/block/loop7/queue/scheduler": "none",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave",
}


@pytest.fixture(name="host")
def _host(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "host" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return tmp_path / "host"


def take(host: Path) -> dict[str, Any]:
    return capture(root=host, tools=False)


def test_serials_and_addresses_are_digests_that_stay_the_same_on_one_host(host: Path) -> None:
    found = take(host)
    text = json.dumps(found)
    for secret in ("SERIAL-0042", "02:00:5e:10:00:01", "ARRAYSERIAL7", "0123456789abcdef"):
        assert secret not in text
    assert found["stable"]["nvme"]["/sys/class/nvme/nvme1/serial"].startswith("sha:")
    assert found["stable"]["nvme"]["/sys/class/nvme/nvme1/model"] == "Array Lun"
    assert take(host)["stable"] == found["stable"]
    (host / "etc/machine-id").write_text("another\n")
    assert take(host)["stable"]["nvme"] != found["stable"]["nvme"]


def test_tools_own_words_lose_their_identities_too() -> None:
    identities = Identities(key=b"k")
    identities.one("node-17.example")
    text = identities.within(
        'x node-17.example y {"SerialNumber":"S3RIAL", "mac":"aa:bb:cc:dd:ee:01"}\n'
        "Serial Number: ABC123\nGPU-12345678-aaaa\nlink/ether ff:ff:ff:ff:ff:ff\nUUID : 77-88\n"
    )
    for secret in ("node-17", "S3RIAL", "aa:bb", "ABC123", "12345678-aaaa", "77-88"):
        assert secret not in text
    assert "ff:ff:ff:ff:ff:ff" in text


def test_what_is_missing_is_unavailable_with_a_reason_and_never_an_error(tmp_path: Path) -> None:
    found = take(tmp_path)
    assert found["stable"]["board"]["unavailable"].startswith("absent")
    assert {"board", "gpu", "mounts", "nvme"} <= set(summary(found)["unavailable"])


def test_passing_devices_are_left_out_and_processors_are_listed_by_value(host: Path) -> None:
    stable = take(host)["stable"]
    assert "loop" not in json.dumps(stable)
    assert stable["cpu"] == {"scaling_governor": "performance, powersave"}
    assert stable["mounts"] == {"/mnt/kv": "/dev/md0 xfs rw,noatime"}


def test_every_change_appearance_and_loss_is_a_difference_and_load_is_none(host: Path) -> None:
    before = take(host)
    (host / "sys/class/nvme/nvme1/state").write_text("connecting\n")
    (host / "sys/class/net/ens1/mtu").unlink()
    (host / "sys/block/md0/md/level").write_text("raid0\n")
    (host / "proc/loadavg").write_text("9 9 9\n")
    found = {one.fact: (one.before, one.after) for one in differences(before, take(host))}
    assert found == {
        "/sys/class/nvme/nvme1/state": ("live", "connecting"),
        "/sys/class/net/ens1/mtu": ("9000", None),
        "/sys/block/md0/md/level": (None, "raid0"),
    }
    assert differences(before, before) == []


def test_a_file_at_the_limit_is_whole_and_a_longer_one_is_cut_with_its_length(host: Path) -> None:
    for length, recorded in ((4096, "x" * 4096), (4097, "x" * 4096 + " .. of 4097 bytes")):
        (host / "proc/cmdline").write_text("x" * length)
        assert take(host)["stable"]["kernel"]["/proc/cmdline"] == recorded


def test_commands_are_asked_for_each_device_there_is(host: Path) -> None:
    names = [name for name, _ in tool_commands(host)]
    assert {"ethtool ens1", "mdadm md0", "id-ctrl nvme1", "smart nvme1"} <= set(names)


def test_a_capture_of_this_host_is_written_once_and_equals_the_next_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    assert main(["environment", "--out", str(first)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said) == {"sections", "unavailable", "tools_missing", "gpus"}
    assert main(["environment", "--out", str(second)]) == 0
    assert main(["environment", "--diff", str(first), str(second)]) in {0, 1}
    assert main(["environment", "--out", str(first)]) == 4
    assert main(["environment"]) == 4
    (tmp_path / "no.json").write_text("[]")
    assert main(["environment", "--diff", str(first), str(tmp_path / "no.json")]) == 4
    changed = json.loads(first.read_text())
    changed["stable"]["kernel"]["/proc/version"] = "other"
    second.write_text(json.dumps(changed))
    capsys.readouterr()
    assert main(["environment", "--diff", str(first), str(second)]) == 1
    assert json.loads(capsys.readouterr().out)[0]["after"] == "other"
