"""How far every campaign has come, as a matrix: done, running, broken, left, and for how long."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from r8.console import table
from r8.errors import SiteError
from r8.lab.instruments.probes import CHECKOUT
from r8.lab.site.matrix import SUFFIX, cell_states, eta_s, read_matrix

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from r8.lab.site.matrix import CellState, Matrix

RUNS_ROOT = CHECKOUT / "data" / "runs"
MARKS = {"done": "done", "running": "running", "broken": "BROKEN", "left": "-"}


def campaigns(runs_root: Path) -> tuple[list[tuple[Path, Matrix]], list[SiteError]]:
    """Every campaign's plan below a folder of runs, oldest first; errors of unreadable ones."""
    found, damaged = [], []
    for path in sorted(runs_root.glob(f"*/*{SUFFIX}")):
        try:
            found.append((path.parent, read_matrix(path)))
        except SiteError as error:
            damaged.append(error)
    return sorted(found, key=lambda one: one[1].started_wall_ns), damaged


def facts(folder: Path, matrix: Matrix) -> dict[str, Any]:
    """One campaign as JSON."""
    states = cell_states(folder, matrix)
    return {
        "campaign": matrix.campaign_id,
        "scenario": matrix.scenario,
        "site": matrix.site,
        "cells": {one.place: one.state for one in states},
        "broken_attempts": sum(one.broken for one in states),
        "eta_s": round(eta_s(matrix, states)),
    }


def text(folder: Path, matrix: Matrix) -> str:
    """One campaign for a terminal: a row a block and arm, a column a level."""
    states = cell_states(folder, matrix)
    levels = sorted({_level(one) for one in states})
    rows: dict[str, dict[int, str]] = {}
    for one in states:
        rows.setdefault(one.place.rpartition("-")[0], {})[_level(one)] = _mark(one)
    cells = [[name, *(marks.get(level, "") for level in levels)] for name, marks in rows.items()]
    counts = ", ".join(
        f"{number} {word}" for word in MARKS if (number := sum(one.state == word for one in states))
    )
    head = f"{matrix.campaign_id} ({matrix.scenario}, {matrix.site}): {counts}"
    shown = table(cells, ["block and arm", *(f"c{level}" for level in levels)])
    return f"{head}\n{shown}{_next(folder, matrix, states)}"


def _next(folder: Path, matrix: Matrix, states: Iterable[CellState]) -> str:
    states = list(states)
    if all(one.state == "done" for one in states):
        return ""
    minutes = eta_s(matrix, states) / 60
    door = matrix.scenario.partition("-")[0]
    if any(one.state == "running" for one in states):
        return f"\nleft: about {minutes:.0f} min"
    words = ["nox", "-s", f"reproduce-{door}", "--", "--site", matrix.site]
    words += ["--resume", matrix.campaign_id]
    if folder.parent.resolve() != RUNS_ROOT:
        # Without it, --resume would look in the default folder and find no such campaign.
        words += ["--runs-root", str(folder.parent.resolve())]
    return f"\nleft: about {minutes:.0f} min; go on with: {shlex.join(words)}"


def _level(state: CellState) -> int:
    return int(state.place.rpartition("-c")[2])


def _mark(state: CellState) -> str:
    broken = f" ({state.broken} broken kept)" if state.broken and state.state == "done" else ""
    return MARKS[state.state] + broken
