"""A checkpoint on real kernel objects, one thing wrong at a time: processes, XFS, a shaped device.

Each cell runs through the same campaign as a reproduction. What is injected: `kill -9` of a rank in
the middle, a full file system, a device that fails writes, and one that fails flushes; and once a
save is timed without its flush, which no site file can ask for.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from r8.errors import R8Error, told
from r8.evidence.reader import read_run
from r8.lab.campaign.campaign import open_campaign, plan_campaign
from r8.lab.instruments import probes
from r8.lab.machine.supervisor import Supervisor
from r8.lab.rehearsal import fallback
from r8.lab.rehearsal.fallback import LOOP
from r8.lab.rehearsal.shape import Shape
from r8.lab.site.load import load_site
from r8.lab.transfer import checkpointing, jobs
from r8.lab.transfer import stage as stages
from r8.lab.transfer.tools import write_checkpoint
from r8.message import Answer
from r8.tests.support.faulty_fs import (
    EIO,
    FSYNC,
    WRITE,
    Fault,
    FaultControl,
    control_of,
    faulty_device,
)
from r8.tests.support.findings import meant, said
from r8.tests.support.judged_run import findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.evidence.reader import Evidence
    from r8.lab.rehearsal.fallback import ShapedDevice
    from r8.lab.transfer.stage import Stage
    from r8.model import Finding

taken, why_not = fallback.best_level(fallback.capabilities())
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(taken is not LOOP, reason=f"no shaped block device here: {why_not}"),
]

MIB = 1 << 20
CHECKOUT = Path(__file__).resolve().parents[4]
SCENARIO = "r1-checkpoint"
# Two ranks of 24 MiB on 16 MB/s: a save of three seconds, with a middle to strike in.
SHAPE = Shape(
    read_bandwidth_bytes_per_s=1_000_000_000,
    read_latency_ns=0,
    write_bandwidth_bytes_per_s=16_000_000,
    max_sectors_kib=1024,
)
IMAGE_BYTES = 384 * MIB
RANK_BYTES = 24 * MIB
# So much of a save has reached the device when something happens to it.
MIDDLE_BYTES = 8 * MIB
PATIENCE_S = 60.0
PAUSE_S = 0.7
PASSING = {Answer.HELD, Answer.NOT_APPLICABLE}

SITE = """
schema = 2
name = "faults"
basis = "modelled"
[comparability]
platform = "this machine"
[[hosts]]
name = "here"
drop_caches = [
  "env", "PYTHONPATH={checkout}", "{python}", "-m", "probes", "evict", "--dir", "{dir}",
]
[[devices]]
name = "array"
host = "here"
kv_dir = "{dir}"
block_device = "{block}"
fio = {{ read_bytes = 0 }}
[engine]
host = "here"
python = ["{python}"]
[transfers.r1-checkpoint]
job = "checkpoint"
arms = ["array-full-each"]
concurrency = [2]
worker_bytes = {rank_bytes}
shard_bytes = 8388608
settings = {{ ceiling_bytes = 4194304, tensor_bytes = 4194304 }}
blocks = 1
timeout_s = 120.0
[transfers.r1-checkpoint.arm.array-full-each]
role = "array"
device = "array"
tool = "full-each"
"""


@dataclass(slots=True)
class Bench:
    """A device to write checkpoints on, and what is to happen in the middle of a save."""

    home: Path
    supervisor: Supervisor
    device: ShapedDevice
    strike: Callable[[Bench, Stage], None] | None = None
    struck: list[str] = field(default_factory=list)

    @property
    def control(self) -> FaultControl:
        return control_of(self.device)

    @property
    def stuffing(self) -> Path:
        """A file that takes the room of the device."""
        return self.device.kv_dir.parent / "stuffing"

    def run(self) -> Path:
        """One cell; its run directory, also of one that broke. R8Error where the cell broke."""
        words = {"checkout": CHECKOUT, "python": sys.executable, "dir": self.device.kv_dir}
        words |= {"block": self.device.block_device, "rank_bytes": RANK_BYTES}
        path = self.home / "site.toml"
        path.write_text(SITE.format(**words))
        loaded = load_site(path)
        matrix, cells = plan_campaign(loaded, SCENARIO, ("array-full-each",), blocks=1, seed=8)
        root = self.home / "runs"
        with open_campaign(loaded, matrix, cells, self.supervisor, runs_root=root) as campaign:
            return campaign.run(cells[0])

    def findings(self) -> dict[str, Finding]:
        return findings(read_run(self.run()))

    def mount_anew(self) -> None:
        """No more faults; a file system that ended itself comes back by its log."""
        self.control.clear_faults()
        mount = self.device.kv_dir.parent
        subprocess.run(["umount", str(mount)], check=True)
        subprocess.run(["mount", f"/dev/{self.device.block_device}", str(mount)], check=True)

    def mend(self) -> None:
        """The device as the next cell expects it: whole and empty."""
        self.mount_anew()
        self.stuffing.unlink(missing_ok=True)
        for left in self.device.kv_dir.iterdir():
            shutil.rmtree(left)


@pytest.fixture(name="shaped", scope="module")
def _shaped(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Supervisor, ShapedDevice]]:
    """One device for all cells: making it takes longer than most of what is done on it."""
    home = tmp_path_factory.mktemp("device")
    with (
        Supervisor(home / "supervisor") as supervisor,
        faulty_device(SHAPE, supervisor, home, "array", IMAGE_BYTES) as device,
    ):
        yield supervisor, device


@pytest.fixture
def bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shaped: tuple[Supervisor, ShapedDevice]
) -> Iterator[Bench]:
    supervisor, device = shaped
    # Seven samples are enough of a pause; a site's devices get longer ones.
    for module in (checkpointing, stages):
        monkeypatch.setattr(module, "QUIET_S", PAUSE_S)
    monkeypatch.setattr(probes, "SETTLE_S", PAUSE_S)
    made = Bench(tmp_path, supervisor, device)
    made.control.reset_counters()
    real = stages.act

    def act(stage: Stage, phase: str, orders: Any) -> list[dict[str, Any]]:
        if phase != "measure" or made.strike is None:
            return real(stage, phase, orders)
        thread = threading.Thread(target=_in_the_middle, args=(made, stage))
        thread.start()
        try:
            return real(stage, phase, orders)
        finally:
            thread.join(PATIENCE_S)

    monkeypatch.setattr(checkpointing, "act", act)
    yield made
    made.mend()


def _in_the_middle(bench: Bench, stage: Stage) -> None:
    control = bench.control
    assert bench.strike is not None
    partial = stage.path / "step-2.partial"
    deadline = time.monotonic() + PATIENCE_S
    while not partial.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    before = control.counters()["write_bytes"]
    while control.counters()["write_bytes"] < before + MIDDLE_BYTES:
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)
    bench.strike(bench, stage)
    bench.struck.append("in the middle")


def kill_a_rank(bench: Bench, stage: Stage) -> None:
    os.kill(stage.pool.workers[1].process.pid, signal.SIGKILL)


def fail_flushes(bench: Bench, _stage: Stage) -> None:
    bench.control.inject(Fault(kind=EIO, on=FSYNC))


def fail_data(bench: Bench, _stage: Stage) -> None:
    """Everywhere but in the file system's own log, whose loss is another case; then no more."""
    control = bench.control
    begin, end = log_of(Path(f"/dev/{bench.device.block_device}"))
    control.inject(Fault(kind=EIO, on=WRITE, length=begin))
    control.inject(Fault(kind=EIO, on=WRITE, offset=end))
    deadline = time.monotonic() + PATIENCE_S
    while not control.counters()["faults"] and time.monotonic() < deadline:
        time.sleep(0.01)
    control.clear_faults()


def log_of(device: Path) -> tuple[int, int]:
    """Where the log of an XFS begins and ends, in bytes, by its superblock."""
    with device.open("rb") as file:
        block = file.read(512)
    assert block[:4] == b"XFSB"
    block_bytes, log_start = struct.unpack_from(">I", block, 4)[0], block[48:56]
    group_blocks, log_blocks = (struct.unpack_from(">I", block, at)[0] for at in (84, 96))
    group_bits = block[124]
    start = int.from_bytes(log_start, "big")
    group, inside = start >> group_bits, start & ((1 << group_bits) - 1)
    begin = (group * group_blocks + inside) * block_bytes
    return begin, begin + log_blocks * block_bytes


def rows(evidence: Evidence, name: str) -> list[dict[str, Any]]:
    return [row for row in evidence.table("events").to_pylist() if row["name"] == name]


def test_a_save_on_a_real_device_is_durable_reads_back_and_takes_what_the_shape_says(
    bench: Bench,
) -> None:
    evidence = read_run(bench.run())
    found = findings(evidence)
    bad = {k: f"{f.answer} {said(f)} {meant(f)}" for k, f in found.items()}
    assert {k: bad[k] for k, f in found.items() if f.answer not in PASSING} == {}
    assert "2 of 2 parts have the SHA-256 they were saved by" in said(found["W2"])
    assert bench.control.counters()["fsyncs"] > 0
    assert list(bench.device.kv_dir.iterdir()) == []


def test_a_save_timed_without_its_flush_is_refused_by_the_durability_rule(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    unflushed = replace(
        checkpointing.JOB,
        phases=lambda stage, files: checkpointing.checkpoint(stage, files, flushed=False),
    )
    monkeypatch.setattr(jobs, "JOBS", (unflushed,))
    found = bench.findings()
    assert found["W1"].answer is Answer.REFUTED
    assert "6 of 6 files not flushed" in said(found["W1"])
    assert "Bytes were still in memory when the time ended." in meant(found["W1"])
    assert found["Q1"].answer is Answer.HELD, "every rank said it was done"


def test_a_rank_killed_in_the_middle_leaves_an_invalid_cell_and_nothing_half_renamed(
    bench: Bench,
) -> None:
    bench.strike = kill_a_rank
    found = bench.findings()
    assert bench.struck == ["in the middle"]
    assert found["W1"].answer is Answer.REFUTED
    assert "w1 ended: ended with code -9" in said(found["W1"])
    assert "w0 failed: RankError" in said(found["W1"])
    assert found["W2"].answer is Answer.REFUTED
    assert found["W3"].answer is Answer.HELD, said(found["W3"])
    assert "directory holds step-1 = step-1" in said(found["W3"])


def test_a_full_file_system_leaves_an_invalid_cell_with_the_reason(bench: Bench) -> None:
    def fill(_bench: Bench, _stage: Stage) -> None:
        free = os.statvfs(bench.device.kv_dir.parent)
        with bench.stuffing.open("wb") as file, contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - MIB)

    bench.strike = fill
    found = bench.findings()
    assert bench.struck == ["in the middle"]
    assert found["W1"].answer is Answer.REFUTED
    assert "No space left on device" in said(found["W1"])
    assert found["W3"].answer is Answer.HELD, said(found["W3"])


def test_a_device_that_fails_writes_leaves_an_invalid_cell_with_the_reason(bench: Bench) -> None:
    bench.strike = fail_data
    found = bench.findings()
    assert bench.struck == ["in the middle"]
    assert found["W1"].answer is Answer.REFUTED
    assert "Input/output error" in said(found["W1"])
    assert found["W2"].answer is Answer.REFUTED
    assert found["W3"].answer is Answer.HELD, said(found["W3"])


def test_a_device_that_takes_no_write_says_so_first(bench: Bench) -> None:
    control = bench.control
    for operation in (WRITE, FSYNC):
        control.inject(Fault(kind=EIO, on=operation))
    with pytest.raises(R8Error) as raised:
        bench.run()
    lines = told(raised.value)
    assert "Input/output error" in lines[0], lines


def test_a_device_whose_log_is_gone_says_so_before_what_could_not_be_removed(bench: Bench) -> None:
    """XFS ends itself when its log cannot be written: nothing can be removed from it then."""
    control = bench.control
    begin, end = log_of(Path(f"/dev/{bench.device.block_device}"))
    control.inject(Fault(kind=EIO, on=WRITE, offset=begin, length=end - begin))
    with pytest.raises(R8Error) as raised:
        bench.run()
    lines = told(raised.value)
    assert "Input/output error" in lines[0], lines
    assert "files of a transfer" in lines[-1], lines


def test_a_device_that_fails_flushes_commits_nothing_and_the_earlier_checkpoint_survives(
    bench: Bench,
) -> None:
    """XFS ends itself when its log cannot be flushed; after a mount the earlier one is there."""
    bench.strike = fail_flushes
    with contextlib.suppress(R8Error):  # what cannot be removed from a dead file system is said
        bench.run()
    assert bench.struck == ["in the middle"]
    bench.mount_anew()
    (evidence,) = [read_run(path.parent) for path in bench.home.glob("runs/*/*/MANIFEST.sha256")]
    found = findings(evidence)
    assert found["W1"].answer is Answer.REFUTED
    assert "Input/output error" in said(found["W1"])
    left = sorted(path.name for path in Path(evidence.run.kv_dir).iterdir())
    assert "step-2" not in left
    assert set(left) <= {"step-1", "step-2.partial"}
    assert "step-1" in left
    for row in rows(evidence, "work"):
        told = json.loads(row["detail"])
        if told["phase"] == "earlier":
            where = {"directory": f"{evidence.run.kv_dir}/step-1", "layout": "full-each"}
            assert (
                write_checkpoint.read({**where, "rank": told["rank"]})["sha256"] == told["sha256"]
            )
