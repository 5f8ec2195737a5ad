"""Figures of many trials as tables: ratios to the best peer of the same round first.

A ratio is ours over the best peer's, so below 1 is better. Medians over rounds and the worst round
are shown. No interval is: three rounds on a shared machine are too few for one.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Figure, heading, and what one unit of the heading is in the figure's own.
FIGURES: tuple[tuple[str, str, float], ...] = (
    ("ttft_error_p50_ns", "TTFT error p50 ms", 1e6),
    ("ttft_error_p95_ns", "TTFT error p95 ms", 1e6),
    ("ttft_error_max_ns", "TTFT error max ms", 1e6),
    ("last_error_p95_ns", "last chunk p95 ms", 1e6),
    ("chunk_lag_p50_ns", "chunk lag p50 ms", 1e6),
    ("chunk_lag_p99_ns", "chunk lag p99 ms", 1e6),
    ("chunks_per_s", "chunks offered /s", 1.0),
    ("skew_ns", "skew ms", 1e6),
    ("cpu_window_s", "CPU burst s", 1.0),
    ("cpu_total_s", "CPU whole s", 1.0),
    ("peak_bytes", "peak RSS MiB", float(1 << 20)),
)
Rounds = dict[str, list[dict[str, Any]]]  # client -> one result a round


def ratios(rounds: Rounds, figure: str, ours: str = "ours") -> list[float]:
    """Ours over the best peer, round by round; a round without both has no ratio."""
    found: list[float] = []
    for number, own in enumerate(rounds[ours]):
        peers = [
            results[number][figure]
            for name, results in rounds.items()
            if name != ours and results[number].get(figure)
        ]
        if peers and own.get(figure) is not None:
            found.append(own[figure] / min(peers))
    return found


def ratio_lines(cells: Mapping[str, Rounds]) -> list[str]:
    """Ours over the best peer of the round: median and worst."""
    lines = ["ours / best peer: median (worst round)"]
    for figure, heading, _ in FIGURES:
        of_cells = {cell: ratios(rounds, figure) for cell, rounds in cells.items()}
        parts = [
            f"{cell}: {median(found):.3g} ({max(found):.3g})" if found else f"{cell}: -"
            for cell, found in of_cells.items()
        ]
        if any(of_cells.values()):  # some figures only ours has
            lines.append(f"  {heading:18} " + "   ".join(parts))
    return lines


def cell_lines(cell: str, rounds: Rounds) -> list[str]:
    """Every client's medians in one cell, the worst round beside them."""
    lines = [f"{cell}: median of {len(rounds['ours'])} rounds (worst)"]
    for name, results in rounds.items():
        good = [one for one in results if "failed" not in one]
        parts = [_shown(good, figure, unit) for figure, _, unit in FIGURES]
        lines.append(f"  {name:8} " + "  ".join(f"{part:>20}" for part in parts))
        lines += [f"  {name:8} failed: {one['failed']}" for one in results if "failed" in one]
    header = "  ".join(f"{heading:>20}" for _, heading, _ in FIGURES)
    return [lines[0], f"  {'':8} {header}", *lines[1:]]


def _shown(results: Sequence[Mapping[str, Any]], figure: str, unit: float) -> str:
    values = [one[figure] / unit for one in _with(results, figure)]
    return f"{median(values):.3g} ({max(values):.3g})" if values else "-"


def _with(results: Iterable[Mapping[str, Any]], figure: str) -> list[Mapping[str, Any]]:
    return [one for one in results if one.get(figure) is not None]
