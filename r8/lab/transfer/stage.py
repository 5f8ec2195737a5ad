"""One work run while it is recorded, and the phases every kind of work shares."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import EngineError
from r8.lab.campaign.phases import QUIET_S, SETTLE_S
from r8.lab.instruments import probes as instruments
from r8.lab.machine import commands
from r8.lab.transfer.worker_pool import WorkerSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from r8.lab.campaign.testbed import Testbed
    from r8.lab.instruments.recording import Recording
    from r8.lab.machine.hosts import KvDirectory
    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.plan import Place
    from r8.lab.site.transfer import WorkArm, WorkPlan
    from r8.lab.transfer.worker_pool import WorkerPool

# Phases whose bytes are balanced: samples must lie on both sides of them.
BALANCED = frozenset({"measure", "warm", "readback"})
# Every regular file below the run's directory belongs to the work.
ALL_FILES = ("",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What lies on the device for a run: made here, or found there."""

    files: int
    total_bytes: int
    made: bool
    # Files and bytes below the directory where more lies in it than the workers move.
    around: tuple[int, int] | None = None

    @property
    def lying(self) -> tuple[int, int]:
        """Files and bytes that must lie below the directory."""
        return self.around or (self.files, self.total_bytes)


@dataclass(slots=True, kw_only=True)
class WorkStage:
    """One cell of a work scenario: where its files lie, who works on them, where it is written."""

    supervisor: Supervisor
    testbed: Testbed
    plan: WorkPlan
    arm: WorkArm
    place: Place
    recording: Recording
    directory: KvDirectory  # the run's own on the device, or the one the site names
    say: Callable[[str], None]
    pool: WorkerPool | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)  # of all phases so far

    @property
    def workers(self) -> tuple[str, ...]:
        """Names of the workers of this cell."""
        return self.recording.run.instances

    @property
    def path(self) -> Path:
        """The directory on the device."""
        return Path(self.directory.path)

    @property
    def environment(self) -> dict[str, str]:
        """What a worker runs in: the caller's, less what the site unsets, plus the arm's."""
        base = instruments.process_environment()
        unset = {*self.testbed.site.engine.unset_env, "PYTHONPATH"}
        return {key: word for key, word in base.items() if key not in unset} | self.arm.env

    def setting(self, name: str) -> float | None:
        """A number of the site's `settings`: the arm's own before the plan's."""
        return self.arm.settings.get(name, self.plan.settings.get(name))

    def torch_device(self, worker: int) -> str:
        """Where one worker's bytes end: an accelerator, or host memory."""
        return self.plan.accelerator.format(worker=worker)


def expect(stage: WorkStage, files: Files) -> None:
    """Write down what the files on the device come to: the run is judged against it."""
    run = stage.recording.run
    if run.work is None:
        raise EngineError(
            "a work stage without work",
            where=run.run_id,
            next_step="begin it through r8.lab.transfer.campaign",
        )
    work = replace(run.work, files=files.files, total_bytes=files.total_bytes)
    expectation = replace(run.expectation, chunk_bytes=files.total_bytes)
    stage.recording.update(replace(run, work=work, expectation=expectation))


def make_durable(stage: WorkStage, expected: Files) -> None:
    """Bring every file to the device, wait until it is quiet, and record what lies there."""
    stage.say("waiting until the files are durable")
    stage.directory.sync()
    before = stage.directory.state()
    time.sleep(QUIET_S)
    after = stage.directory.state()
    stage.recording.event(
        "durable",
        files=after[0],
        bytes=after[1],
        expected_files=expected.lying[0],
        expected_bytes=expected.lying[1],
        made=expected.made,
        quiet_ns=round(QUIET_S * 1e9) if after == before else 0,
    )


def drop(stage: WorkStage) -> None:
    """Drop the page cache with the site's command, then look what is left of every file."""
    stage.say("dropping the page cache")
    stage.recording.event("drop_begin")
    done = [commands.run(words) for words in stage.testbed.drop_commands(stage.arm, ())]
    worst = next((one for one in done if not one.ok), done[0])
    line = "; ".join(one.line for one in done)
    stage.recording.event("drop_end", rc=worst.returncode, command=line, error=worst.error)
    look(stage, "after_drop")
    stage.recording.event("cold_checked")


def look(stage: WorkStage, moment: str) -> None:
    """Record the page-cache residency of every file."""
    instruments.residency(stage.recording, stage.path, moment, stage.directory.host)


def act(
    stage: WorkStage, phase: str, orders: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One phase of work between its two marks; the workers' rows become `work` events."""
    if stage.pool is None:
        raise EngineError(
            "no workers", where=stage.recording.run.run_id, next_step="start them first"
        )
    stage.say(f"{phase}: {len(orders)} workers")
    settle = phase in BALANCED
    if settle:
        time.sleep(SETTLE_S)
    stage.recording.event(f"{phase}_begin", workers=sorted(orders))
    rows = stage.pool.order(phase, orders, stage.plan.timeout_s)
    for row in rows:
        note(stage, row)
    stage.recording.event(f"{phase}_end")
    if settle:
        time.sleep(SETTLE_S)
    return rows


def note(stage: WorkStage, row: dict[str, Any]) -> None:
    """One worker's row as an event `work`, at the instant it ended (now, when it told none)."""
    now_ns = time.monotonic_ns()
    end_ns = row.get("end_ns") if isinstance(row.get("end_ns"), int) else now_ns
    stage.rows.append(row)
    stage.recording.append(
        "events",
        {
            "name": "work",
            "mono_ns": end_ns,
            "wall_ns": time.time_ns() - (now_ns - (end_ns or now_ns)),
            "detail": json.dumps(row, sort_keys=True),
        },
    )


def one_a_worker(stage: WorkStage, tool: Path) -> list[WorkerSpec]:
    """A process of this program a worker, each with its device."""
    environment = stage.environment
    return [
        WorkerSpec(
            name=name,
            argv=(
                *stage.testbed.python_running(str(tool), "--device", stage.torch_device(number)),
            ),
            env=environment,
        )
        for number, name in enumerate(stage.workers)
    ]
