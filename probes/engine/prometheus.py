"""The Prometheus text format, as much of it as counters, gauges and histogram totals need.

Left out on purpose: histogram buckets (they outnumber everything else; sums and counts stay) and
`_created` series (instants, not counts). Labels become part of the counter's name, sorted.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

# What engines call their own series; everything else on the page belongs to their runtime.
PREFIXES = ("vllm:", "lmcache")

_SERIES = re.compile(
    r"^(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)"
    r"(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*$"
)
_LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_NUMBER = re.compile(r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")
_NOT_FINITE = {"nan", "inf", "+inf", "-inf"}
_GROWING_TYPES = {"counter", "histogram", "summary"}
_GROWING_SUFFIXES = ("_total", "_sum", "_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line of a page: a number, or why it is none."""

    counter: str  # name and sorted labels
    value: float | None
    reason: str | None = None
    grows: bool = False  # a counter, or the sum or count of a histogram


def _labelled(name: str, labels: str | None) -> str | None:
    """Name with its labels in sorted order; None when the labels cannot be read."""
    if labels is None or not labels.strip():
        return name
    pairs = []
    position = 0
    while position < len(labels):
        match = _LABEL.match(labels, position)
        if match is None:
            return None
        pairs.append((match.group(1), match.group(2)))
        position = match.end()
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in sorted(pairs)) + "}"


def _number(text: str) -> tuple[float | None, str | None]:
    if text.lower() in _NOT_FINITE:
        return None, f"absent: {text} at the source"
    if not _NUMBER.match(text):
        return None, f"failed: {text[:40]!r} is no number"
    value = float(text)
    return (value, None) if math.isfinite(value) else (None, f"failed: {text[:40]} overflows")


def _series(line: str, types: dict[str, str]) -> Series | None:
    match = _SERIES.match(line)
    counter = _labelled(match["name"], match["labels"]) if match else None
    if match is None or counter is None:
        return Series(counter=line[:80], value=None, reason="failed: not a line of this format")
    name = match["name"]
    if name.endswith(("_bucket", "_created")):
        return None
    value, reason = _number(match["value"])
    family = name
    for suffix in _GROWING_SUFFIXES:
        family = family.removesuffix(suffix) if family not in types else family
    grows = types.get(name, types.get(family)) in _GROWING_TYPES
    return Series(counter=counter, value=value, reason=reason, grows=grows)


def parse_metrics(text: str, prefixes: tuple[str, ...] = PREFIXES) -> list[Series]:
    """The series whose name begins with one of the prefixes, in the page's order.

    The piece behind the last newline is dropped: a page that was cut ends inside a number.
    """
    types: dict[str, str] = {}
    series = []
    for line in text.split("\n")[:-1]:
        if line.startswith("#"):
            words = line.split()
            if len(words) >= 4 and words[1] == "TYPE":  # noqa: PLR2004
                types[words[2]] = words[3]
        elif line.startswith(prefixes) and "_bucket{" not in line:
            one = _series(line.rstrip("\r"), types)
            if one is not None:
                series.append(one)
    return series
