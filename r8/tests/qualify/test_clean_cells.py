"""Fifty clean cells on real kernel objects, and fifty of the rehearsal: no false refusal.

The first fifty have a fake engine without a model (r8/tests/support/fault_lab.py); devices, files,
page cache, probes and rules are real. The other fifty are whole rehearsals with the real engine;
they
take two hours. Both go on where they were ended: R8_CLEAN_S says for how many seconds a rehearsal
may run this time, and what it finished until then is judged and printed.
"""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from r8.evidence.reader import find_runs, read_run
from r8.tests.qualify import rehearse
from r8.tests.qualify.clean_cells import keep, kept, look, print_distribution, require_clean
from r8.tests.support.fault_lab_testbed import ShapedBed, make_bed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.qualify, pytest.mark.root]
CELLS = 50
# 16 files of 8 MiB and more: metadata of the file system is far below a per mille of them.
CHUNK_BYTES = 8 << 20
KEPT = rehearse.ROOT / ".nox" / "qualify-clean-cells.jsonl"
# The rehearsal's runs stay beside the environments, for the next session to go on with.
RUNS = rehearse.ROOT / ".nox" / "qualify-clean-runs"
ARMS = ("unpatched", "patched")
SECONDS = float(os.environ.get("R8_CLEAN_S", "10800"))


@pytest.fixture(name="testbed", scope="module")
def _bed() -> Iterator[ShapedBed]:
    yield from make_bed()


@pytest.mark.parametrize("number", range(CELLS))
def test_a_clean_cell_is_never_refused(testbed: ShapedBed, number: int) -> None:
    evidence = testbed.run(f"clean-{number}", spec={"chunk_bytes": CHUNK_BYTES})
    seen = look(evidence)
    keep(KEPT, seen)
    require_clean([seen])


def test_the_bytes_of_the_clean_cells_agree() -> None:
    cells = [cell for cell in kept(KEPT) if cell.run_id.startswith("clean-")]
    if len(cells) < CELLS:
        pytest.skip(f"{len(cells)} of {CELLS} cells have run")
    print_distribution(cells)
    require_clean(cells)


@pytest.mark.stack
def test_fifty_clean_cells_of_the_rehearsal_are_never_refused(tmp_path: Path) -> None:
    begun = bool(list((RUNS / "r1-parallel-read").glob("*.campaign.json")))
    options = ["--resume", "last"] if begun else ["--blocks", str(CELLS // len(ARMS))]
    run = rehearse.start(tmp_path, *options, "--arms", ",".join(ARMS), runs_root=RUNS)
    try:
        run.process.wait(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        run.process.send_signal(signal.SIGINT)
        run.process.wait(timeout=rehearse.CLEANUP_S * 2)
    assert rehearse.wait_until_clean(run) == []
    runs = [one for one in map(read_run, find_runs(RUNS)) if one.run.complete]
    assert runs, run.output()[-2000:]
    cells = [look(one) for one in runs]
    print_distribution(cells)
    require_clean(cells)
    if len(cells) < CELLS:
        pytest.skip(f"{len(cells)} of {CELLS} cells have run, none was refused: run it again")
