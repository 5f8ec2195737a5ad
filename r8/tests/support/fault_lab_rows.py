"""The made-up part of a fault-lab cell: an engine's requests and counters at real instants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.tests.support.run_factory_context import LABELS
from r8.tests.support.run_factory_rows import (
    HOST,
    MEASURE_BEGIN,
    WALL_OFFSET_NS,
    control_windows,
    request_rows,
    warm_window,
)

if TYPE_CHECKING:
    from r8.tests.support.run_factory import SyntheticRun

Row = dict[str, Any]


def real_requests(spec: SyntheticRun, marks: dict[str, int]) -> tuple[list[Row], list[Row]]:
    """Synthetic requests and chunks, moved to where their phases really were."""
    windows = control_windows(spec)
    controls = {
        "control-300": marks["warm_control"] - windows["warm_read"][0],
        "control-301": marks["control_begin"] - windows["random_prompt"][0],
    }
    shifts = {
        "measure": marks["measure_begin"] - MEASURE_BEGIN,
        "warm": marks["warm_begin"] - warm_window(spec)[0],
    }
    requests, chunks = request_rows(spec)
    kept = {}
    for row in requests:
        shift = controls.get(row["request_id"], shifts.get(row["phase"]))
        if shift is None:
            continue
        if row["phase"] == "control":
            # Between two marks that are microseconds apart.
            shift -= row["sent_ns"] - row["scheduled_ns"]
        for key in [name for name in row if name.endswith("_ns")]:
            row[key] += shift
        kept[row["request_id"]] = (row, shift)
    moved = [
        {**chunk, "arrival_ns": chunk["arrival_ns"] + kept[chunk["request_id"]][1]}
        for chunk in chunks
        if chunk["request_id"] in kept
    ]
    return [row for row, _ in kept.values()], moved


def fake_engine_rows(spec: SyntheticRun, marks: dict[str, int]) -> list[Row]:
    """Two pages of metrics, before and after the window."""
    need = max((spec.session_hit_tokens or 0) - spec.computed_tokens, 0) * len(spec.ttft_s)
    rows = []
    for at, hits in ((marks["measure_begin"] - 1, 0), (marks["measure_end"] + 1, need)):
        for name, value in {"external_prefix_cache": hits, "prefix_cache": 0}.items():
            counter = f"vllm:{name}_hits_total{LABELS}"
            base = {"probe": "engine", "host": HOST, "device": "a", "counter": counter, "epoch": 0}
            when = {"mono_ns": at, "wall_ns": at + WALL_OFFSET_NS}
            rows.append({**base, "value": value, **when})
    return rows
