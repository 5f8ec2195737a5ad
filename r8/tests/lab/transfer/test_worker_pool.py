"""Workers at a barrier: who answers, who dies, who says nothing. Stand-in workers, no framework."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from r8.errors import InstrumentError
from r8.lab.machine.supervisor import Supervisor
from r8.lab.transfer.switching import schedule
from r8.lab.transfer.worker_pool import WorkerSpec, start_pool

if TYPE_CHECKING:
    from pathlib import Path

# Answers orders as a worker must; the order's `do` says how it misbehaves.
STANDIN = """
import json, os, sys, time
path = sys.argv[sys.argv.index("--answers") + 1]
def say(row):
    with open(path, "a") as sink: sink.write(json.dumps(row) + "\\n")
say({"ready": True, "pid": os.getpid(), "standin": 1})
for line in sys.stdin:
    order = json.loads(line)
    if order.get("do") == "die": os._exit(9)
    if order.get("do") == "nothing": continue
    while time.monotonic_ns() < order["start_ns"]: time.sleep(0.005)
    now = time.monotonic_ns()
    row = {"order": order["order"], "begin_ns": now, "end_ns": now, "files": 1, "outcome": "ok"}
    if order.get("do") != "half": row["bytes"] = 5
    if "serve_until_ns" in order: row["until"] = order["serve_until_ns"] - order["start_ns"]
    say(row)
"""


def _spec(name: str, program: str = STANDIN) -> WorkerSpec:
    return WorkerSpec(name=name, argv=(sys.executable, "-c", program), env=dict(os.environ))


def test_workers_begin_after_the_barrier_and_one_that_dies_is_a_row(tmp_path: Path) -> None:
    with Supervisor(tmp_path / ".supervisor") as supervisor:
        pool = start_pool(supervisor, [_spec(name) for name in ("a", "b", "c", "d")], tmp_path)
        orders = {"a": {}, "b": {"do": "die"}, "c": {"do": "nothing"}, "d": {"do": "half"}}
        rows = {one["worker"]: one for one in pool.order("measure", orders, timeout_s=10.0)}
        pool.stop()
    assert rows["a"]["outcome"] == "ok"
    assert rows["a"]["begin_ns"] >= rows["a"]["scheduled_ns"]
    assert (rows["b"]["outcome"], "code 9" in rows["b"]["error"]) == ("ended", True)
    assert rows["c"]["outcome"] == "silent"
    assert (rows["d"]["outcome"], "lacks bytes" in rows["d"]["error"]) == ("failed", True)
    assert rows["b"]["bytes"] is None


def test_switches_are_given_out_one_period_apart(tmp_path: Path) -> None:
    planned = schedule(("a", "b"), 50_000_000)
    with Supervisor(tmp_path / ".supervisor") as supervisor:
        pool = start_pool(supervisor, [_spec("a"), _spec("b")], tmp_path)
        first, second = pool.order("measure", planned, timeout_s=20.0)
        pool.stop()
    assert second["scheduled_ns"] - first["scheduled_ns"] == 50_000_000
    assert first["until"] == second["until"] == 50_000_000


def test_a_worker_that_ends_before_it_is_ready_stops_the_run_with_its_last_words(
    tmp_path: Path,
) -> None:
    program = "import sys; sys.exit('no torch here')"
    with (
        Supervisor(tmp_path / ".supervisor") as supervisor,
        pytest.raises(InstrumentError, match="no torch here"),
    ):
        start_pool(supervisor, [_spec("a", program)], tmp_path)
