"""A run killed at any instant leaves nothing behind, and what was journalled is recovered."""

from __future__ import annotations

import json
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from r8.errors import IncompleteRunError
from r8.evidence.finalise import recover
from r8.evidence.reader import find_runs, read_run
from r8.tests.qualify import rehearse

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.qualify, pytest.mark.root, pytest.mark.stack]

KILLS = 20
# From the start of the campaign's first cell on; a cell takes about a minute and a half.
LATEST_S = 110.0
TESTBED_TIMEOUT_S = 240.0
TABLES = ("events", "requests", "chunks", "probes", "residency", "calibration")


def _partial(runs_root: Path) -> Path | None:
    return next(iter(runs_root.glob("r1-parallel-read/*.partial")), None)


def _whole_lines(directory: Path) -> dict[str, int]:
    """Rows whose line was complete on disk, by table."""
    counts = {}
    for table in TABLES:
        path = directory / f"{table}.jsonl"
        text = path.read_bytes() if path.is_file() else b""
        counts[table] = text.count(b"\n")
    return counts


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_run_leaves_nothing_and_its_journal_is_recovered(
    seed: int, tmp_path: Path
) -> None:
    run = rehearse.start(tmp_path, "--blocks", "1", "--arms", "patched")
    deadline = time.monotonic() + TESTBED_TIMEOUT_S
    while _partial(run.runs_root) is None:
        assert run.process.poll() is None, run.output()[-2000:]
        assert time.monotonic() < deadline, run.output()[-2000:]
        time.sleep(0.1)
    wait_s = random.Random(seed).uniform(0.0, LATEST_S)  # noqa: S311
    killed_at = time.monotonic() + wait_s
    while time.monotonic() < killed_at and run.process.poll() is None:
        time.sleep(0.05)
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    assert rehearse.wait_until_clean(run) == []
    finished = find_runs(run.runs_root)
    for path in finished:
        assert read_run(path).run.complete
    partial = _partial(run.runs_root)
    if partial is None:
        assert finished, "neither a finished nor a partial run is there"
        return
    with pytest.raises(IncompleteRunError):
        read_run(partial)
    before = _whole_lines(partial)
    recovered = read_run(recover(partial))
    assert not recovered.run.complete
    for table, rows in before.items():
        assert recovered.table(table).num_rows == rows, table
    print(f"killed {wait_s:.1f} s into the cell; recovered {json.dumps(before)}")
