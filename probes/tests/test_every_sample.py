"""Every captured text below samples/ is read by a test.

Captures with a test module of their own are listed with it; the rest are read here. A capture that
is in neither list, or a test module that does not name its capture, fails.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from probes.cache.pagecache import PAGE_BYTES
from probes.gpu.sources import TOOLS
from probes.network.counters import is_q_counter
from probes.process.counters import parse_io
from probes.tests.support.captures import SAMPLES, capture, captures_of

HERE = Path(__file__).parent
MIB = 1 << 20
# Read by the test module at this place, which names each of them or every file of its kind.
ELSEWHERE = {
    **{f"{captures_of(tool.name)}*": "gpu/test_tools" for tool in TOOLS},
    "iostat_*": "record/test_iostat",
    "diskstats_*": "block/test_disk block/test_diskstats",
    "sysfs_*": "block/test_sysfs block/test_nvme block/test_disk",
    "nvme_state_fault.txt": "block/test_nvme",
    "mdstat.txt": "block/test_disk",
    "nic_mlx5_*": "network/test_nic",
    "nic_netdev_seq.txt": "network/test_nic",
    "nic_rxe_hw_counters_seq.txt": "network/test_nic",
}
HERE_READ = frozenset(
    {
        *("cache_cold.txt", "cache_owner.txt", "cache_proc_io_by_engine.txt"),
        *("nic_counter_names_by_driver.txt", "nic_rxe_port_ls.txt"),
    }
)


def names() -> list[str]:
    return sorted(path.name.removeprefix("capture_") for path in SAMPLES.glob("capture_*"))


def test_every_sample_is_read_by_a_test() -> None:
    unread = [
        name
        for name in names()
        if name not in HERE_READ and not any(Path(name).match(pattern) for pattern in ELSEWHERE)
    ]
    assert unread == []
    assert set(names()) >= HERE_READ


@pytest.mark.parametrize(("pattern", "modules"), ELSEWHERE.items())
def test_the_module_named_for_a_sample_names_it_or_a_part_that_makes_its_name(
    pattern: str, modules: str
) -> None:
    """String constants of those modules: a whole name, or pieces of which a name is made."""
    if pattern.removesuffix("*") in {captures_of(tool.name) for tool in TOOLS}:
        return  # `pages_of` there reads every capture of every tool
    texts = set()
    for module in (*modules.split(), "support/captures", "support/kernel_trees"):
        for node in ast.walk(ast.parse((HERE / f"{module}.py").read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value.removeprefix("capture_"))
    for name in names():
        if Path(name).match(pattern):
            assert any(len(text) > 2 and text in name for text in texts), name


def cold() -> dict[str, dict[str, int]]:
    """The counters each kind of read moved, as the capture lists them."""
    found = {}
    for line in capture("cache_cold.txt").splitlines():
        numbers = {key: int(value) for key, value in re.findall(r"(\w+)\+?=(\d+)\b", line)}
        if "dev_bytes" in numbers:
            found[line.split("bytes=")[0].strip()] = numbers
    return found


def test_a_cold_a_warm_and_a_direct_read_move_the_counters_the_rules_rest_on() -> None:
    size, reads = 256 * MIB, cold()
    assert set(reads) == {
        *("cold buffered", "warm buffered", "O_DIRECT while cached", "O_DIRECT cold"),
        *("cold mmap", "warm mmap"),
    }
    for name, read in reads.items():
        warm = name.startswith("warm")
        assert read["dev_bytes"] == read["read_bytes"] == (0 if warm else size), name
        assert (read["rchar"] >= size) == ("mmap" not in name), name
        assert (
            parse_io(f"read_bytes: {read['read_bytes']}\n".encode())["read_bytes"]
            == (read["read_bytes"])
        )
    pages = re.findall(r"'nr_cache': (\d+)", capture("cache_cold.txt"))
    assert {int(count) * PAGE_BYTES for count in pages} == {0, size}
    flags = set(re.findall(r"flags:\s+(\d+)", capture("cache_cold.txt")))
    assert all(int(word, 8) & 0o40000 for word in flags)


def test_residency_is_the_owners_to_know() -> None:
    """Why the probe does not believe `mincore` of a file that is somebody else's."""
    text = capture("cache_owner.txt")
    fincore = dict(re.findall(r"^(.+?):\s+fincore pages=\s*(\d+)", text, flags=re.MULTILINE))
    assert fincore["root owner, file evicted"] == "0"
    assert fincore["nobody (not owner), evicted"] == "16384"
    assert fincore["root owner again"] == "0"
    assert "mapped by a live process, DONTNEED: pages=16384" in text
    assert "/dev/shm/x O_DIRECT open OK" in text


def test_rchar_counts_synchronous_reads_only_and_read_bytes_every_submitted_one() -> None:
    found = {}
    for line in capture("cache_proc_io_by_engine.txt").splitlines()[1:]:
        words, counters = re.match(r"(\[.*\]) rc 0 (\{.*\}) MiB", line).groups()  # type: ignore[union-attr]
        found[" ".join(ast.literal_eval(words))] = ast.literal_eval(counters)
    assert found["--ioengine=psync"]["rchar"] == 2048
    for name, read in found.items():
        if "libaio" in name or "io_uring" in name:
            assert read == {"rchar": 0, "read_bytes": 2048}, name
    assert found["--ioengine=mmap --direct=0"] == {"rchar": 0, "read_bytes": 512}


def test_a_soft_roce_port_has_no_counters_directory_and_the_names_it_lists() -> None:
    text = capture("nic_rxe_port_ls.txt")
    assert "ports/1/counters': No such file" in text
    listed = text.partition("hw_counters:\n")[2].split("\n")
    names = [name for name in listed if re.fullmatch(r"[a-z_]+", name)]
    sequence = capture("nic_rxe_hw_counters_seq.txt")
    for name in names:
        assert name == "lifespan" or re.search(rf"^{name}[: ]", sequence, flags=re.MULTILINE), name


def test_the_32_bit_counters_are_those_the_driver_lists_as_such() -> None:
    lines = capture("nic_counter_names_by_driver.txt").splitlines()
    names = [line.partition("#")[0].split() for line in lines]
    # Lines 2 to 4 are q-counters, 32 bits wide; the two after them are 64-bit.
    narrow, wide = {*names[1], *names[2], *names[3]}, {*names[4], *names[5]}
    assert len(narrow) > 20
    assert {name for name in narrow if not is_q_counter(name)} == set()
    assert {name for name in wide if is_q_counter(name)} == set()
