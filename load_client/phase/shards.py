"""One plan over several processes: each sends its shard, all start at the same instants.

A process says `ready` on its standard output when it could start, and waits for a line with the
common instant (the monotonic clock is one for all processes of a host). Rows need no merging:
every process appends whole lines to the same journals. Figures of shards are never averaged.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ..errors import ClientError
from ..processes import pin, send_line, start_module
from .run import run_phase
from .summary import PhaseSummary

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path

    from ..clock import Clock
    from ..workload.plan import LoadPlan
    from .progress import PhaseProgress

# Time for the line with the instant to reach every process.
LEAD_NS = 20_000_000
# Nothing sleeps in the last 2 ms before the instant: a sleep may end a millisecond late.
_AWAKE_NS = 2_000_000
_READY = "ready"


def run_sharded(
    plan: LoadPlan, out: Path, progress: PhaseProgress, cpus: Sequence[int] | None = None
) -> PhaseSummary:
    """Run `plan.processes` processes to their end; `cpus` pins them in turn.

    Raises ClientError when one could not work; its own line is on stderr before ours.
    """
    shards = [
        _start(replace(plan, processes=1, shard=(index, plan.processes)), out)
        for index in range(plan.processes)
    ]
    merged = PhaseSummary()
    try:
        for index, shard in enumerate(shards):
            if cpus:
                pin(shard.pid, [cpus[index % len(cpus)]], "--client-cpus")
        parts = _conduct(shards)
    except KeyboardInterrupt:
        for shard in shards:
            shard.terminate()
        parts = [_last_answer(shard) for shard in shards]
        merged.interrupted = True
    finally:
        for shard in shards:
            shard.kill()
            shard.wait()
    for part in parts:
        merged.add(part)
    if not merged.interrupted:
        progress.note(f"finished in {plan.processes} processes: {merged.counts}")
    return merged


def run_shard(plan: LoadPlan, out: Path, progress: PhaseProgress, clock: Clock) -> PhaseSummary:
    """The side of the started process: send one shard, answer with its summary."""

    def gate() -> int:
        print(_READY, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt  # the process that started this one is gone
        start_ns = int(line)
        while (left_ns := start_ns - clock.mono_ns()) > 0:
            if left_ns > _AWAKE_NS:
                time.sleep((left_ns - _AWAKE_NS) / 1e9)
        return start_ns

    summary = run_phase(plan, out, progress, clock, gate)
    print(json.dumps(summary.as_json()), flush=True)
    return summary


def _start(plan: LoadPlan, out: Path) -> subprocess.Popen[str]:
    shard = start_module("", ["shard", "--out", str(out)])
    send_line(shard, json.dumps(asdict(plan)))
    return shard


def _conduct(shards: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """Start every round when all are ready; returns the summaries."""
    while True:
        answers = [shard.stdout.readline().strip() if shard.stdout else "" for shard in shards]
        if not all(answers):
            raise ClientError(
                "a process of the client stopped early",
                where=f"process {answers.index('')} of {len(shards)}",
                next_step="read its own line above; rows that were written stay readable",
            )
        if _READY not in answers:
            return [json.loads(answer) for answer in answers]
        if set(answers) != {_READY}:
            raise ClientError(
                "some processes of the client have ended while others wait for the next burst",
                where=f"answers {answers}",
                next_step="run with fewer --processes",
            )
        start = str(time.monotonic_ns() + LEAD_NS)
        for shard in shards:
            send_line(shard, start)


def _last_answer(shard: subprocess.Popen[str]) -> dict[str, Any]:
    answers = (shard.stdout.read() if shard.stdout else "").splitlines()
    return dict(json.loads(answers[-1])) if answers and answers[-1] != _READY else {}
