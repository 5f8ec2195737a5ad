"""R3 on two engine hosts behind ssh: real engines, killed once, resumed to the end.

Probes, cache drops, patch and engines of each host go through its prefix, and whatever R8 started
there ends with it, though nothing of it is R8's own child.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from r8.evidence.reader import find_runs, read_run
from r8.forensics.certificate import certify, connect_settled
from r8.forensics.gate import refusals
from r8.tests.qualify import rehearse
from r8.tests.qualify.ssh_nodes import NODES, nodes

if TYPE_CHECKING:
    from r8.evidence.reader import Evidence
    from r8.tests.qualify.rehearse import Rehearsal
    from r8.tests.qualify.ssh_nodes import Nodes

pytestmark = [pytest.mark.qualify, pytest.mark.root, pytest.mark.stack]

SCENARIO = "r8/scenarios/test_r3_tp4x2.py"
MARK_TIMEOUT_S = 420.0
WHOLE_TIMEOUT_S = 1200.0
# By cell: measured requests, full hits, no hits, populated on the engine that was measured.
HITS = {
    "pool-c8": (8, 8, 0, 8),
    "pool-cross-c4": (4, 0, 4, 0),
    "fs-own-c8": (8, 8, 0, 8),
    "fs-cross-c8": (8, 8, 0, 0),
}
_HITS = """
SELECT count(*), count(*) FILTER (o.hit_tokens = r.hit_tokens_per_session),
       count(*) FILTER (o.hit_tokens = 0), count(*) FILTER (o.measured_on = o.populated_on)
FROM request_origin AS o JOIN runs AS r USING (run_id)
"""


def _on_the_nodes(testbed: Nodes) -> list[str]:
    """Processes that have a place of this testbed in their words or environment, sshd's aside."""
    found = []
    place = str(testbed.root).encode()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes()
            environ = (directory / "environ").read_bytes()
        except OSError:
            continue
        if place in words + environ and b"sshd" not in words:
            found.append(words.replace(b"\0", b" ").decode()[:120])
    return found


def _until(run: Rehearsal, folder: Path, mark: str) -> None:
    deadline = time.monotonic() + MARK_TIMEOUT_S
    while not any(mark in path.read_text() for path in folder.glob("*.partial/events.jsonl")):
        assert run.process.poll() is None, run.output()[-3000:]
        assert time.monotonic() < deadline, run.output()[-3000:]
        time.sleep(0.1)


def _clean(run: Rehearsal, testbed: Nodes) -> None:
    assert rehearse.wait_until_clean(run) == []
    assert _on_the_nodes(testbed) == []


def _start(testbed: Nodes, work: Path, *options: str) -> Rehearsal:
    work.mkdir()
    runs_root = work.parent / "runs"
    words = ("--smoke", *options)
    return rehearse.start(work, *words, site=testbed.site, runs_root=runs_root, scenario=SCENARIO)


def test_r3_on_two_hosts_is_killed_resumed_and_certified(tmp_path: Path) -> None:
    with nodes() as testbed:
        run = _start(testbed, tmp_path / "killed")
        _until(run, run.runs_root / "r3-tp4x2", '"measure_begin"')
        run.process.send_signal(signal.SIGKILL)
        run.process.wait()
        _clean(run, testbed)
        run = _start(testbed, tmp_path / "resumed", "--resume", "last")
        # No claim speaks of these few cells: the session itself ends with "not measured".
        run.process.wait(timeout=WHOLE_TIMEOUT_S)
        _clean(run, testbed)
        whole = [one for one in map(read_run, find_runs(run.runs_root)) if one.run.complete]
        assert len(whole) == len(HITS), run.output()[-3000:]
        for evidence in whole:
            _look(evidence)


def _look(evidence: Evidence) -> None:
    with connect_settled([evidence]) as connection:
        clocks = connection.execute(
            "SELECT DISTINCT json_extract_string(detail, '$.host') FROM events "
            "WHERE name = 'clock_offset' ORDER BY 1"
        ).fetchall()
        trees = connection.execute(
            "SELECT DISTINCT host, split_part(device, ':', 1) FROM probes "
            "WHERE probe = 'process' AND counter = 'read_bytes' ORDER BY host"
        ).fetchall()
        hits = connection.execute(_HITS).fetchone()
        refused = refusals(certify(evidence.run, connection))
    print(evidence.run.run_id, clocks, trees, hits, refused)
    assert [host for (host,) in clocks] == list(NODES)
    assert [host for host, _ in trees] == list(NODES)
    assert hits == HITS[evidence.path.name.split("-b0-")[1].removesuffix("-try2")]
    # What hits nothing is refused as a cold read: no bytes, no hits, a patch that read nothing.
    hit_nothing = {"C4", "C6", "C11"} if "pool-cross" in evidence.run.run_id else set()
    assert {one.rule_id for one in refused} == hit_nothing
