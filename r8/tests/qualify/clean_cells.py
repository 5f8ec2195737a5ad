"""How well the bytes of clean cells agree, and which rule refused one that should have passed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from r8.forensics.certificate import certify, connect_settled
from r8.forensics.gate import refusals
from r8.tests.support.findings import said

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from r8.evidence.reader import Evidence

# Rule C4's own: a clean cell stays inside it.
TOLERANCE = 0.02
_BYTES = """
SELECT metric, value FROM metrics WHERE phase = 'measure' AND statistic = ''
  AND metric IN ('engine_hit_bytes', 'device_read_bytes', 'process_read_bytes')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One clean cell: two ratios of bytes, and what refused it."""

    run_id: str
    device_to_engine: float
    process_to_device: float
    refused: tuple[str, ...]


def look(evidence: Evidence) -> Seen:
    """Certify one cell and take its bytes."""
    with connect_settled([evidence]) as connection:
        found = certify(evidence.run, connection)
        values = dict(connection.execute(_BYTES).fetchall())
    device = values["device_read_bytes"]
    return Seen(
        run_id=evidence.run.run_id,
        device_to_engine=device / values["engine_hit_bytes"],
        process_to_device=values["process_read_bytes"] / device,
        refused=tuple(f"{one.rule_id} {one.answer}: {said(one)}" for one in refusals(found)),
    )


def keep(path: Path, seen: Seen) -> None:
    """Append one cell's numbers, so that a resumed list has them all."""
    path.parent.mkdir(exist_ok=True)
    row = {key: getattr(seen, key) for key in Seen.__slots__}
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def kept(path: Path) -> list[Seen]:
    """Cells of this list so far, the last look at each."""
    lines = path.read_text().splitlines() if path.is_file() else []
    rows = {row["run_id"]: row for row in map(json.loads, lines)}
    return [Seen(**{**row, "refused": tuple(row["refused"])}) for row in rows.values()]


def print_distribution(cells: Iterable[Seen]) -> None:
    """Least, median, most and every value's distance from 1, in per mille."""
    cells = list(cells)
    for name in ("device_to_engine", "process_to_device"):
        each = sorted(getattr(cell, name) for cell in cells)
        print(
            f"\n{name}: n {len(each)}, least {each[0]:.6f}, median {median(each):.6f}, "
            f"most {each[-1]:.6f}"
        )
        print("  per mille from 1: " + " ".join(f"{1000 * (ratio - 1):+.2f}" for ratio in each))


def require_clean(cells: Iterable[Seen]) -> None:
    """No refusal, and bytes within the rule's own tolerance."""
    for cell in cells:
        assert cell.refused == (), cell.run_id
        for ratio in (cell.device_to_engine, cell.process_to_device):
            assert abs(ratio - 1) <= TOLERANCE, cell
