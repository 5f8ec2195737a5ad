"""Cells on real kernel objects, one thing wrong at a time; only an engine's words are made up.

Real: loop devices, XFS, KV files, the drop, residency, the probes as a process of their own, and a
process that reads the files as an engine's would. `FakeEngine` is the hook: it has no model, so its
log lines, its requests and its metrics come from the synthetic run of the same plan.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.lab.instruments import probes as instruments
from r8.lab.instruments.recording import Recording
from r8.lab.machine import commands
from r8.lab.site.machines import Host
from r8.tests.support.fault_lab_programs import AS_SOMEBODY, READER
from r8.tests.support.fault_lab_rows import fake_engine_rows, real_requests
from r8.tests.support.run_factory import SyntheticRun, synthetic_run
from r8.tests.support.run_factory_log import log_lines
from r8.tests.support.run_factory_rows import HOST, calibration_rows, event_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.evidence.reader import Evidence

HERE = Host(name=HOST)
MIB = 1 << 20
QUIET_S = 0.6
# Three ticks of the probes at their rate here.
SETTLE_S = 0.2
RATES_HZ = {"disk": 20, "process": 20, "topology": 2}


@dataclass(slots=True, kw_only=True)
class Device:
    """A loop device with XFS on it."""

    path: str
    image: Path
    mount: Path

    @property
    def name(self) -> str:
        return Path(self.path).name

    def attach_again(self) -> None:
        """Take it away under the mount and bring it back: another instance of the same name."""
        for words in (
            ["umount", str(self.mount)],
            ["losetup", "--detach", self.path],
            ["losetup", self.path, str(self.image)],
            ["mount", self.path, str(self.mount)],
        ):
            subprocess.run(words, check=True, capture_output=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong in one cell; nothing, by default."""

    drop: Callable[[Path], list[str]] | None = None  # the drop command for a KV directory
    drop_timeout_s: float = 20.0
    kv_root: Path | None = None  # where the KV files lie, when not on the named device
    in_window: Callable[[Cell], None] | None = None
    read_share: float = 1.0  # of the files; the rest comes out of a tier in DRAM
    direct: bool = False  # the engine asks for O_DIRECT
    residency_uid: int | None = None  # for reading residency as somebody else
    spec: dict[str, Any] = field(default_factory=dict)  # of the synthetic run
    other_devices: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Cell:
    """A cell while it runs."""

    recording: Recording
    device: Device
    kv_dir: Path
    files: list[Path]
    control: list[Path]  # of the negative control's session
    engine: subprocess.Popen[str]
    probes: subprocess.Popen[bytes]
    marks: dict[str, int] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)  # how the engine's process read

    def mark(self, name: str, **detail: Any) -> None:
        self.marks[name] = self.recording.event(name, **detail)

    def read(self, files: list[Path]) -> None:
        """Have the engine's process read files."""
        assert self.engine.stdin is not None
        assert self.engine.stdout is not None
        self.engine.stdin.write(" ".join(map(str, files)) + "\n")
        self.engine.stdin.flush()
        self.said.add(self.engine.stdout.readline().strip())

    def restart_probes(self, pause_s: float) -> None:
        """Kill the recorder; another one goes on with the same journal after a pause."""
        self.probes.kill()
        self.probes.wait()
        time.sleep(pause_s)
        self.probes = _probes(self.recording, self.engine.pid, _watched(self))


def run_cell(root: Path, device: Device, fault: Fault) -> Evidence:
    """One cell from its begin to its sealed evidence."""
    return read_run(finalise(record_cell(root, device, fault), complete=True))


def record_cell(root: Path, device: Device, fault: Fault) -> Path:
    """One cell from its begin to the end of its journals, which are not sealed yet."""
    spec = SyntheticRun(
        **{
            "arm": "unpatched",
            "run_id": root.name,
            "kv_device": device.name,
            "other_kv_devices": fault.other_devices,
            "ttft_s": (0.2,) * 4,
            "warm_ttft_s": (0.2,) * 4,
            "itl_s": 0.001,
            **fault.spec,
        }
    )
    kv_dir = (fault.kv_root or device.mount) / root.name
    kv_dir.mkdir()
    run = replace(synthetic_run(spec), kv_dir=str(kv_dir))
    recording = Recording.begin(root, run, "# fault lab\n")
    words = [sys.executable, "-c", READER, *(["direct"] if fault.direct else [])]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as engine:
        watched = [device.name, *fault.other_devices]
        probes = _probes(recording, engine.pid, watched)
        cell = Cell(
            recording=recording,
            device=device,
            kv_dir=kv_dir,
            files=[],
            control=[],
            engine=engine,
            probes=probes,
        )
        try:
            _phases(cell, spec, fault)
        finally:
            cell.probes.send_signal(signal.SIGINT)
            cell.probes.wait(20)
            assert engine.stdin is not None
            engine.stdin.close()
            shutil.rmtree(kv_dir, ignore_errors=True)
    recording.event("run_end", read=sorted(cell.said))
    _fake_engine(cell, spec)
    recording.close()
    return recording.directory


def _probes(recording: Recording, pid: int, devices: list[str]) -> subprocess.Popen[bytes]:
    plan = {"host": HOST, "block_devices": devices, "engines": {"a": pid}, "iostat": False}
    plan["rates_hz"] = RATES_HZ
    path = recording.raw("plan-probes.json")
    path.write_text(json.dumps(plan))
    argv = [sys.executable, "-m", "probes", "record", "--plan", str(path)]
    argv += ["--out", str(recording.directory)]
    journal = recording.directory / "probes.jsonl"
    size = journal.stat().st_size if journal.exists() else 0
    process = subprocess.Popen(argv, cwd=instruments.CHECKOUT, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not journal.exists() or journal.stat().st_size < size + 4000:
        assert time.monotonic() < deadline, "the probes wrote nothing"
        time.sleep(0.05)
    return process


def _watched(cell: Cell) -> list[str]:
    plan: dict[str, Any] = json.loads(cell.recording.raw("plan-probes.json").read_text())
    return list(plan["block_devices"])


def _phases(cell: Cell, spec: SyntheticRun, fault: Fault) -> None:
    instruments.environment(cell.recording, "begin")
    made_up = {row["name"]: json.loads(row["detail"] or "{}") for row in event_rows(spec)}
    for name in ("patch_state", "engine_started", "server_config"):
        cell.mark(name, **made_up[name])
    _populate(cell, spec)
    _drop(cell, fault)
    cell.mark("rewarm_begin")
    cell.mark("rewarm_end")
    time.sleep(SETTLE_S)
    cell.mark("measure_begin")
    half = len(cell.files) // 2
    cell.read(cell.files[:half])
    if fault.in_window is not None:
        fault.in_window(cell)
    cell.read(cell.files[half : round(fault.read_share * len(cell.files))] or cell.files[:0])
    time.sleep(SETTLE_S)
    cell.mark("measure_end")
    time.sleep(SETTLE_S)
    instruments.residency(cell.recording, cell.kv_dir, "after_measure", HERE)
    cell.mark("warm_begin")
    cell.read(cell.files)
    time.sleep(SETTLE_S)
    cell.mark("warm_end")
    time.sleep(SETTLE_S)
    _controls(cell)
    instruments.environment(cell.recording, "end")


def _controls(cell: Cell) -> None:
    """A prompt nobody stored, then a session of the control's own from the page cache."""
    cell.mark("control_begin", control="random_prompt")
    cell.mark("control_end", control="random_prompt")
    cell.mark("control_drop_begin")
    done = commands.run(evict(cell.kv_dir))
    cell.mark("control_drop_end", rc=done.returncode, command=done.line, error=done.error)
    for path in cell.control:
        path.read_bytes()
    instruments.residency(cell.recording, cell.kv_dir, "warm_read", HERE)
    time.sleep(SETTLE_S)
    cell.marks["warm_control"] = cell.recording.event("control_begin", control="warm_read")
    cell.read(cell.control)
    time.sleep(SETTLE_S)
    cell.mark("control_end", control="warm_read")
    time.sleep(SETTLE_S)


def _populate(cell: Cell, spec: SyntheticRun) -> None:
    cell.mark("populate_begin")
    measured = spec.expectation.hit_bytes // spec.chunk_bytes
    count = measured + measured // spec.expectation.sessions
    paths = [cell.kv_dir / f"{number}.pt" for number in range(count)]
    cell.files, cell.control = paths[:measured], paths[measured:]
    for path in paths:
        path.write_bytes(os.urandom(spec.chunk_bytes))
    cell.mark("populate_end")
    cell.mark("flush_begin")
    cell.mark("flush_end")
    subprocess.run(["sync", "-f", str(cell.kv_dir)], check=True)
    time.sleep(QUIET_S)
    facts = {"files": count, "bytes": count * spec.chunk_bytes}
    expected = {f"expected_{name}": value for name, value in facts.items()}
    cell.mark("durable", **facts, **expected, quiet_ns=round(0.9 * QUIET_S * 1e9))


def evict(directory: Path) -> list[str]:
    """The drop of an unprivileged host: of these files alone, nobody else's cache is touched."""
    words = ["env", f"PYTHONPATH={instruments.CHECKOUT}", sys.executable, "-m", "probes"]
    return [*words, "evict", "--dir", str(directory)]


def _drop(cell: Cell, fault: Fault) -> None:
    cell.mark("drop_begin")
    words = (fault.drop or evict)(cell.kv_dir)
    done = commands.run(words, timeout_s=fault.drop_timeout_s)
    cell.mark("drop_end", rc=done.returncode, command=done.line, error=done.error)
    if fault.residency_uid is not None:
        argv = ["env", f"PYTHONPATH={instruments.CHECKOUT}", sys.executable, "-c", AS_SOMEBODY]
        argv += [str(fault.residency_uid), "residency", "--dir", str(cell.kv_dir)]
        seen = commands.run([*argv, "--moment", "after_drop", "--host", HOST])
        assert seen.ok, seen.error
        with (cell.recording.directory / "residency.jsonl").open("a") as journal:
            journal.write(seen.output)
    else:
        instruments.residency(cell.recording, cell.kv_dir, "after_drop", HERE)
    cell.mark("cold_checked")


def _fake_engine(cell: Cell, spec: SyntheticRun) -> None:
    """What an engine and a client would have said of this cell."""
    requests, chunks = real_requests(spec, cell.marks)
    for table, rows in (
        ("requests", requests),
        ("chunks", chunks),
        ("calibration", calibration_rows(spec)),
        ("probes", fake_engine_rows(spec, cell.marks)),
    ):
        with (cell.recording.directory / f"{table}.jsonl").open("a") as journal:
            journal.writelines(json.dumps(row) + "\n" for row in rows)
    log = "".join(line + "\n" for line in log_lines(spec))
    cell.recording.raw("server-a.log").write_text(log)
