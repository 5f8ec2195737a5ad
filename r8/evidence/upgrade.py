"""Runs of schema 1 as runs of schema 2: only those this release pins, by one function.

The reference runs of 2026-11-30 were recorded in schema 1. What they lack is known of them, and of
no other run of that schema: which role each arm had, how its reader read, which host held its
device. So they are named one by one, each with the digest of its manifest, and everything else of
schema 1 is refused. What comes out looks like any run of schema 2; the directory is not touched.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from r8.errors import EvidenceError
from r8.evidence.journal import RUN_FILE
from r8.evidence.layout import ROW_GROUP_ROWS, open_writer
from r8.evidence.log_clock import LogClock, Mark
from r8.resources import published_path
from r8.schema import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

FROM_VERSION = 1
PINS = "reference-runs.sha256"
# What is known of the pinned runs and stands in none of them. Arms that are not named here read
# from the array, through LMCache's local disk backend.
_HOST = "local"  # as their probes call the one host they were made on
_ROLES = {
    "recompute": "recompute",
    "local-nvme": "local",
    "local-full-each": "local",
    "local-sharded": "local",
    "pool": "pool",
    "fs-own": "shared",
    "fs-cross": "shared",
}
_READS = {"patched": "parallel", "unpatched": "serial"}


def upgrade(path: Path, tables: Path, digest: str) -> Path:
    """The pinned run of schema 1 at `path` as a directory of schema 2, gone when Python ends.

    It holds `run.json` and every table, made from the checked copies in `tables`; `digest` is that
    of the run's manifest, so nothing but what this release pins is opened.

    Raises:
        EvidenceError: a run that this release does not pin.

    """
    if pins().get(path.name) != digest:
        raise EvidenceError(
            f"run {path.name} is of schema {FROM_VERSION}, and none of the reference runs that "
            "this R8 still reads in that schema",
            where=str(path),
            next_step="record it anew, or judge it with the R8 that wrote it (`r8_version` in its "
            "run.json)",
        )
    target = tables.with_name(f"{digest}-{SCHEMA_VERSION}")
    if not target.exists():
        half = Path(tempfile.mkdtemp(dir=tables.parent))
        _write(tables, half)
        half.rename(target)
    return target


@functools.cache
def pins() -> dict[str, str]:
    """SHA-256 of the manifest of every reference run of schema 1, by run id."""
    lines = published_path(PINS).read_text(encoding="ascii").splitlines()
    return {Path(name).parent.name: digest for digest, name in map(str.split, lines)}


def _write(path: Path, target: Path) -> None:
    run = _run(json.loads((path / RUN_FILE).read_bytes()))
    (target / RUN_FILE).write_text(json.dumps(run, indent=2) + "\n")
    for name, table in TABLES.items():
        old = pq.read_table(path / f"{name}.parquet", partitioning=None)
        new = _CHANGES[name](old, path) if name in _CHANGES else {}
        columns = [
            new[one.name] if one.name in new else old.column(one.name) for one in table.arrow()
        ]
        with open_writer(target / f"{name}.parquet", name) as writer:
            whole = pa.Table.from_arrays(columns, schema=table.arrow())
            writer.write_table(whole, row_group_size=ROW_GROUP_ROWS)


def _on_host(old: pa.Table, _path: Path) -> dict[str, Any]:
    return {"host": pa.repeat(pa.scalar(_HOST), old.num_rows)}


def _one_value(old: pa.Table, _path: Path) -> dict[str, Any]:
    real = old.column("value_real")
    return {"value": pc.coalesce(real, old.column("value").cast(pa.float64()))}


def _with_instants(old: pa.Table, path: Path) -> dict[str, Any]:
    """The stamps in the lines that were kept, against the marks of the same run."""
    names = [one.name for one in dataclasses.fields(Mark)]
    rows = pq.read_table(path / "events.parquet", columns=names, partitioning=None).to_pylist()
    marks = [Mark(**row) for row in rows]
    instances, texts = old.column("instance").to_pylist(), old.column("text").to_pylist()
    clocks = {name: LogClock(marks, name) for name in set(instances)}
    for name, clock in clocks.items():
        mine = [text for text, whose in zip(texts, instances, strict=True) if whose == name]
        clock.set_zone(clock.first_stamped(mine), clock.first_stamped(reversed(mine)))
    said = [clocks[name].instants(text) for name, text in zip(instances, texts, strict=True)]
    return {
        name: pa.array([one[name] for one in said], pa.int64()) for name in ("mono_ns", "wall_ns")
    }


_CHANGES: dict[str, Callable[[pa.Table, Path], dict[str, Any]]] = {
    "probes": _one_value,
    "residency": _on_host,
    "calibration": _on_host,
    "engine_log": _with_instants,
}


def _run(old: dict[str, Any]) -> dict[str, Any]:
    """The content of `run.json`."""
    work, patch = old.pop("work"), old.pop("patch")
    planned, instances, rung = old.pop("expectation"), old.pop("instances"), old.pop("rung")
    del old["recompute"]
    new: dict[str, Any] = old | {
        "schema_version": SCHEMA_VERSION,
        "plan_sha256": None,
        "role": _ROLES.get(old["arm"], "array"),
        "fallback_level": rung,
        "kv_host": _HOST,
        "other_kv_devices": [{"host": _HOST, "name": name} for name in old["other_kv_devices"]],
    }
    if work is not None:
        return {**new, **work, "kind": "transfer", "workers": instances}
    expected = None if patch is None else patch.pop("expected")
    shared = new["role"] == "shared"
    treatment = {
        "patch": expected,
        "connector": None if expected is None else "fs" if shared else "disk",
        "reads": None if expected is None or shared else _READS[expected],
    }
    return new | {
        "kind": "kv",
        "treatment": treatment,
        "instances": instances,
        "patch": patch,
        "expectation": planned,
    }
