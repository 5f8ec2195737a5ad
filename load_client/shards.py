"""One plan over several processes: each sends its shard, all start at the same instants.

A child says `ready` on its standard output when it could start, and waits for a line with the
common instant (the monotonic clock is one for all processes of a host). Rows need no merging:
every process appends whole lines to the same journals. Figures of shards are never averaged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ClientError
from .phase import Phase, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .clock import Clock
    from .plan import Plan
    from .progress import Progress

# Time for the line with the instant to reach every child.
LEAD_NS = 20_000_000
# The last stretch before the instant is spent awake: a sleep would end up to a millisecond late.
_AWAKE_NS = 2_000_000
_READY = "ready"


def run_sharded(
    plan: Plan, out: Path, progress: Progress, cpus: Sequence[int] | None = None
) -> Summary:
    """Run `plan.processes` children to their end; `cpus` pins them in turn.

    Raises ClientError when a child could not work; its own line is on stderr before ours.
    """
    children = [
        _start(replace(plan, processes=1, shard=(index, plan.processes)), out)
        for index in range(plan.processes)
    ]
    try:
        for index, child in enumerate(children):
            if cpus:
                os.sched_setaffinity(child.pid, {cpus[index % len(cpus)]})
        summaries = _conduct(children)
    except KeyboardInterrupt:
        for child in children:
            child.terminate()
        summaries = [_last_answer(child) for child in children]
        merged = _merge(summaries)
        merged.interrupted = True
        return merged
    finally:
        for child in children:
            child.kill()
            child.wait()
    merged = _merge(summaries)
    counts = ", ".join(f"{n} {name}" for name, n in sorted(merged.outcomes.items()))
    progress.note(f"finished in {plan.processes} processes: {counts or 'nothing sent'}")
    return merged


def shard_main(out: Path, clock: Clock, progress: Progress, plan: Plan) -> int:
    """The child's side: run one shard, answer with its summary."""

    def gate() -> int:
        print(_READY, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise KeyboardInterrupt  # the parent is gone
        start_ns = int(line)
        while (left_ns := start_ns - clock.mono_ns()) > 0:
            if left_ns > _AWAKE_NS:
                time.sleep((left_ns - _AWAKE_NS) / 1e9)
        return start_ns

    summary = Phase(plan, out, progress, clock, gate).run()
    said = {
        "outcomes": dict(summary.outcomes),
        "first_failure": summary.first_failure,
        "unsent_turns": summary.unsent_turns,
        "findings": summary.findings,
        "interrupted": summary.interrupted,
    }
    print(json.dumps(said), flush=True)
    return 0 if summary.all_ok else 1


def _start(plan: Plan, out: Path) -> subprocess.Popen[str]:
    root = str(Path(__file__).resolve().parents[__package__.count(".") + 1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    child = subprocess.Popen(
        [sys.executable, "-m", str(__package__), "shard", "--out", str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    _tell(child, json.dumps(asdict(plan)))
    return child


def _conduct(children: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """Start every round when all are ready; returns the summaries."""
    while True:
        answers = [child.stdout.readline().strip() if child.stdout else "" for child in children]
        if not all(answers):
            raise ClientError(
                "a process of the client stopped early",
                where=f"process {answers.index('')} of {len(children)}",
                next_step="read its own line above; rows that were written stay readable",
            )
        if _READY not in answers:
            return [json.loads(answer) for answer in answers]
        if set(answers) != {_READY}:
            raise ClientError(
                "the processes of the client are not in step",
                where=f"answers {answers}",
                next_step="run with fewer --processes",
            )
        start = str(time.monotonic_ns() + LEAD_NS)
        for child in children:
            _tell(child, start)


def _last_answer(child: subprocess.Popen[str]) -> dict[str, Any]:
    answers = (child.stdout.read() if child.stdout else "").splitlines()
    return dict(json.loads(answers[-1])) if answers and answers[-1] != _READY else {}


def _tell(child: subprocess.Popen[str], line: str) -> None:
    if child.stdin is not None:
        try:
            child.stdin.write(line + "\n")
            child.stdin.flush()
        except BrokenPipeError:
            return  # it ended; its missing answer says so


def _merge(summaries: list[dict[str, Any]]) -> Summary:
    merged = Summary()
    for one in summaries:
        merged.outcomes.update(Counter(one.get("outcomes", {})))
        merged.findings.extend(one.get("findings", []))
        merged.unsent_turns += one.get("unsent_turns", 0)
        merged.first_failure = merged.first_failure or one.get("first_failure")
        merged.interrupted = merged.interrupted or one.get("interrupted", True)
    return merged
