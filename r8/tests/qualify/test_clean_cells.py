"""Twenty clean cells on real kernel objects: no false refusal, and bytes that agree.

The engine is a fake without a model (see r8/tests/fault_lab.py); devices, files, page cache, probes
and rules are real. Cells with a real engine are the rehearsal's own.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import pytest

from r8.forensics.certificate import certify, connect_settled
from r8.model import Answer
from r8.tests.fault_lab import Fault, run_cell
from r8.tests.fault_lab_ground import Ground, make_ground

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.qualify, pytest.mark.root]
CELLS = 20
# 16 files of 16 MiB: metadata of the file system is far below a per mille of them.
CHUNK_BYTES = 8 << 20
TOLERANCE = 0.02


@pytest.fixture(name="ground", scope="module")
def _ground() -> Iterator[Ground]:
    yield from make_ground()


def test_twenty_clean_cells_are_never_refused_and_their_bytes_agree(ground: Ground) -> None:
    ratios: dict[str, list[float]] = {"device/engine": [], "process/device": []}
    for number in range(CELLS):
        root = ground.root / f"clean-{number}"
        root.mkdir()
        evidence = run_cell(root, ground.array, Fault(spec={"chunk_bytes": CHUNK_BYTES}))
        with connect_settled([evidence]) as connection:
            found = certify(evidence.run, connection)
            values = dict(
                connection.execute(
                    "SELECT metric, value FROM metrics WHERE phase = 'measure' AND statistic = '' "
                    "AND metric IN ('engine_hit_bytes', 'device_read_bytes', 'process_read_bytes')"
                ).fetchall()
            )
        refused = [
            f"{one.rule_id} {one.answer}: {one.arithmetic}"
            for one in found
            if one.answer not in {Answer.HELD, Answer.NOT_APPLICABLE}
        ]
        assert refused == [], f"cell {number}"
        device = values["device_read_bytes"]
        ratios["device/engine"].append(device / values["engine_hit_bytes"])
        ratios["process/device"].append(values["process_read_bytes"] / device)
    for name, each in ratios.items():
        print(
            f"{name}: least {min(each):.6f}, median {median(each):.6f}, most {max(each):.6f}, "
            f"n {len(each)}"
        )
        assert all(abs(ratio - 1) <= TOLERANCE for ratio in each), name
