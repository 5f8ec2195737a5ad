"""One transfer: where its files lie, who moves them, and the phases that every job shares."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import EngineError
from r8.lab.instruments import probes
from r8.lab.machine.commands import typed
from r8.lab.machine.hosts import QUIET_S, KvDirectory
from r8.lab.transfer.worker_pool import WorkerSpec
from r8.model import TransferRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from r8.lab.instruments.recording import Recording
    from r8.lab.site.arms import TransferArm, TransferPlan
    from r8.lab.site.plan import Place
    from r8.lab.testbed import Testbed
    from r8.lab.transfer.worker_pool import WorkerPool
    from r8.model import Moves

# Phases whose bytes are balanced: samples must lie on both sides of them.
BALANCED = frozenset({"measure", "warm", "readback"})
# Every regular file below the run's directory belongs to the transfer.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One cell of a scenario without a KV engine, as it is known before it begins."""

    testbed: Testbed
    scenario: str
    plan: TransferPlan
    arm: TransferArm
    place: Place
    seed: int
    directory: KvDirectory  # the run's own on the device, or the one the site names

    @property
    def workers(self) -> tuple[str, ...]:
        """Names of the workers."""
        return tuple(f"w{number}" for number in range(self.place.concurrency))

    @property
    def path(self) -> Path:
        """The directory on the device."""
        return Path(self.directory.path)

    @property
    def where(self) -> str:
        """The arm's table in the site file, for messages."""
        return f"transfers.{self.scenario}.arm.{self.place.arm}"

    @property
    def settings(self) -> dict[str, float]:
        """Numbers of the job: the arm's own before the plan's."""
        return self.plan.settings | self.arm.settings

    def worker_argv(self, number: int, tool: Path, *more: str) -> list[str]:
        """The command of one worker, each with its device: an accelerator, or host memory."""
        device = self.plan.accelerator.format(worker=number)
        return self.testbed.python(str(tool), "--device", device, *more)

    def worker_specs(self, tool: Path) -> list[WorkerSpec]:
        """A process of this program a worker, in the caller's environment and the arm's own."""
        unset = {*self.testbed.site.engine.unset_env, "PYTHONPATH"}
        base = probes.process_environment().items()
        env = {key: word for key, word in base if key not in unset} | self.arm.env
        return [
            WorkerSpec(name=name, argv=tuple(self.worker_argv(number, tool)), env=env)
            for number, name in enumerate(self.workers)
        ]

    def begun(self, recording: Recording, pool: WorkerPool) -> Stage:
        """The same with its workers started, while it is recorded."""
        known = {one.name: getattr(self, one.name) for one in fields(Transfer)}
        return Stage(**known, recording=recording, pool=pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Transfer):
    """A transfer whose workers are ready, while it is recorded."""

    recording: Recording
    pool: WorkerPool


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One kind of transfer: what its cells do, what they need, what a dry run prints of them.

    A new job is a module with one of these, its line in `r8.lab.transfer.jobs.JOBS`, and rules
    that read its rows.
    """

    name: str  # in the site file
    moves: Moves  # what the measured window does to the device
    tool: Callable[[TransferArm], Path]  # the program of an arm's workers
    # Puts the files on the device that must be there before the workers start, where any must.
    make: Callable[[Transfer], Files]
    # Everything between the start of the probes and their end. It must leave the events `durable`,
    # `drop_begin`, `drop_end`, `measure_begin` and `measure_end`, in the order its rules ask for.
    phases: Callable[[Stage, Files], None]
    # For preflight and dry run, where the site names no directory of files: bytes that one cell of
    # an arm puts on its device, and what is said of the files.
    device_bytes: Callable[[TransferPlan, str], int]
    files_said: Callable[[Transfer], str]
    commands: Callable[[Transfer, Path], Iterator[str]]  # of the phases, as a dry run prints them


def transfer_of(
    testbed: Testbed, scenario: str, place: Place, *, run_id: str, seed: int
) -> Transfer:
    """The transfer of one cell; its directory is not made yet."""
    plan = testbed.site.transfers[scenario]
    arm = plan.arm[place.arm]
    path = arm.files_dir or str(testbed.kv_roots[arm.device] / f"r8-{run_id}")
    return Transfer(
        testbed=testbed,
        scenario=scenario,
        plan=plan,
        arm=arm,
        place=place,
        seed=seed,
        directory=KvDirectory(host=testbed.host_of(arm.device), path=path, suffixes=ALL_FILES),
    )


def expect(recording: Recording, files: Files) -> None:
    """Write down what the files on the device come to: the run is judged against it."""
    run = recording.run
    if not isinstance(run, TransferRun):
        raise EngineError(
            "a transfer was recorded as a run with a KV engine",
            where=run.run_id,
            next_step="report this: no site file can ask for it",
        )
    recording.update(replace(run, files=files.files, total_bytes=files.total_bytes))


def make_durable(stage: Stage, expected: Files) -> None:
    """Bring every file to the device, wait until it is quiet, and record what lies there."""
    stage.testbed.say("waiting until the files are durable")
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


def drop(stage: Stage) -> None:
    """Drop the page cache with the site's command, then look what is left of every file."""
    stage.testbed.say("dropping the page cache")
    drops = stage.testbed.drop_commands(stage.arm.device)
    probes.drop(stage.recording, drops, stage.directory)


def look(stage: Stage, moment: str) -> None:
    """Record the page-cache residency of every file."""
    probes.residency(stage.recording, stage.path, moment, stage.directory.host)


def act(stage: Stage, phase: str, orders: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One phase between its two marks; the workers' rows become `work` events."""
    stage.testbed.say(f"{phase}: {len(orders)} workers")
    settle = phase in BALANCED
    if settle:
        time.sleep(probes.SETTLE_S)
    stage.recording.event(f"{phase}_begin", workers=sorted(orders))
    rows = order(stage, phase, orders)
    stage.recording.event(f"{phase}_end")
    if settle:
        time.sleep(probes.SETTLE_S)
    return rows


def order(
    stage: Stage, phase: str, orders: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Give workers an order and record their rows; a phase without marks."""
    rows = stage.pool.order(phase, orders, stage.plan.timeout_s)
    for row in rows:
        _note(stage.recording, row)
    return rows


def _note(recording: Recording, row: dict[str, Any]) -> None:
    """One worker's row as an event `work`, at the instant it ended (now, when it told none)."""
    now_ns = time.monotonic_ns()
    end_ns = row.get("end_ns") if isinstance(row.get("end_ns"), int) else now_ns
    recording.append(
        "events",
        {
            "name": "work",
            "mono_ns": end_ns,
            "wall_ns": time.time_ns() - (now_ns - (end_ns or now_ns)),
            "detail": json.dumps(row, sort_keys=True),
        },
    )


def drop_commands(transfer: Transfer, partial: Path) -> Iterator[str]:
    """What `drop` runs, as a dry run prints it."""
    for words in transfer.testbed.drop_commands(transfer.arm.device):
        yield typed(words)
    yield look_command(transfer, partial, "after_drop")


def look_command(transfer: Transfer, partial: Path, moment: str) -> str:
    """What `look` runs, as a dry run prints it."""
    host = transfer.directory.host
    return typed(probes.residency_argv(transfer.path, moment, partial, host))
