"""Workers: processes that wait at a barrier, do one thing on an order, and tell when and how much.

A worker is a program of its own (`r8/lab/transfer/tools/`, run under the engine's Python). It takes
one JSON object a line on standard input and appends one JSON object a line to `--answers FILE`:

    ready    {"ready": true, "pid": 71, ...facts}              once it has imported all it needs
    order    {"order": 0, "phase": "measure", "start_ns": ..}  do it, not before start_ns
    answer   {"order": 0, "begin_ns": .., "end_ns": .., "bytes": .., "files": .., "outcome": "ok"}

Instants are of the monotonic clock, which all processes of a host share: the barrier is an
instant, so a worker that is late shows it (`begin_ns - start_ns`). A worker that dies or says
nothing becomes a row of its own with the reason; judging it is not done here.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from r8.lab.machine.supervisor import Process, Supervisor

# Imports of a framework from a cold disk take their time.
READY_TIMEOUT_S = 300.0
LOOK_S = 0.02
# From the order to the barrier: every worker has read its line by then.
BARRIER_DELAY_NS = 200_000_000
STOP_GRACE_S = 10.0
OK, FAILED, ENDED, SILENT = "ok", "failed", "ended", "silent"
# What an answer must hold to be one; everything else in it is kept as it is.
_ANSWER_KEYS = ("begin_ns", "end_ns", "bytes", "files", "outcome")
_LOG_TAIL_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """One worker to be started; `argv` without `--answers`, which the pool adds."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]  # the whole environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker that said it is ready."""

    name: str
    process: Process
    pid: int  # on this host: the process tree below it does the work
    answers: Path
    log: Path
    facts: dict[str, Any]

    @property
    def said(self) -> dict[str, Any]:
        """What it says of itself, without the words of the protocol."""
        return {key: value for key, value in self.facts.items() if key not in {"ready", "pid"}}


@dataclass(slots=True, kw_only=True)
class WorkerPool:
    """All workers of a run."""

    supervisor: Supervisor
    workers: list[Worker]
    orders: int = 0

    @property
    def pids(self) -> dict[str, int]:
        """Root process of each worker by name, as the probes want it."""
        return {one.name: one.pid for one in self.workers}

    def order(
        self, phase: str, orders: Mapping[str, Mapping[str, Any]], timeout_s: float
    ) -> list[dict[str, Any]]:
        """Give every named worker its order and wait for all answers; one row a worker.

        `after_ns` in an order is its instant after the barrier, 0 when not given; `serve_after_ns`,
        where given, becomes the instant `serve_until_ns`.
        """
        number, self.orders = self.orders, self.orders + 1
        barrier_ns = time.monotonic_ns() + BARRIER_DELAY_NS
        chosen = [one for one in self.workers if one.name in orders]
        started = {
            one.name: _send(one, orders[one.name], number, phase, barrier_ns) for one in chosen
        }
        rows: dict[str, dict[str, Any]] = {}
        deadline = time.monotonic() + timeout_s
        while len(rows) < len(chosen):
            overdue = time.monotonic() > deadline
            for one in chosen:
                if one.name not in rows:
                    row = _row(one, number, overdue=overdue)
                    if row is not None:
                        head = {"worker": one.name, "phase": phase}
                        rows[one.name] = head | {"scheduled_ns": started[one.name]} | row
            time.sleep(LOOK_S)
        return [rows[one.name] for one in chosen]

    def stop(self) -> None:
        """End every worker: first by the end of its input, as it is told to expect."""
        for one in self.workers:
            _close_input(one.process)
        for one in self.workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.process.wait(timeout=STOP_GRACE_S)
            _end(self.supervisor, one.process)
        self.workers.clear()


def start_pool(supervisor: Supervisor, specs: Sequence[WorkerSpec], raw: Path) -> WorkerPool:
    """Start workers and wait until each is ready; answers and logs go into `raw`.

    Raises:
        InstrumentError: one ended or did not become ready; its log's end is quoted.

    """
    begun = []
    for spec in specs:
        answers, log = raw / f"worker-{spec.name}.jsonl", raw / f"worker-{spec.name}.log"
        answers.touch()
        process = supervisor.spawn(
            f"worker-{spec.name}",
            [*spec.argv, "--answers", str(answers)],
            env=spec.env,
            log_path=log,
            stdin=subprocess.PIPE,
        )
        begun.append((spec, process, answers, log))
    deadline = time.monotonic() + READY_TIMEOUT_S
    try:
        ready = [_ready(*one, deadline) for one in begun]
    except InstrumentError:
        for _, process, _, _ in begun:
            _end(supervisor, process)
        raise
    return WorkerPool(supervisor=supervisor, workers=ready)


def _ready(spec: WorkerSpec, process: Process, answers: Path, log: Path, deadline: float) -> Worker:
    while time.monotonic() < deadline:
        for facts in _answers(answers):
            if facts.get("ready") is True:
                return Worker(
                    name=spec.name,
                    process=process,
                    pid=host_pid(process.pid, facts, str(answers)),
                    answers=answers,
                    log=log,
                    facts=facts,
                )
        code = process.poll()
        if code is not None:
            raise _lost(spec.name, f"ended with code {code} before it was ready", log)
        time.sleep(LOOK_S)
    raise _lost(spec.name, f"was not ready within {READY_TIMEOUT_S:g} s", log)


def _end(supervisor: Supervisor, process: Process) -> None:
    _close_input(process)
    supervisor.stop(process, grace_s=STOP_GRACE_S)


def _close_input(process: Process) -> None:
    """End a worker's input; what is still in the pipe is of no use to one that has ended."""
    with contextlib.suppress(BrokenPipeError):
        if process.stdin is not None:
            process.stdin.close()


def _lost(name: str, what: str, log: Path) -> InstrumentError:
    return InstrumentError(
        f"worker {name} {what}; its log ends: {_tail(log) or '(empty)'}",
        where=str(log),
        next_step="check that the engine's Python imports torch and safetensors",
    )


def _send(
    worker: Worker, order: Mapping[str, Any], number: int, phase: str, barrier_ns: int
) -> int:
    """Write one order; a worker that ended cannot take it, which its row will say."""
    start_ns = barrier_ns + int(order.get("after_ns", 0))
    line = {**order, "order": number, "phase": phase, "start_ns": start_ns}
    if "serve_after_ns" in order:
        line["serve_until_ns"] = barrier_ns + int(order["serve_after_ns"])
    stdin = worker.process.stdin
    if stdin is not None:
        with contextlib.suppress(BrokenPipeError, ValueError):
            stdin.write(json.dumps(line).encode() + b"\n")
            stdin.flush()
    return start_ns


def _row(worker: Worker, number: int, *, overdue: bool) -> dict[str, Any] | None:
    """A worker's answer to an order, or why there will be none; None while it works."""
    # Before the answers are read: one that answered and ended right after has answered.
    code = worker.process.poll()
    for answer in _answers(worker.answers):
        if answer.get("order") == number:
            absent = [key for key in _ANSWER_KEYS if key not in answer]
            if absent:
                return _none(FAILED, f"its answer lacks {', '.join(absent)}")
            return {key: value for key, value in answer.items() if key != "order"}
    if code is not None:
        return _none(ENDED, f"ended with code {code}: {_tail(worker.log) or 'nothing in its log'}")
    return _none(SILENT, "no answer in time") if overdue else None


def _none(outcome: str, error: str) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(("begin_ns", "end_ns", "bytes", "files"))
    return empty | {"outcome": outcome, "error": error}


def _answers(path: Path) -> list[dict[str, Any]]:
    """Whole lines only: the last one may be under way."""
    lines = path.read_text(errors="replace").split("\n")[:-1]
    found = []
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _tail(log: Path) -> str:
    try:
        return log.read_text(errors="replace").strip()[-_LOG_TAIL_CHARACTERS:]
    except OSError:
        return ""


def host_pid(started: int, facts: Mapping[str, Any], mark: str) -> int:
    """The worker's process id on this host; behind a container's prefix it is not what was started.

    There the process is found by what stands in its command line and by the id it has inside.
    """
    inside = facts.get("pid")
    if inside == started or not isinstance(inside, int):
        return started
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            status = (entry / "status").read_text()
        except OSError:
            continue
        ids = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
        if mark.encode() in words and ids.split()[-1:] == [str(inside)]:
            return int(entry.name)
    return started
