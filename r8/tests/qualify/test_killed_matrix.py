"""A matrix killed in every phase leaves nothing behind, and `--resume` brings it to its end."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

import pytest

from r8.evidence.manifest import MANIFEST
from r8.evidence.reader import find_runs, read_run
from r8.lab.site.matrix import cell_states, find_matrix
from r8.tests.qualify import rehearse

if TYPE_CHECKING:
    from pathlib import Path

    from r8.tests.qualify.rehearse import Rehearsal

pytestmark = [pytest.mark.qualify, pytest.mark.root, pytest.mark.stack]

# Building the ground, an engine start, populate: what lies before the latest of the marks.
MARK_TIMEOUT_S = 420.0
WHOLE_TIMEOUT_S = 900.0
BETWEEN_CELLS = "between"
# Killed at the first of these marks, resumed and killed at the second, and so on to the last.
MARKS = ("populate_begin", "flush_begin", "drop_begin", "measure_begin", BETWEEN_CELLS)
# Two cells of one engine life are enough to stand between them.
SCENARIOS = {
    "r2-cold-recovery": ("array", ("concurrency = [8, 16, 32]", "concurrency = [4, 8]")),
    "r3-tp4x2": ("pool", ("concurrency = [16, 32] ", "concurrency = [4, 8] ")),
}


def _reached(run: Rehearsal, folder: Path, mark: str) -> bool:
    """Whether the run has come to a mark; `between` is right after a cell was sealed."""
    if mark == BETWEEN_CELLS:
        return any(read_run(path).run.complete for path in find_runs(run.runs_root))
    for path in folder.glob("*.partial/events.jsonl"):
        lines = path.read_text().splitlines()
        if any(f'"name": "{mark}"' in line or f'"name":"{mark}"' in line for line in lines):
            return True
    return False


def _kill_at(run: Rehearsal, folder: Path, mark: str) -> None:
    deadline = time.monotonic() + MARK_TIMEOUT_S
    while not _reached(run, folder, mark):
        assert run.process.poll() is None, run.output()[-3000:]
        assert time.monotonic() < deadline, run.output()[-3000:]
        time.sleep(0.1)
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_matrix_killed_in_every_phase_is_finished_by_resumes(
    scenario: str, tmp_path: Path
) -> None:
    arm, smaller = SCENARIOS[scenario]
    site, runs_root = rehearse.changed_site(tmp_path, smaller), tmp_path / "runs"
    module = f"r8/scenarios/test_{scenario.replace('-', '_')}.py"
    folder = runs_root / scenario
    options = ["--smoke", "--arms", arm]
    for number, mark in enumerate(MARKS):
        work = tmp_path / str(number)
        work.mkdir()
        run = rehearse.start(work, *options, site=site, runs_root=runs_root, scenario=module)
        _kill_at(run, folder, mark)
        assert rehearse.wait_until_clean(run) == [], mark
        print(f"{scenario}: killed at {mark}, nothing left", flush=True)
        options = ["--smoke", "--resume", "last"]
    (sealed,) = [path for path in find_runs(runs_root) if read_run(path).run.complete]
    before = (sealed / MANIFEST).stat().st_mtime_ns
    work = tmp_path / "last"
    work.mkdir()
    run = rehearse.start(work, *options, site=site, runs_root=runs_root, scenario=module)
    run.process.wait(timeout=WHOLE_TIMEOUT_S)
    assert rehearse.wait_until_clean(run) == []
    matrix = find_matrix(folder, "last")
    states = cell_states(folder, matrix)
    assert [one.state for one in states] == ["done", "done"], run.output()[-3000:]
    assert (sealed / MANIFEST).stat().st_mtime_ns == before, "a finished run is never repeated"
    broken = [path for path in find_runs(runs_root) if not read_run(path).run.complete]
    assert len(broken) == sum(one.broken for one in states), "a broken run is kept and marked"
    print(json.dumps({one.place: one.broken for one in states}))
