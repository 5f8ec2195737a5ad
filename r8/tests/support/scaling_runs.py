"""Synthetic runs of several engines on one device: made up, for the judge's arithmetic only.

A one-engine run of the factory is dealt out: sessions in turn, process bytes in equal shares, each
log line to the engine of its request. `spoil` sees the rows of all journals before they are sealed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.tests.support.run_factory import SyntheticRun, build_partial, read_lines, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.evidence.reader import Evidence

SCENARIO = "r1-scaling"
NAMES = "abcdefgh"
Tables = dict[str, list[dict[str, Any]]]


def scaling_run(
    root: Path,
    engines: int,
    *,
    read_s: float,
    block: int = 0,
    patched: bool = True,
    spoil: Callable[[Tables], None] | None = None,
    **spec: Any,
) -> Evidence:
    """A sealed run of that many engines, two sessions each, whose device reads for `read_s`."""
    sessions = 2 * engines
    made = SyntheticRun(
        scenario=SCENARIO,
        arm=f"gpu-{engines}",
        concurrency=sessions,
        block=block,
        ttft_s=(read_s,) * sessions,
        warm_ttft_s=(0.1,) * sessions,
        read_s=read_s,
        patch="patched" if patched else "unpatched",
        patch_mode=None,
        **spec,
    )
    partial = build_partial(root, made)
    run = json.loads((partial / "run.json").read_text())
    run["instances"] = list(NAMES[:engines])
    (partial / "run.json").write_text(json.dumps(run))
    tables: Tables = {path.stem: read_lines(path) for path in partial.glob("*.jsonl")}
    _deal(tables, engines)
    if spoil is not None:
        spoil(tables)
    for name, rows in tables.items():
        write_lines(partial / f"{name}.jsonl", rows)
    _deal_log(partial / "raw", engines)
    return read_run(finalise(partial, complete=True))


def owner(session: int, engines: int) -> str:
    """The engine a session belongs to."""
    return NAMES[session % engines]


def _deal(tables: Tables, engines: int) -> None:
    for row in tables["requests"]:
        row["instance"] = owner(row["session"], engines)
    kept = [row for row in tables["probes"] if row["probe"] != "process"]
    base = 7_000_000
    for row in tables["probes"]:
        if row["probe"] == "process":
            share = (row["value"] - base) // engines
            kept += [
                {**row, "device": f"{name}:{100 + number}:5000", "value": base + share}
                for number, name in enumerate(NAMES[:engines])
            ]
    tables["probes"] = kept


def _deal_log(raw: Path, engines: int) -> None:
    """Lines of a request go to its engine; what is said at a start, to all of them."""
    logs: dict[str, list[str]] = {name: [] for name in NAMES[:engines]}
    now = None
    for line in (raw / "server-a.log").read_text().splitlines(keepends=True):
        found = re.search(r"cmpl-[a-z]+-(\d+)", line)
        if found:
            now = owner(int(found[1]), engines)
        for name in logs if now is None else (now,):
            logs[name].append(line)
    for name, lines in logs.items():
        (raw / f"server-{name}.log").write_text("".join(lines))
