"""Network counters: units, wraps, drivers' names; a real veth pair in a namespace of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from probes.network.counters import Unwrapper, is_per_queue, is_q_counter
from probes.network.nic import NicSampler, rdma_ports
from probes.tests.support.captures import SAMPLES
from probes.tests.support.kernel_trees import mlx5_tree, rxe_tree
from probes.tests.support.samplers import rows

if TYPE_CHECKING:
    from pathlib import Path


def test_a_data_counter_is_words_of_four_bytes_and_its_raw_words_are_kept(tmp_path: Path) -> None:
    found = rows(NicSampler(("ens1",), mlx5_tree(tmp_path)))
    assert found["mlx5_0/1", "ib.port_rcv_data"].value == 81408901908
    assert found["mlx5_0/1", "ib.port_rcv_data_bytes"].value == 4 * 81408901908
    assert found["mlx5_0/1", "state"].text == "4: ACTIVE"
    assert found["mlx5_0/1", "hw.local_ack_timeout_err"].value == 2705
    assert not any(counter == "hw.lifespan" for _, counter in found)


def test_a_32_bit_counter_is_continued_over_its_wrap_and_the_wrap_is_named(tmp_path: Path) -> None:
    root = mlx5_tree(tmp_path)
    file = root / "class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence"
    probe = NicSampler(("ens1",), root)
    totals = []
    for raw in (4294967290, 6, 7):
        file.write_text(f"{raw}\n")
        found = rows(probe)
        totals.append(found["mlx5_0/1", "hw.out_of_sequence"].value)
        named = found.get(("mlx5_0/1", "wrapped"))
        assert (named.text if named else None) == ("hw.out_of_sequence" if raw == 6 else None)
    assert totals == [4294967290, (1 << 32) + 6, (1 << 32) + 7]


def test_a_restart_is_no_wrap_and_a_64_bit_counter_never_wraps() -> None:
    unwrap = Unwrapper()
    assert [unwrap.take("d", "n", raw) for raw in (1000, 3)] == [(1000, False), (3, False)]
    # Nobody counts 2^31 between two samples: from there on a fall is a wrap, below a restart.
    for before, wraps in ((1 << 31, False), ((1 << 31) + 1, True), ((1 << 32) - 1, True)):
        unwrap = Unwrapper()
        unwrap.take("d", "n", before)
        assert unwrap.take("d", "n", 5) == (5 + wraps * (1 << 32), wraps)
    unwrap = Unwrapper()
    unwrap.take("d", "n", 1 << 32)
    assert unwrap.take("d", "n", 5) == (5, False)
    assert is_q_counter("out_of_buffer")
    assert is_q_counter("vport_out_of_buffer")
    assert not is_q_counter("np_cnp_sent")
    assert not is_q_counter("rx_icrc_encapsulated")


def test_a_byte_counter_that_went_back_begins_an_epoch_with_its_cause(tmp_path: Path) -> None:
    root = mlx5_tree(tmp_path)
    probe = NicSampler(("ens1",), root)
    rows(probe)
    (root / "class/net/ens1/statistics/rx_bytes").write_text("3\n")
    found = rows(probe)
    assert found["ens1", "netdev.rx_bytes"].epoch == 1
    assert "went back" in (found["ens1", "epoch_cause"].text or "")


def test_soft_roce_has_packets_only_and_says_that_its_counters_are_absent(tmp_path: Path) -> None:
    root = rxe_tree(tmp_path, "after_direct_read_200MiB")
    assert rdma_ports(str(root / "class/infiniband"), str(root / "class/net"), "eth0") == ["rxe0/1"]
    found = rows(NicSampler(("eth0",), root))
    assert found["rxe0/1", "hw.rcvd_pkts"].value == 428033
    assert (found["rxe0/1", "ib"].reason or "").startswith("absent")
    # 200 MiB were read in between and the interface saw none of it.
    before = rows(NicSampler(("eth0",), rxe_tree(tmp_path / "b", "before_direct_read")))
    assert before["eth0", "netdev.rx_bytes"].value == found["eth0", "netdev.rx_bytes"].value == 110


def test_the_mark_of_a_counter_the_firmware_lacks_is_absent_and_no_number(tmp_path: Path) -> None:
    root = mlx5_tree(tmp_path)
    (root / "class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent").write_text(f"{2**64 - 1}\n")
    found = rows(NicSampler(("ens1",), root))
    assert "no value" in (found["mlx5_0/1", "hw.np_cnp_sent"].reason or "")


def test_names_of_single_queues_are_told_from_their_sums() -> None:
    assert all(is_per_queue(name) for name in ("rx0_bytes", "rx_queue_3_kicks", "ch12_events"))
    assert not any(is_per_queue(name) for name in ("rx_prio3_bytes", "rx_bytes_phy", "tx_packets"))


def test_an_interface_that_is_not_there_is_absent(tmp_path: Path) -> None:
    found = rows(NicSampler(("nothing0",), mlx5_tree(tmp_path)))
    assert (found["nothing0", "operstate"].reason or "").startswith("absent")


IN_NAMESPACE = """
import json, socket, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from probes.network.nic import NicSampler
def sh(*words): subprocess.run(words, check=True)
def pair():
    sh("ip", "link", "add", "r8a", "type", "veth", "peer", "name", "r8b")
    sh("ip", "addr", "add", "10.77.0.1/24", "dev", "r8a")
    for name in ("r8a", "r8b"): sh("ip", "link", "set", name, "up")
def rows(probe):
    return {r.counter: (r.value, r.text, r.reason, r.epoch)
            for s in probe.sample() for r in s.samples if r.device == "r8a"}
sh("mount", "-t", "sysfs", "sysfs", "/sys")
pair()
probe = NicSampler(("r8a",), Path("/sys"))
before = rows(probe)
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("r8a", 0))
for _ in range(1000): sender.send(bytes(14) + bytes(986))
after = rows(probe)
sh("ip", "link", "del", "r8a")
gone = rows(probe)
pair()
back = rows(probe)
print(json.dumps([before, after, gone, back]))
"""


@pytest.mark.root
def test_a_veth_pair_counts_to_the_byte_goes_away_and_comes_back_as_another() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root for a network namespace")
    checkout = str(SAMPLES.parents[2])
    argv = ["unshare", "--net", "--mount", sys.executable, "-c", IN_NAMESPACE, checkout]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "Operation not permitted" in done.stderr or "not supported" in done.stderr:
        pytest.skip(f"no veth in a namespace here: {done.stderr.strip()[-100:]}")
    assert done.returncode == 0, done.stderr
    import json  # noqa: PLC0415 - only this test speaks JSON

    before, after, gone, back = json.loads(done.stdout)
    assert after["netdev.tx_bytes"][0] - before["netdev.tx_bytes"][0] >= 1_000_000
    assert after["netdev.tx_packets"][0] - before["netdev.tx_packets"][0] >= 1000
    assert "ethtool.peer_ifindex" in after
    assert gone["operstate"][2].startswith("absent")
    assert back["netdev.tx_bytes"][3] > after["netdev.tx_bytes"][3]
    assert "epoch_cause" in back
