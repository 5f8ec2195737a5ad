"""What this machine's kernel has no objects for, in a guest with a Debian kernel: md, NVMe paths.

A cell of the fault lab on md0 over four NVMe heads with two paths each. The guest records, this
machine seals and judges. Skipped with its reason where QEMU or the kernel is missing; the captures
in probes/tests are the only cases then.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from r8.evidence.database import connect
from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.message import Answer
from r8.tests.support.findings import meant, said
from r8.tests.support.guest import find_kernel, run_in_guest
from r8.tests.support.judged_run import findings

if TYPE_CHECKING:
    from r8.evidence.reader import Evidence
    from r8.tests.support.guest import Kernel

pytestmark = pytest.mark.qualify

PROGRAM = """
import subprocess
from pathlib import Path
from r8.tests.support.fault_lab import Device, Fault, record_cell

def run(words):
    subprocess.run(words, shell=True, check=True)

run("mdadm --create /dev/md0 --run --level=0 --raid-devices=4 /dev/nvme0n[1-4]")
# mdadm holds the device for a moment after it said that it started it.
run("for n in 1 2 3 4 5 6 7 8 9; do mkfs.xfs -q -f /dev/md0 && break; sleep 1; done")
run("mount /dev/md0 /run/kv")
device = Device(path="/dev/md0", image=Path("/"), mount=Path("/run/kv"))
Path("/run/out/{name}").mkdir()
{faults}
path = record_cell(Path("/run/out/{name}"), device, Fault({fault}))
print("recorded", path)
"""
LOSE_A_PATH = """
def lose_a_path(cell):
    Path("/sys/class/nvme/nvme1/device/remove").write_text("1")
"""
READ_A_MEMBER = """
def read_a_member(cell):
    run("dd if=/dev/nvme0n2 of=/dev/null iflag=direct bs=1M count=16")
"""
KV_BYTES = 32 << 20
HELD = {Answer.HELD, Answer.NOT_APPLICABLE}


@pytest.fixture(name="kernel", scope="module")
def _kernel() -> Kernel:
    return find_kernel()


def cell(kernel: Kernel, tmp_path: Path, name: str, faults: str = "", fault: str = "") -> Evidence:
    program = PROGRAM.format(name=name, faults=faults, fault=fault)
    said = run_in_guest(kernel, tmp_path / "out", program)
    recorded = next(line for line in said.splitlines() if line.startswith("recorded"))
    inside = Path(recorded.split()[1]).relative_to("/run/out")
    return read_run(finalise(tmp_path / "out" / inside, complete=True))


def read_in_window(evidence: Evidence) -> dict[str, int]:
    """Bytes every device read in the measured window; outside it mdadm reads members as well."""
    with connect([evidence]) as connection:
        rows = connection.execute(
            "SELECT device, read_bytes FROM phase_reads WHERE probe = 'disk' AND phase = 'measure'"
        ).fetchall()
    return dict(rows)


def texts(evidence: Evidence, counter: str) -> dict[str, Any]:
    """A fact of the topology, by device."""
    rows = evidence.table("probes").to_pylist()
    return {
        row["device"]: row["text"]
        for row in rows
        if row["probe"] == "topology" and row["counter"] == counter
    }


def test_a_clean_cell_on_md_over_nvme_heads_balances_sector_by_sector(
    kernel: Kernel, tmp_path: Path
) -> None:
    evidence = cell(kernel, tmp_path, "clean")
    kinds, members = texts(evidence, "kind"), texts(evidence, "members")
    heads = members["md0"].split(",")
    assert kinds["md0"] == "md"
    assert len(heads) == 4
    assert {kinds[head] for head in heads} == {"nvme-head"}
    paths = [path for head in heads for path in members[head].split(",")]
    assert len(paths) == 8
    assert {kinds[path] for path in paths} == {"nvme-path"}
    read = read_in_window(evidence)
    print(kernel.version, read)
    assert read["md0"] == sum(read[path] for path in paths) == KV_BYTES
    # Kernels before 6.2 account nothing on a head; its paths count then.
    of_heads = sum(read[head] for head in heads)
    assert of_heads == (0 if kernel.version.startswith("6.1.") else read["md0"])
    found = findings(evidence)
    broken = [
        f"{one.rule_id} {one.answer}: {said(one)}"
        for one in found.values()
        if one.answer not in HELD
    ]
    print(said(found["C4"]))
    assert broken == []
    assert "members read" in said(found["C4"])


def test_a_path_that_goes_in_the_window_is_refuted(kernel: Kernel, tmp_path: Path) -> None:
    found = findings(cell(kernel, tmp_path, "path", LOSE_A_PATH, "in_window=lose_a_path"))
    assert found["C8"].answer is Answer.REFUTED
    print(said(found["C8"]))


def test_a_member_that_is_read_beside_the_array_is_refuted(kernel: Kernel, tmp_path: Path) -> None:
    found = findings(cell(kernel, tmp_path, "member", READ_A_MEMBER, "in_window=read_a_member"))
    assert found["C4"].answer is Answer.REFUTED
    assert "Members and stack disagree" in meant(found["C4"])
