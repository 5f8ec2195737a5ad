"""Each fault on real kernel objects comes out refuted or unknown by the rule meant for it.

What this kernel cannot do (md, NVMe heads and paths) runs in a guest: qualify/test_guest_kernel.py.
dm and RDMA are in captures, probes/tests/block/test_nvme.py and test_disk.py: `capture only`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.message import Answer
from r8.tests.support.fault_lab import Cell, evict
from r8.tests.support.fault_lab_testbed import ShapedBed, make_bed
from r8.tests.support.findings import meant, said
from r8.tests.support.judged_run import findings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.root
O_DIRECT_ON_TMPFS_SINCE = (6, 6)
HELD = {Answer.HELD, Answer.NOT_APPLICABLE}


@pytest.fixture(name="testbed", scope="module")
def _bed() -> Iterator[ShapedBed]:
    yield from make_bed()


def test_a_clean_cell_passes_every_rule(testbed: ShapedBed) -> None:
    spec = {"link_bytes_per_s": 50_000_000_000}
    found = testbed.judge("clean", spec=spec, other_devices=(testbed.local.name,))
    broken = [
        f"{one.rule_id} {one.answer}: {said(one)}"
        for one in found.values()
        if one.answer not in HELD
    ]
    assert broken == []
    silent = {name for name, one in found.items() if one.answer is Answer.NOT_APPLICABLE}
    # No recompute arm, no GPU, one engine, nothing written.
    assert silent <= {"C7", "G1", "S1", "W1", "W2", "W3"}
    assert "engine hit 32 MiB = 1.00" in said(found["C4"])


def test_a_page_cache_left_warm_is_refuted_by_residency_and_by_bytes(testbed: ShapedBed) -> None:
    found = testbed.judge("warm", drop=lambda _: ["true"])
    assert found["C3"].answer is Answer.REFUTED
    assert "20 of 20 files above 1% resident" in said(found["C3"])
    assert found["C4"].answer is Answer.REFUTED


def test_a_drop_on_the_wrong_file_system_is_refuted(testbed: ShapedBed) -> None:
    found = testbed.judge("wrong-fs", drop=lambda _: evict(testbed.local.mount))
    assert found["C3"].answer is Answer.REFUTED
    assert "drop returned 0" in said(found["C3"])
    assert "did not reach this file system" in meant(found["C3"])


def test_kv_on_another_device_is_refuted_by_its_place(testbed: ShapedBed) -> None:
    found = testbed.judge(
        "elsewhere", kv_root=testbed.local.mount, other_devices=(testbed.local.name,)
    )
    assert found["C1"].answer is Answer.REFUTED
    assert f"20 elsewhere ({testbed.local.name}: 20)" in said(found["C1"])
    assert found["C4"].answer is Answer.REFUTED
    assert found["C5"].answer is Answer.REFUTED


def test_a_second_process_reading_the_device_is_refuted_by_bytes(testbed: ShapedBed) -> None:
    def read(cell: Cell) -> None:
        argv = [sys.executable, "-m", "probes", "read", "--path", cell.device.path]
        checkout = Path(__file__).resolve().parents[4]
        subprocess.run([*argv, "--bytes", str(16 << 20)], cwd=checkout, check=True)

    found = testbed.judge("second", in_window=read)
    assert found["C4"].answer is Answer.REFUTED
    assert "something else reads it" in meant(found["C4"])


def test_a_device_that_came_back_as_another_is_refuted(testbed: ShapedBed) -> None:
    found = testbed.judge("replaced", in_window=lambda cell: cell.device.attach_again())
    assert found["C8"].answer is Answer.REFUTED
    assert "diskseq" in said(found["C8"])


def test_a_device_that_disappears_is_refuted(testbed: ShapedBed) -> None:
    def detach(_cell: Cell) -> None:
        subprocess.run(["losetup", "--detach", testbed.spare], check=True)

    name = Path(testbed.spare).name
    try:
        found = testbed.judge("gone", in_window=detach, other_devices=(name,))
    finally:
        subprocess.run(["losetup", testbed.spare, str(testbed.spare_image)], check=False)
    assert found["C8"].answer is Answer.REFUTED
    # Another loop device may have come meanwhile, which the kernel counts in diskseq.
    assert re.search(rf"{name}: [^;]*state attached -> detached", said(found["C8"]))


def test_a_dram_tier_that_serves_half_the_hits_is_refuted(testbed: ShapedBed) -> None:
    found = testbed.judge("tier", read_share=0.5)
    assert found["C4"].answer is Answer.REFUTED
    assert found["C6"].answer is Answer.REFUTED
    assert "A tier in DRAM served hits" in meant(found["C6"])


def test_prefix_caching_left_on_is_refuted_by_the_servers_own_word(testbed: ShapedBed) -> None:
    found = testbed.judge("prefix", spec={"enable_prefix_caching": True, "computed_tokens": 256})
    assert found["C6"].answer is Answer.REFUTED
    assert "enable_prefix_caching true = false [refuted]" in said(found["C6"])


def test_probes_killed_for_three_seconds_are_a_hole(testbed: ShapedBed) -> None:
    found = testbed.judge("hole", in_window=lambda cell: cell.restart_probes(3.0))
    assert found["C8"].answer is Answer.REFUTED
    assert "The probe was stopped inside the window" in meant(found["C8"])


def test_a_drop_that_returns_an_error_is_refuted_with_its_words(testbed: ShapedBed) -> None:
    found = testbed.judge("error", drop=lambda _: ["sh", "-c", "echo read-only >&2; exit 3"])
    assert found["C3"].answer is Answer.REFUTED
    assert "drop returned 3 [refuted]" in said(found["C3"])
    assert "read-only" in meant(found["C3"])


def test_a_drop_that_hangs_never_counts_as_one(testbed: ShapedBed) -> None:
    found = testbed.judge("hang", drop=lambda _: ["sleep", "60"], drop_timeout_s=0.5)
    assert found["C3"].answer in {Answer.UNKNOWN, Answer.REFUTED}
    assert "drop returned ? [unknown]" in said(found["C3"])


def test_residency_read_by_somebody_else_is_not_believed(testbed: ShapedBed) -> None:
    found = testbed.judge("nobody", residency_uid=65534)
    assert found["C3"].answer is Answer.UNKNOWN
    assert "self-test of the method passed for 0 of 20 files [unknown]" in said(found["C3"])


def test_o_direct_on_tmpfs_is_refuted_by_bytes_and_has_no_device(testbed: ShapedBed) -> None:
    """Kernels before 6.6 refuse it with EINVAL, later ones take it and read memory all the same."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        pytest.skip("no tmpfs at /dev/shm")
    try:
        evidence = testbed.run("tmpfs", kv_root=shared, direct=True)
    finally:
        shutil.rmtree(shared / "tmpfs", ignore_errors=True)
    found = findings(evidence)
    (end,) = (row for row in evidence.table("events").to_pylist() if row["name"] == "run_end")
    kernel = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    taken = "direct" if kernel >= O_DIRECT_ON_TMPFS_SINCE else "EINVAL"
    assert json.loads(end["detail"])["read"] == [taken]
    assert found["C1"].answer is Answer.REFUTED
    assert "20 not known" in said(found["C1"])
    assert found["C4"].answer is Answer.REFUTED
    assert "C4 sees" in said(found["N1"])
    assert "a cache served the rest" in meant(found["C4"])


def test_o_direct_on_a_device_reads_the_device_though_the_files_are_cached(
    testbed: ShapedBed,
) -> None:
    """The negative control of an engine that reads past the page cache cannot be made warm."""
    found = testbed.judge("direct", direct=True)
    assert found["C4"].answer is Answer.HELD
    assert found["N1"].answer is Answer.REFUTED
    assert "C4 proves nothing here" in meant(found["N1"])


def test_a_read_faster_than_the_declared_link_is_refuted(testbed: ShapedBed) -> None:
    found = testbed.judge("fast", spec={"link_bytes_per_s": 1_000_000})
    assert found["C9"].answer is Answer.REFUTED
    assert "a cache on this side of it" in meant(found["C9"])
    others = {name for name, one in found.items() if one.answer not in HELD}
    assert others == {"C9"}


IN_CONTAINER = """
import json, subprocess, sys
from pathlib import Path
subprocess.run(["mount", "-o", "bind,ro", "/proc/sys", "/proc/sys"], check=True)
from r8.lab.machine import commands
from r8.lab.site.machines import DROP_CACHES
done = commands.run(list(DROP_CACHES))
status = subprocess.run([sys.executable, "-m", "probes", "status", "--json"],
                        capture_output=True, text=True, check=True).stdout
print(json.dumps({"rc": done.returncode, "error": done.error, "status": json.loads(status)}))
"""


def test_in_a_user_namespace_with_proc_sys_read_only_the_drop_says_why_it_cannot(
    testbed: ShapedBed,
) -> None:
    words = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", IN_CONTAINER]
    checkout = Path(__file__).resolve().parents[4]
    done = subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        assert "ImportError" not in done.stderr, done.stderr
        pytest.skip(f"no user namespace here: {done.stderr.strip()[-200:]}")
    told = json.loads(done.stdout)
    assert told["rc"] not in {0, None}
    works = {one["probe"]: one["works"] for one in told["status"]}
    assert {works[name] for name in ("disk", "process", "host", "residency")} == {"yes"}
    # The same command's end in a cell: C3 names it, every other rule is answered.
    script = f"echo {told['error']!r} >&2; exit {told['rc']}"
    found = testbed.judge("container", drop=lambda _: ["sh", "-c", script])
    assert "drop returned" in said(found["C3"])
    assert "Read-only file system" in meant(found["C3"]) or "denied" in meant(found["C3"])
    assert {name for name, one in found.items() if one.answer not in HELD} == {"C3", "C4", "C6"}
