"""Synthetic runs without a KV engine, sealed and read back. Nothing here was measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.tests.support.judged_run import Tables, drop_events, event, judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.evidence.reader import Evidence

Row = dict[str, Any]
S = 1_000_000_000
WORKERS = ("w0", "w1")


def loading_spec(**changes: Any) -> SyntheticRun:
    """A loading run: two loaders on an array."""
    base: dict[str, Any] = {"scenario": "r1-model-load", "arm": "array", "concurrency": 2}
    return SyntheticRun(**(base | changes))


def work_run(
    root: Path,
    spec: SyntheticRun,
    edit: Callable[[Tables], None] | None = None,
    job: str = "load",
    time_scale: float = 1.0,
    load_s: float | None = None,
    period_s: float = 6.0,
) -> Evidence:
    """The sealed run; `edit` sees the journals after they became a work run's."""

    def become(tables: Tables) -> None:
        _work_of(tables, spec, job, time_scale)
        tables["requests"], tables["chunks"] = [], []
        _workers_processes(tables)
        drop_events(tables, "server_config", "patch_state", "control_begin", "control_end")
        for row in tables["events"]:
            if row["name"] == "engine_started":
                row["name"] = "worker_started"
        tables["events"] += _rows(tables, spec, job, load_s or spec.read_s, period_s)
        if edit is not None:
            edit(tables)

    return judged_run(root, spec, become, lambda _log: "")


def _work_of(tables: Tables, spec: SyntheticRun, job: str, time_scale: float) -> None:
    run = tables["run"][0]
    for key in ("treatment", "instances", "patch", "expectation"):
        del run[key]
    run |= {
        "kind": "transfer",
        "job": job,
        "moves": "read",
        "tool": "safetensors",
        "workers": list(WORKERS),
        "files": 2 * len(WORKERS),
        "total_bytes": spec.expectation.hit_bytes,
        "time_scale": time_scale,
    }


def _workers_processes(tables: Tables) -> None:
    """The engine's process becomes the first worker's; the second one's counters stand still."""
    own = [row for row in tables["probes"] if row["probe"] == "process"]
    for row in own:
        row["device"] = row["device"].replace("a:", "w0:")
    still = [{**row, "device": "w1:101:5001", "value": 7_000_000} for row in own]
    tables["probes"] = [row for row in tables["probes"] if row["probe"] != "engine"] + still


def _rows(
    tables: Tables, spec: SyntheticRun, job: str, load_s: float, period_s: float
) -> list[Row]:
    each = spec.expectation.hit_bytes // len(WORKERS)
    rows = []
    for phase in ("measure", "warm"):
        begin = event(tables, f"{phase}_begin")["mono_ns"]
        for number, name in enumerate(WORKERS):
            late = round(number * period_s * S) if job == "switch" and phase == "measure" else 0
            scheduled = begin + 200_000_000 + late
            end = scheduled + round(load_s * S if phase == "measure" else S // 10)
            detail: Row = {
                "worker": name,
                "phase": phase,
                "scheduled_ns": scheduled,
                "begin_ns": scheduled + 1_000_000,
                "end_ns": end + 1_000_000,
                "bytes": each,
                "files": 2,
                "outcome": "ok",
            }
            if job == "switch" and phase == "measure":
                detail["serve_end_ns"] = scheduled + round(period_s * S)
            rows.append(
                {
                    "name": "work",
                    "mono_ns": begin + 1,
                    "wall_ns": begin + 1,
                    "detail": json.dumps(detail),
                }
            )
    return rows


def read_again(tables: Tables, size_bytes: int) -> None:
    """Let the device read so many bytes in the warm load."""
    begin = event(tables, "warm_begin")["mono_ns"]
    device = tables["run"][0]["kv_device"]
    for row in tables["probes"]:
        counter = (row["probe"], row["device"], row["counter"])
        if counter == ("disk", device, "read_sectors") and row["mono_ns"] > begin:
            row["value"] += size_bytes // 512


def change_work(tables: Tables, worker: str, phase: str = "measure", **facts: Any) -> None:
    """Change what one worker said of a phase."""
    for row in tables["events"]:
        if row["name"] == "work":
            detail = json.loads(row["detail"])
            if (detail["worker"], detail["phase"]) == (worker, phase):
                row["detail"] = json.dumps(detail | facts)
