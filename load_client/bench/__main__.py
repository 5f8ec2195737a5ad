"""`python -m load_client.bench`: clients in interleaved rounds on one null server, one JSON out."""

from __future__ import annotations

import argparse
import compileall
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .contestants import ROOT, BurstCell, Contestant, installed_peers, ours, stdlib_peer
from .peer_env import install_peers
from .table import Rounds, cell_lines, ratio_lines
from .trial import run_trial

if TYPE_CHECKING:
    from collections.abc import Sequence


def _cell(text: str) -> BurstCell:
    concurrency, kilobytes = text.split("x")
    return BurstCell(concurrency=int(concurrency), request_bytes=int(kilobytes) * 1000)


def _contestants(options: argparse.Namespace) -> tuple[list[Contestant], list[str]]:
    """Who takes part, and who was asked for and is not there."""
    wanted = options.clients.split(",")
    missing: list[str] = []
    if options.install:
        missing += install_peers(options.environment)
    vllm = options.vllm_python if options.vllm_python and options.vllm_python.exists() else None
    there = [ours(), stdlib_peer(), *installed_peers(options.environment, vllm)]
    names = [one.name for one in there]
    missing += [f"{name}: not installed" for name in wanted if name not in [*names, "all"]]
    chosen = [one for one in there if "all" in wanted or one.name in wanted or one.name == "ours"]
    return chosen, missing


def _rounds(
    contestants: Sequence[Contestant], cell: BurstCell, count: int, dice: random.Random
) -> Rounds:
    """Every client once a round, in shuffled order."""
    results: Rounds = {one.name: [] for one in contestants}
    for number in range(count):
        for one in dice.sample(list(contestants), len(contestants)):
            found = run_trial(one, cell)
            results[one.name].append(found)
            said = found.get("failed", f"p95 {found.get('ttft_error_p95_ns', 0) / 1e6:.3f} ms")
            print(f"{cell.name} round {number} {one.name}: {said}", file=sys.stderr, flush=True)
    return results


def main() -> None:
    """Measure, print the tables, and keep every figure in --out."""
    parser = argparse.ArgumentParser(prog="python -m load_client.bench", description=__doc__)
    add = parser.add_argument
    add("--clients", default="ours,urllib", help="comma list, or all that are installed")
    add("--cells", default="32x30", help="comma list of concurrency x kilobytes")
    add("--rounds", type=int, default=3)
    add("--seed", type=int, default=8, help="order inside a round")
    add("--environment", type=Path, default=Path(".nox/bench-peers"), help="the peers' own")
    add("--install", action="store_true", help="make that environment first")
    add("--vllm-python", type=Path, help="an interpreter that has vLLM")
    add("--out", type=Path, required=True)
    options = parser.parse_args()
    # The peers were compiled when they were installed.
    compileall.compile_dir(str(ROOT / "load_client"), quiet=2)
    contestants, missing = _contestants(options)
    dice = random.Random(options.seed)  # noqa: S311 - a repeatable order
    cells: dict[str, Any] = {}
    for cell in map(_cell, options.cells.split(",")):
        cells[cell.name] = _rounds(contestants, cell, options.rounds, dice)
        # After each cell: a bench that is stopped keeps what it has.
        options.out.write_text(json.dumps({"missing": missing, "cells": cells}, indent=1))
    print("\n".join(ratio_lines(cells)))
    for name, rounds in cells.items():
        print("\n".join(cell_lines(name, rounds)))
    print("\n".join(f"not measured: {one}" for one in missing))


if __name__ == "__main__":
    main()
