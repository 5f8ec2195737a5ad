"""A trace in the form of Mooncake: JSON lines of timestamp, lengths and hash ids.

    {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}

`timestamp` is in milliseconds. A hash id names a block of `block_tokens` tokens together with all
blocks before it; equal ids are equal tokens, so requests share prefixes exactly as the trace says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import ClientError


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One request of a trace; lengths in tokens."""

    timestamp_ms: float
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]


def read_trace(path: str) -> tuple[TraceLine, ...]:
    """Every line, in order; raises ClientError that names a line that is not a request."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as refusal:
        raise ClientError(
            f"cannot read the trace: {refusal}", where=path, next_step="give a JSONL file"
        ) from refusal
    lines = [
        _line(part, f"{path}, line {number}")
        for number, part in enumerate(text.splitlines(), 1)
        if part.strip()
    ]
    if not lines:
        raise ClientError("the trace is empty", where=path, next_step="give at least one line")
    for number, (one, other) in enumerate(pairwise(lines), 2):
        if other.timestamp_ms < one.timestamp_ms:
            raise ClientError(
                "the timestamp is earlier than that of the line before",
                where=f"{path}, line {number}",
                next_step="sort the trace",
            )
    return tuple(lines)


def _line(text: str, where: str) -> TraceLine:
    try:
        item: Any = json.loads(text)
        line = TraceLine(
            timestamp_ms=float(item["timestamp"]),
            input_length=_count(item["input_length"], 1),
            output_length=_count(item["output_length"], 1),
            hash_ids=tuple(_count(one, 0) for one in item.get("hash_ids", [])),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as damage:
        raise ClientError(
            f"this line is not a request of a trace ({damage!r})",
            where=where,
            next_step='write {"timestamp": ms, "input_length", "output_length", "hash_ids": [..]}',
        ) from damage
    if not line.timestamp_ms >= 0 or line.timestamp_ms == float("inf"):
        raise ClientError(
            "the timestamp is not a number of milliseconds", where=where, next_step="give 0 or more"
        )
    return line


def _count(value: Any, low: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{value!r} is not a whole number of {low} or more")
    return value
