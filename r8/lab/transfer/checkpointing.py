"""Checkpoint writes: every rank saves its part at one barrier, and what was saved is read back.

The order is the argument. Weights are made in memory and hashed; an earlier, small checkpoint is
saved, which nothing that follows may touch; fio says what the device takes; then every rank writes,
flushes and rank 0 commits, all of it inside the timed window. Afterwards nothing is flushed for the
ranks: what they left in memory shows in the device's counters. Only then the cache is dropped, and
both checkpoints are read back and hashed. A checkpoint that did not go through is taken away, and
the cell keeps its rows: it is INVALID by its rules, with the reason.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError
from r8.lab.campaign.phases import QUIET_S
from r8.lab.instruments import write_ceiling
from r8.lab.machine import commands
from r8.lab.transfer.jobs import Job
from r8.lab.transfer.stage import Files, act, drop, note, one_a_worker
from r8.lab.transfer.worker_pool import OK, WorkerSpec
from r8.units import BYTES_PER_MIB, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.lab.transfer.stage import WorkStage

TOOL = Path(__file__).with_name("tools") / "write_checkpoint.py"
FULL_EACH, SHARDED = "full-each", "sharded"  # the layouts: tools of the arms
EARLIER, MEASURED = "step-1", "step-2"
PARTIAL = ".partial"
# As large as the matrices of a small model; the earlier checkpoint is one of them a rank.
TENSOR_BYTES = 16 * BYTES_PER_MIB
# Three seconds of a drive of today; a site of another speed says `ceiling_bytes`.
CEILING_BYTES = 8 << 30
# A busy machine lowers a ceiling and never raises it: the best of them counts.
CEILING_READINGS = 2


def rank_bytes(stage: WorkStage) -> int:
    """What one rank saves: a whole snapshot, or its share of one; whole half-precision numbers."""
    whole = stage.plan.worker_bytes
    part = whole if stage.arm.tool == FULL_EACH else whole // len(stage.workers)
    return part // 2 * 2


def planned(stage: WorkStage) -> Files:
    """What the ranks will have written; nothing is made on the device before."""
    tensor, part = _setting(stage, "tensor_bytes", TENSOR_BYTES), rank_bytes(stage)
    count, each = len(stage.workers), files_of(part, tensor, stage.plan.shard_bytes)
    return Files(files=count * each, total_bytes=count * part, made=False)


def files_of(part: int, tensor: int, shard: int) -> int:
    """Files one rank's bytes are cut into: whole tensors, as many as fit into one, at least one.

    The last tensor is what remains; where a file of whole ones has room for it, it lies there.
    """
    whole, rest = divmod(part, tensor)
    most = max(1, shard // tensor)
    files, left_over = -(-whole // most), shard - most * tensor
    alone = rest and whole % most == 0 and (not whole or rest > left_over)
    return files + bool(alone)


def ranks(stage: WorkStage) -> list[WorkerSpec]:
    """A process a rank, each with its device."""
    return one_a_worker(stage, TOOL)


def checkpoint(stage: WorkStage, files: Files, *, flushed: bool = True) -> None:
    """All phases of a cell. `flushed` False is for the test that must see it refused."""
    saved_before = _prepare(stage)
    _ceiling(stage, files)
    _write_caches(stage)
    rows = act(stage, "measure", _saves(stage, MEASURED, flushed=flushed))
    done = all(row["outcome"] == OK for row in rows)
    if not done:
        _discard(stage)
    _say_outcome(stage, rows, done=done)
    _record_what_lies_there(stage, files, [*saved_before, *rows])
    drop(stage)
    if done:
        act(stage, "readback", _reads(stage, MEASURED))
    _read_earlier(stage)


def _phases(stage: WorkStage, files: Files) -> None:
    checkpoint(stage, files)


def _setting(stage: WorkStage, name: str, default: int) -> int:
    found = stage.setting(name)
    return default if found is None else int(found)


def _prepare(stage: WorkStage) -> list[dict[str, Any]]:
    """Weights in memory, hashed, and the earlier checkpoint; returns its rows."""
    rendezvous = stage.recording.raw("rendezvous")
    rendezvous.mkdir(exist_ok=True)
    orders = {
        name: {
            "do": "prepare",
            "rank": rank,
            "bytes": rank_bytes(stage),
            "tensor_bytes": _setting(stage, "tensor_bytes", TENSOR_BYTES),
            "seed": stage.recording.run.seed,
        }
        for rank, name in enumerate(stage.workers)
    }
    _all_well(stage, "prepare", orders)
    return _all_well(stage, "earlier", _saves(stage, EARLIER, flushed=True, tensors=1))


def _all_well(
    stage: WorkStage, phase: str, orders: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """An order before anything is measured: without it there is nothing to measure."""
    stage.say(f"{phase}: {len(orders)} ranks")
    rows = _order(stage, phase, orders)
    bad = next((row for row in rows if row["outcome"] != OK), None)
    if bad is not None:
        raise InstrumentError(
            f"rank {bad['worker']} {bad['outcome']} in phase {phase}: {bad.get('error')}",
            where=stage.directory.path,
            next_step="see raw/worker-*.log; has the device room for two checkpoints?",
        )
    return rows


def _order(stage: WorkStage, phase: str, orders: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    if stage.pool is None:
        raise InstrumentError(
            "no ranks", where=stage.recording.run.run_id, next_step="start them first"
        )
    rows = stage.pool.order(phase, orders, stage.plan.timeout_s)
    for row in rows:
        note(stage, row)
    return rows


def _saves(
    stage: WorkStage, name: str, *, flushed: bool, tensors: int | None = None
) -> dict[str, dict[str, Any]]:
    pids = {} if stage.pool is None else {one.name: one.facts["pid"] for one in stage.pool.workers}
    peers = {str(rank): pids.get(one) for rank, one in enumerate(stage.workers)}
    return {
        one: {
            "do": "save",
            "rank": rank,
            "directory": str(stage.path / name),
            "layout": stage.arm.tool,
            "shard_bytes": stage.plan.shard_bytes,
            "tensors": tensors,
            "fsync": flushed,
            "rendezvous": str(stage.recording.raw("rendezvous")),
            "peers": {number: pid for number, pid in peers.items() if number != str(rank)},
        }
        for rank, one in enumerate(stage.workers)
    }


def _reads(stage: WorkStage, name: str) -> dict[str, dict[str, Any]]:
    return {
        one: {
            "do": "read",
            "rank": rank,
            "directory": str(stage.path / name),
            "layout": stage.arm.tool,
        }
        for rank, one in enumerate(stage.workers)
    }


def _ceiling(stage: WorkStage, files: Files) -> None:
    stage.say("what the device takes by itself")
    nbytes = _setting(stage, "ceiling_bytes", CEILING_BYTES) // CEILING_READINGS
    speeds = []
    for _ in range(CEILING_READINGS):
        row = write_ceiling.measure(stage.path, stage.arm.device, nbytes)
        stage.recording.event("write_ceiling", **row)
        speeds.append(write_ceiling.bytes_per_s(row))
    speed = max(speeds)
    stage.say(f"fio writes {speed / 1e6:.1f} MB/s: {files.total_bytes / speed:.2f} s predicted")
    # What the file system still does about that file is over before the window.
    time.sleep(QUIET_S)


def _write_caches(stage: WorkStage) -> None:
    """Whether the device, or one below it, holds writes back until it is told to flush."""
    top = Path("/sys/block") / stage.recording.run.kv_device
    names = [top.name, *(path.name for path in (top / "slaves").glob("*"))]
    modes = {}
    for name in names:
        path = Path("/sys/class/block") / name / "queue" / "write_cache"
        modes[name] = path.read_text().strip() if path.is_file() else None
    stage.recording.event("write_cache", modes=modes)


def _discard(stage: WorkStage) -> None:
    """Take away what was not committed; on a device that is gone, it keeps a name of its own."""
    partial = stage.path / f"{MEASURED}{PARTIAL}"
    done = commands.run(["rm", "-rf", str(partial)])
    stage.recording.event("discarded", partial=partial.name, rc=done.returncode, error=done.error)


def _say_outcome(stage: WorkStage, rows: Sequence[dict[str, Any]], *, done: bool) -> None:
    if done:
        begun = min(row["begin_ns"] for row in rows)
        stage.say(f"saved in {(max(row['end_ns'] for row in rows) - begun) / NS_PER_S:.2f} s")
        return
    bad = next(row for row in rows if row["outcome"] != OK)
    stage.say(f"NOT SAVED: {bad['worker']} {bad['outcome']}: {bad.get('error')}")


def _record_what_lies_there(stage: WorkStage, files: Files, rows: Sequence[dict[str, Any]]) -> None:
    """Names and bytes in the directory, and whether the device is quiet; nothing is flushed."""
    before = _state(stage)
    time.sleep(QUIET_S)
    after = _state(stage)
    saved = [row for row in rows if row["outcome"] == OK]
    earlier = sum(row["files"] for row in rows if row["phase"] == "earlier")
    stage.recording.event(
        "durable",
        files=after[0],
        bytes=after[1],
        expected_files=files.files + earlier,
        expected_bytes=sum(row["file_bytes"] for row in saved),
        made=True,
        quiet_ns=round(QUIET_S * NS_PER_S) if after == before else 0,
    )
    try:
        names = sorted(path.name for path in stage.path.iterdir())
    except OSError as error:
        stage.recording.event("checkpoints", names=None, error=str(error))
    else:
        stage.recording.event("checkpoints", names=names, error=None)


def _state(stage: WorkStage) -> tuple[int, int]:
    """Files and bytes; none where the file system does not answer any more."""
    done = commands.run(stage.directory.words("look"))
    sizes = [int(line) for line in done.output.split()]
    return len(sizes), sum(sizes)


def _read_earlier(stage: WorkStage) -> None:
    """The earlier checkpoint, part by part, by whoever of the ranks is still there."""
    alive = (
        []
        if stage.pool is None
        else [one.name for one in stage.pool.workers if one.process.poll() is None]
    )
    left = list(_reads(stage, EARLIER).values())
    while left and alive:
        batch, left = left[: len(alive)], left[len(alive) :]
        _order(stage, "readback_earlier", dict(zip(alive, batch, strict=False)))


JOB = Job(moves="write", make=planned, specs=ranks, phases=_phases)
