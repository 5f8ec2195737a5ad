"""Synthetic checkpoint runs: made up, for the arithmetic of rules and metrics only.

One timeline of nanoseconds: the ranks save from `SAVE` on for `save_s`, the device writes evenly
for `write_s`; the two differ where a save is timed without its flush. `spoil` sees all rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.evidence.finalise import finalise
from r8.evidence.journal import run_to_json
from r8.evidence.reader import read_run
from r8.model import Basis, Device, TransferRun
from r8.roles import Role
from r8.schema import SCHEMA_VERSION
from r8.tests.support.run_factory import write_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.evidence.reader import Evidence

SCENARIO = "r1-checkpoint"
Row = dict[str, Any]
Tables = dict[str, list[Row]]
S = 1_000_000_000
TICK = S // 10
WALL_NS = 1_789_999_000 * S
BEGIN = 1000 * S
SAVE = 1020 * S
HEADER = 512
EARLIER_BYTES = 1 << 20
SECTOR = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticSave:
    """What the run shall show; seconds and bytes."""

    arm: str = "array-full-each"
    campaign_id: str = "campaign-1"
    block: int = 0
    ranks: int = 4
    rank_bytes: int = 32 << 20
    save_s: float = 2.0
    write_s: float | None = None  # the device writes for so long; None: as long as the save
    ceiling_bytes_per_s: int | None = 70_000_000
    flushes: int = 8
    cache: str | None = "write back"
    basis: Basis = Basis.MODELLED

    @property
    def run_id(self) -> str:
        return f"{self.campaign_id}-b{self.block}-{self.arm}-c{self.ranks}"

    @property
    def payload(self) -> int:
        return self.ranks * self.rank_bytes

    @property
    def file_bytes(self) -> int:
        return self.payload + self.ranks * HEADER

    @property
    def end(self) -> int:
        """When the last rank ends."""
        return SAVE + round(self.save_s * S)

    @property
    def written(self) -> int:
        """When the device has everything."""
        return SAVE + round((self.save_s if self.write_s is None else self.write_s) * S)

    @property
    def drop(self) -> int:
        return self.end + 5 * S

    @property
    def readback(self) -> int:
        return self.drop + 5 * S


def save_run(
    root: Path, spec: SyntheticSave | None = None, spoil: Callable[[Tables], None] | None = None
) -> Evidence:
    """A sealed run directory, read back."""
    made = spec or SyntheticSave()
    partial = root / SCENARIO / f"{made.run_id}.partial"
    (partial / "raw").mkdir(parents=True)
    tables: Tables = {
        "events": [*_events(made), *_ceilings(made)],
        "probes": _probes(made),
        "residency": _residency(made),
        "calibration": [],
        "requests": [],
        "chunks": [],
    }
    if spoil is not None:
        spoil(tables)
    tables["events"].sort(key=lambda row: row["mono_ns"])
    for name, rows in tables.items():
        write_lines(partial / f"{name}.jsonl", rows)
    (partial / "run.json").write_text(json.dumps(run_to_json(_run(made))))
    return read_run(finalise(partial, complete=True))


def worker_rows(tables: Tables, phase: str) -> list[Row]:
    """The rows of one phase's ranks, with their details as objects in `detail`."""
    found = []
    for row in tables["events"]:
        detail = json.loads(row["detail"] or "{}")
        if row["name"] == "work" and detail["phase"] == phase:
            found.append(row)
    return found


def change(row: Row, **facts: Any) -> None:
    """Change facts in an event's detail."""
    row["detail"] = json.dumps({**json.loads(row["detail"] or "{}"), **facts})


def take_out(tables: Tables, *rows: Row) -> None:
    """Remove events."""
    tables["events"] = [row for row in tables["events"] if all(row is not one for one in rows)]


def _run(spec: SyntheticSave) -> TransferRun:
    return TransferRun(
        schema_version=SCHEMA_VERSION,
        run_id=spec.run_id,
        campaign_id=spec.campaign_id,
        plan_sha256=None,
        scenario=SCENARIO,
        arm=spec.arm,
        role=Role.LOCAL if spec.arm.startswith("local") else Role.ARRAY,
        concurrency=spec.ranks,
        block=spec.block,
        order=0,
        balanced=True,
        basis=spec.basis,
        site="synthetic",
        site_sha256="00" * 32,
        fallback_level="loop-xfs",
        seed=7,
        started_wall_ns=WALL_NS + BEGIN,
        r8_version="0",
        versions={},
        comparability={"device": "shaped"},
        host={"name": "host-1"},
        kv_device="loop0",
        kv_dir="/ckpt",
        kv_host="host-1",
        other_kv_devices=(Device(host="host-1", name="loop1"),),
        complete=False,
        job="checkpoint",
        moves="write",
        tool="full-each",
        workers=tuple(f"w{rank}" for rank in range(spec.ranks)),
        files=spec.ranks,
        total_bytes=spec.payload,
        time_scale=1.0,
    )


def _events(spec: SyntheticSave) -> list[Row]:
    same: Row = {"sections": {"kernel": "aa" * 32}, "unavailable": ["gpu"], "gpus": []}
    same["tools_missing"] = []
    lies = spec.ranks * (EARLIER_BYTES + HEADER) + spec.file_bytes
    durable = {"files": 2 * spec.ranks, "bytes": lies, "quiet_ns": 2 * S, "made": True}
    durable |= {"expected_files": 2 * spec.ranks, "expected_bytes": lies}
    marks: list[tuple[str, int, Row]] = [
        ("run_begin", BEGIN, {}),
        ("environment", BEGIN + 1, same | {"moment": "begin"}),
        ("populate_begin", BEGIN + S, {}),
        ("populate_end", BEGIN + 2 * S, {}),
        ("write_cache", SAVE - 3 * S, {"modes": {"loop0": spec.cache}}),
        ("measure_begin", SAVE - TICK, {}),
        ("measure_end", spec.end + 1, {}),
        ("durable", spec.end + 3 * S, durable),
        ("checkpoints", spec.end + 3 * S + 1, {"names": ["step-1", "step-2"], "error": None}),
        ("drop_begin", spec.drop, {}),
        ("drop_end", spec.drop + S, {"rc": 0, "command": "drop", "error": None}),
        ("cold_checked", spec.drop + 2 * S, {}),
        ("readback_begin", spec.readback - TICK, {}),
        ("readback_end", spec.readback + S + 1, {}),
        ("environment", spec.readback + 5 * S, same | {"moment": "end", "changes": []}),
        ("run_end", spec.readback + 6 * S, {}),
    ]
    rows = [_event(name, at, detail) for name, at, detail in marks]
    for rank in range(spec.ranks):
        rows += [_event("work", detail["end_ns"], detail) for detail in _rank(spec, rank)]
    return rows


def _rank(spec: SyntheticSave, rank: int) -> list[Row]:
    whole, first = f"{rank:02d}" * 32, f"e{rank:01d}" * 32
    size = {"bytes": spec.rank_bytes, "file_bytes": spec.rank_bytes + HEADER, "files": 1}
    small = {"bytes": EARLIER_BYTES, "file_bytes": EARLIER_BYTES + HEADER, "files": 1}
    flushed = {"synced_files": 1, "synced_directories": 3 if rank == 0 else 1}
    flushed["committed"] = rank == 0
    told: list[tuple[str, int, int, Row]] = [
        ("prepare", BEGIN + 3 * S, BEGIN + 4 * S, {"sha256": whole, **size}),
        ("earlier", BEGIN + 5 * S, BEGIN + 6 * S, {"sha256": first, **small, **flushed}),
        ("measure", SAVE, spec.end - rank, {**size, **flushed}),
        ("readback", spec.readback, spec.readback + S, {"sha256": whole, **size}),
        (
            "readback_earlier",
            spec.readback + 2 * S,
            spec.readback + 3 * S,
            {"sha256": first, **small},
        ),
    ]
    return [
        {
            "worker": f"w{rank}",
            "rank": rank,
            "phase": phase,
            "outcome": "ok",
            "scheduled_ns": begin,
            "begin_ns": begin,
            "end_ns": end,
            **facts,
        }
        for phase, begin, end, facts in told
    ]


def _event(name: str, at: int, detail: Row) -> Row:
    return {"name": name, "mono_ns": at, "wall_ns": at + WALL_NS, "detail": json.dumps(detail)}


def _probes(spec: SyntheticSave) -> list[Row]:
    rows = []
    last = spec.readback + 5 * S
    for at in range(SAVE - 8 * S + TICK // 2, last, TICK):
        wrote = _evenly(spec.file_bytes, at, SAVE, spec.written)
        read = _evenly(spec.file_bytes, at, spec.readback, spec.readback + S)
        flushed = spec.flushes if at >= spec.end else 0
        for device, mine in (("loop0", True), ("loop1", False)):
            values = {"write_sectors": 1 + (wrote // SECTOR + 1) * mine}
            values |= {"read_sectors": 1 + read // SECTOR * mine, "flushes": 5 + flushed * mine}
            rows += [_reading("disk", device, at, name, one) for name, one in values.items()]
        rows += [
            _reading("process", f"w{rank}:{100 + rank}:5000", at, "read_bytes", 1000)
            for rank in range(spec.ranks)
        ]
    for at in (BEGIN + 2 * S, last):
        for device, mount in (("loop0", "/ckpt"), ("loop1", "")):
            base = {"probe": "topology", "host": "host-1", "device": device, "mono_ns": at}
            base["wall_ns"] = at + WALL_NS
            facts = {"kind": "loop", "members": "", "mount": mount, "state": "live"}
            rows += [{**base, "counter": name, "text": text} for name, text in facts.items()]
            rows.append({**base, "counter": "diskseq", "value": 1})
    return rows


def _evenly(total: int, at: int, begin: int, end: int) -> int:
    return round(total * min(1.0, max(0.0, (at - begin) / max(1, end - begin))))


def _reading(probe: str, device: str, at: int, counter: str, value: int) -> Row:
    row: Row = {"probe": probe, "host": "host-1", "device": device, "counter": counter}
    return {**row, "value": value, "mono_ns": at, "wall_ns": at + WALL_NS, "epoch": 0}


def _residency(spec: SyntheticSave) -> list[Row]:
    sizes = {"step-1": EARLIER_BYTES + HEADER, "step-2": spec.rank_bytes + HEADER}
    return [
        {
            "moment": "after_drop",
            "host": "host-1",
            "path": f"{step}/rank-{rank}/model-00001-of-00001.safetensors",
            "size_bytes": size,
            "resident_bytes": 0,
            "device": "loop0",
            "method": "synthetic",
            "self_test": True,
            "mono_ns": spec.drop + S + 1,
        }
        for rank in range(spec.ranks)
        for step, size in sizes.items()
    ]


def _ceilings(spec: SyntheticSave) -> list[Row]:
    if spec.ceiling_bytes_per_s is None:
        return []
    # The second reading is one that a busy machine held up: the best counts.
    return [
        _event("write_ceiling", SAVE - 5 * S, {"write_bytes": size, "elapsed_ns": S})
        for size in (spec.ceiling_bytes_per_s, spec.ceiling_bytes_per_s // 2)
    ]
