"""What surrounds a synthetic run: the host at begin and end, and the engine's own counters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.tests.support.run_factory_rows import (
    HOST,
    MEASURE_BEGIN,
    RUN_BEGIN,
    WALL_OFFSET_NS,
    S,
    measure_end,
    run_end,
    warm_window,
)

if TYPE_CHECKING:
    from r8.tests.support.run_factory import SyntheticRun

Row = dict[str, Any]

LABELS = '{engine="0",model_name="tiny"}'


def context_events(spec: SyntheticRun) -> list[Row]:
    """The host before the engine's start and after its end: unchanged, without a GPU."""
    sections = {"kernel": "aa" * 32, "memory": "bb" * 32}
    facts: Row = {"sections": sections, "unavailable": ["gpu"], "tools_missing": [], "gpus": []}
    begin = facts | {"moment": "begin", "file": "environment-begin.json"}
    end = facts | {"moment": "end", "file": "environment-end.json", "changes": []}
    marks = [(RUN_BEGIN + S // 2, begin), (run_end(spec) - S // 2, end)]
    return [
        {
            "name": "environment",
            "mono_ns": at,
            "wall_ns": at + WALL_OFFSET_NS,
            "detail": json.dumps(detail),
        }
        for at, detail in marks
    ]


def engine_rows(spec: SyntheticRun) -> list[Row]:
    """The metrics page at 1 Hz: external hits as the lookup lines tell them, no prefix hits."""
    answered = len(spec.ttft_s) - spec.failures
    need = max((spec.session_hit_tokens or 0) - spec.computed_tokens, 0)
    measured = answered * need
    rows = []
    for at in range(MEASURE_BEGIN - 3 * S, run_end(spec), S // 2):
        done = 100 + (measured if at >= measure_end(spec) else 0)
        if at >= warm_window(spec)[1]:
            done += len(spec.warm_ttft_s or ()) * need
        counters = {
            "vllm:external_prefix_cache_hits_total": done,
            "vllm:prefix_cache_hits_total": 0,
        }
        rows += [
            {
                "probe": "engine",
                "host": HOST,
                "device": "a",
                "counter": name + LABELS,
                "value": value,
                "mono_ns": at,
                "wall_ns": at + WALL_OFFSET_NS,
                "epoch": 0,
            }
            for name, value in counters.items()
        ]
    return rows
