"""Synthetic runs that earn the whole certificate, and one hook to spoil them row by row.

Nothing here was measured. What the factory leaves out of a run (every KV file after the drop, the
files in the page cache before the warm read) is added, then the caller's edit is applied, then the
real finaliser seals the directory and the real reader reads it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.forensics.certificate import certify, connect_settled
from r8.tests.support.run_factory import SyntheticRun, build_partial, write_lines
from r8.tests.support.run_factory_rows import measure_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.evidence.reader import Evidence
    from r8.model import Finding

Tables = dict[str, list[dict[str, Any]]]
LOG = "raw/server-a.log"
S = 1_000_000_000


def judged_run(
    root: Path,
    spec: SyntheticRun,
    edit: Callable[[Tables], None] | None = None,
    edit_log: Callable[[str], str] | None = None,
) -> Evidence:
    """A sealed run read back; `edit` sees every journal's rows, `run` (one row) included.

    Rows it puts under `logs` (`instance`, `text`) become further engines' logs.
    """
    partial = build_partial(root, spec)
    tables: Tables = {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in partial.glob("*.jsonl")
    }
    tables["run"] = [json.loads((partial / "run.json").read_text())]
    _complete(tables, spec)
    if edit is not None:
        edit(tables)
    (partial / "run.json").write_text(json.dumps(tables.pop("run")[0]))
    for row in tables.pop("logs", []):
        (partial / "raw" / f"server-{row['instance']}.log").write_text(row["text"])
    for name, rows in tables.items():
        write_lines(partial / f"{name}.jsonl", rows)
    if edit_log is not None:
        log = partial / LOG
        log.write_text(edit_log(log.read_text()))
    return read_run(finalise(partial, complete=spec.complete))


def findings(evidence: Evidence) -> dict[str, Finding]:
    """The run's findings by rule id."""
    with connect_settled([evidence]) as connection:
        return {one.rule_id: one for one in certify(evidence.run, connection)}


def event(tables: Tables, name: str) -> dict[str, Any]:
    """The last event row of a name."""
    return [row for row in tables["events"] if row["name"] == name][-1]


def set_detail(tables: Tables, name: str, **facts: Any) -> None:
    """Change facts in an event's detail."""
    row = event(tables, name)
    row["detail"] = json.dumps({**json.loads(row["detail"]), **facts})


def drop_events(tables: Tables, *names: str) -> None:
    """Take events out."""
    tables["events"] = [row for row in tables["events"] if row["name"] not in names]


def _complete(tables: Tables, spec: SyntheticRun) -> None:
    """Every file of the pool after the drop, and all of them cached before the warm read."""
    after_drop = [row for row in tables["residency"] if row["moment"] == "after_drop"]
    durable = [row for row in tables["events"] if row["name"] == "durable"]
    wanted = json.loads(durable[-1]["detail"])["expected_files"] if durable else len(after_drop)
    if after_drop:
        flushed = [
            {**after_drop[0], "path": f"flush-{number}.pt"}
            for number in range(wanted - len(after_drop))
        ]
        tables["residency"] += flushed
        tables["residency"] += [
            {
                **row,
                "moment": "after_measure",
                "mono_ns": measure_end(spec) + 1,
                "resident_bytes": row["size_bytes"],
            }
            for row in after_drop
        ]
