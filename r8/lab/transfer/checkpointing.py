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
from r8.lab.instruments.fio import (
    WRITE_CEILING_FILE,
    write_bytes_per_s,
    write_ceiling,
    write_ceiling_argv,
)
from r8.lab.machine import commands
from r8.lab.machine.commands import typed
from r8.lab.machine.hosts import QUIET_S
from r8.lab.transfer.stage import Files, Job, act, drop, drop_commands, order
from r8.lab.transfer.worker_pool import OK
from r8.units import BYTES_PER_MIB, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from r8.lab.site.arms import TransferPlan
    from r8.lab.transfer.stage import Stage, Transfer

TOOL = Path(__file__).with_name("tools") / "write_checkpoint.py"
FULL_EACH = "full-each"  # the layout in which every worker writes all of it: a tool of the arms
EARLIER, MEASURED = "step-1", "step-2"
PARTIAL = ".partial"
# As large as the matrices of a small model; the earlier checkpoint is one of them a rank.
TENSOR_BYTES = 16 * BYTES_PER_MIB
# Three seconds of a drive of today; a site of another speed says `ceiling_bytes`.
CEILING_BYTES = 8 << 30
# A busy machine lowers a ceiling and never raises it: the best of them counts.
CEILING_READINGS = 2


def rank_bytes(transfer: Transfer) -> int:
    """What one rank saves: a whole snapshot, or its share of one; whole half-precision numbers."""
    whole = transfer.plan.worker_bytes
    part = whole if transfer.arm.tool == FULL_EACH else whole // len(transfer.workers)
    return part // 2 * 2


def planned(transfer: Transfer) -> Files:
    """What the ranks will have written; nothing is made on the device before."""
    tensor, part = int(transfer.settings.get("tensor_bytes", TENSOR_BYTES)), rank_bytes(transfer)
    count, each = len(transfer.workers), files_of(part, tensor, transfer.plan.shard_bytes)
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


def checkpoint(stage: Stage, files: Files, *, flushed: bool = True) -> None:
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


def _prepare(stage: Stage) -> list[dict[str, Any]]:
    """Weights in memory, hashed, and the earlier checkpoint; returns its rows."""
    rendezvous = stage.recording.raw("rendezvous")
    rendezvous.mkdir(exist_ok=True)
    orders = {
        name: {
            "do": "prepare",
            "rank": rank,
            "bytes": rank_bytes(stage),
            "tensor_bytes": int(stage.settings.get("tensor_bytes", TENSOR_BYTES)),
            "seed": stage.seed,
        }
        for rank, name in enumerate(stage.workers)
    }
    _all_well(stage, "prepare", orders)
    return _all_well(stage, "earlier", _saves(stage, EARLIER, flushed=True, tensors=1))


def _all_well(stage: Stage, phase: str, orders: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """An order before anything is measured: without it there is nothing to measure."""
    stage.testbed.say(f"{phase}: {len(orders)} ranks")
    rows = order(stage, phase, orders)
    bad = next((row for row in rows if row["outcome"] != OK), None)
    if bad is not None:
        raise InstrumentError(
            f"rank {bad['worker']} {bad['outcome']} in phase {phase}: {bad.get('error')}",
            where=stage.directory.path,
            next_step="read raw/worker-*.log; the device needs room for two checkpoints",
        )
    return rows


def _saves(
    stage: Stage, name: str, *, flushed: bool, tensors: int | None = None
) -> dict[str, dict[str, Any]]:
    pids = {one.name: one.facts["pid"] for one in stage.pool.workers}
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


def _reads(stage: Stage, name: str) -> dict[str, dict[str, Any]]:
    return {
        one: {
            "do": "read",
            "rank": rank,
            "directory": str(stage.path / name),
            "layout": stage.arm.tool,
        }
        for rank, one in enumerate(stage.workers)
    }


def _ceiling(stage: Stage, files: Files) -> None:
    stage.testbed.say("fio writes to the device: the ceiling")
    nbytes = int(stage.settings.get("ceiling_bytes", CEILING_BYTES)) // CEILING_READINGS
    speeds = []
    for _ in range(CEILING_READINGS):
        row = write_ceiling(stage.path, stage.arm.device, nbytes)
        stage.recording.event("write_ceiling", **row)
        speeds.append(write_bytes_per_s(row))
    speed = max(speeds)
    stage.testbed.say(
        f"fio writes {speed / 1e6:.1f} MB/s: {files.total_bytes / speed:.2f} s predicted"
    )
    # What the file system still does about that file is over before the window.
    time.sleep(QUIET_S)


def _write_caches(stage: Stage) -> None:
    """Whether the device, or one below it, holds writes back until it is told to flush."""
    top = Path("/sys/block") / stage.recording.run.kv_device
    names = [top.name, *(path.name for path in (top / "slaves").glob("*"))]
    modes = {}
    for name in names:
        path = Path("/sys/class/block") / name / "queue" / "write_cache"
        modes[name] = path.read_text().strip() if path.is_file() else None
    stage.recording.event("write_cache", modes=modes)


def _discard(stage: Stage) -> None:
    """Remove what was not committed; on a device that fails it stays, with its .partial name."""
    partial = stage.path / f"{MEASURED}{PARTIAL}"
    done = commands.run(["rm", "-rf", str(partial)])
    stage.recording.event("discarded", partial=partial.name, rc=done.returncode, error=done.error)


def _say_outcome(stage: Stage, rows: Sequence[dict[str, Any]], *, done: bool) -> None:
    if done:
        begun = min(row["begin_ns"] for row in rows)
        stage.testbed.say(
            f"saved in {(max(row['end_ns'] for row in rows) - begun) / NS_PER_S:.2f} s"
        )
        return
    bad = next(row for row in rows if row["outcome"] != OK)
    stage.testbed.say(f"NOT SAVED: {bad['worker']} {bad['outcome']}: {bad.get('error')}")


def _record_what_lies_there(stage: Stage, files: Files, rows: Sequence[dict[str, Any]]) -> None:
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


def _state(stage: Stage) -> tuple[int, int]:
    """Files and bytes; none where the file system does not answer any more."""
    done = commands.run(stage.directory.words("look"))
    sizes = [int(line) for line in done.output.split()]
    return len(sizes), sum(sizes)


def _read_earlier(stage: Stage) -> None:
    """The earlier checkpoint, part by part, by whoever of the ranks is still there."""
    alive = [one.name for one in stage.pool.workers if one.process.poll() is None]
    left = list(_reads(stage, EARLIER).values())
    while left and alive:
        batch, left = left[: len(alive)], left[len(alive) :]
        order(stage, "readback_earlier", dict(zip(alive, batch, strict=False)))


def device_bytes(plan: TransferPlan, name: str) -> int:
    """Bytes one cell of an arm puts on its device."""
    arm, workers = plan.arm[name], max(plan.levels_of(name))
    settings = plan.settings | arm.settings
    earlier = workers * int(settings.get("tensor_bytes", TENSOR_BYTES))
    snapshots = workers if arm.tool == FULL_EACH else 1
    ceiling = int(settings.get("ceiling_bytes", CEILING_BYTES))
    # What fio writes is removed before the ranks write.
    return earlier + max(snapshots * plan.worker_bytes, ceiling // CEILING_READINGS)


def _files_said(transfer: Transfer) -> str:
    whose = "of every rank" if transfer.arm.tool == FULL_EACH else "of all ranks together"
    return f"written by the ranks, a snapshot of {transfer.plan.worker_bytes} bytes {whose}"


def _commands(transfer: Transfer, partial: Path) -> Iterator[str]:
    yield "# each rank makes its weights and saves one tensor of them: the earlier checkpoint"
    nbytes = int(transfer.settings.get("ceiling_bytes", CEILING_BYTES)) // CEILING_READINGS
    yield typed(
        write_ceiling_argv(transfer.path / WRITE_CEILING_FILE, nbytes),
        f"# {CEILING_READINGS} times, its file removed each time",
    )
    yield "# the ranks save, flush and commit at one instant: no sync of ours before the drop"
    yield typed(transfer.directory.words("look"), "twice, nothing flushed")
    yield from drop_commands(transfer, partial)
    yield "# each rank reads back what it saved, and the earlier checkpoint is read again"


JOB = Job(
    name="checkpoint",
    moves="write",
    tool=lambda _arm: TOOL,
    make=planned,
    phases=checkpoint,
    device_bytes=device_bytes,
    files_said=_files_said,
    commands=_commands,
)
