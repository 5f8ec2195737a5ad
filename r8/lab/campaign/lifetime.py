"""One engine lifetime: the engines of one arm in one block, started and populated once.

Several cells run in one lifetime, one after another, each a run directory of its own. What they
share (engine start, populate, flush) is recorded in the first cell, and its rows are copied into
every later one: a run directory stays whole evidence that can be judged, sealed and given away
alone, without a reference to a neighbour. `cell_begin` says which run the copied rows were first
recorded in. The engines log into the lifetime's own directory, and each run holds that log up to
its own end, so that whatever an engine said before a cell is there when the cell is judged.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from r8.lab.campaign import engine
from r8.lab.instruments.recording import RAW, remove_tree
from r8.lab.machine.hosts import KvDirectory
from r8.lab.site.file import fill, fill_one

if TYPE_CHECKING:
    from pathlib import Path

    from r8.lab.campaign.engine import RunningEngine
    from r8.lab.instruments.recording import Recording
    from r8.lab.machine.remote import ClockOffset
    from r8.lab.site.arms import Arm, Plan
    from r8.lab.site.machines import Instance
    from r8.lab.testbed import Testbed
    from r8.model import PatchState

# Journals whose rows of the shared phases go into every run of a lifetime.
SHARED_JOURNALS = ("events", "requests", "chunks")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSessions:
    """The negative control's own sessions, and the interval their files were written in.

    The cell that stores them and the cell that reads them back may differ: one lifetime measures
    several cells, and each has special sessions of its own.
    """

    sessions: tuple[tuple[int, ...], ...]  # by instance
    since: str  # by the clock of the host that holds the files
    until: str


@dataclass(slots=True, kw_only=True)
class EngineLifetime:
    """The engines of one arm in one block, and what they have stored so far."""

    testbed: Testbed
    plan: Plan
    arm: Arm  # the first of the lifetime; those that share it differ only in what they read
    home: Path  # the lifetime's own directory, beside the runs
    kv_dir: str  # of the pool, on the host of the arm's device
    key: tuple[int, str] = (0, "")  # block and name: cells with the same one run on these engines
    patch: PatchState | None = None
    versions: dict[str, str] = field(default_factory=dict)  # of what the engine's Python imports
    engines: list[RunningEngine] = field(default_factory=list)
    stored: set[int] = field(default_factory=set)  # session numbers that are on the device
    first_run_id: str | None = None  # the run whose rows the later ones share
    undo_kv: int | None = None
    control: ControlSessions | None = None  # where a cell of this lifetime ends a block

    @property
    def kv(self) -> KvDirectory | None:
        """The pool; None: the arm has no KV tier."""
        if self.arm.kv == "none":
            return None
        return KvDirectory(host=self.testbed.host_of(self.arm.device), path=self.kv_dir)

    @property
    def kv_offset(self) -> ClockOffset | None:
        """The clock of the host that holds the pool; None: it is ours."""
        return self.testbed.offsets.get(self.testbed.host_of(self.arm.device).name)

    @property
    def drops(self) -> list[list[str]]:
        """The commands that empty the page cache of every host the arm touches."""
        return self.testbed.drop_commands(self.arm.device, self.plan.instances)

    @property
    def instances(self) -> list[Instance]:
        """The instances of the plan, in its order."""
        return [self.testbed.site.instance(name) for name in self.plan.instances]

    @property
    def prelude(self) -> Path:
        """Where the shared rows wait for the next cell."""
        return self.home / "prelude"

    def command(self, instance: Instance) -> list[str]:
        """The engine's own command for one instance, filled."""
        found = self.testbed.site.engine
        words = found.command if self.kv is None else (*found.command, *found.kv_args)
        return fill(words, self.names_of(instance), where="engine.command")

    def environment(self, instance: Instance) -> dict[str, str]:
        """Everything the site, the scenario, the arm and the instance set for an engine."""
        found, treatment, kv = self.testbed.site.engine, self.arm.treatment, self.arm.kv
        kind = {} if kv == "none" else found.kv_env.get(kv, {})
        words = found.env | kind | self.plan.env | treatment.env | instance.env
        if kv == "none":
            words = {key: word for key, word in words.items() if not key.startswith("LMCACHE_")}
        names = self.names_of(instance)
        filled = {key: fill_one(word, names, where=f"env {key}") for key, word in words.items()}
        extra = {} if kv == "none" else self.plan.extra_config | treatment.extra_config
        return engine.engine_env(filled | self.testbed.env(self.arm), extra)

    def names_of(self, instance: Instance) -> dict[str, str]:
        """What `{names}` stand for in one instance's command."""
        own = {"port": str(instance.port), "instance": instance.name}
        kv = {"kv_dir": "" if self.kv is None else self.kv_dir}
        return self.testbed.names(self.arm.device) | instance.vars | own | kv

    def start(self) -> None:
        """Make the pool and start every engine; the caller waits until they are ready."""
        kv, supervisor = self.kv, self.testbed.supervisor
        self.home.mkdir(parents=True)
        if kv is not None:
            self.undo_kv = kv.create(supervisor, f"KV directory {kv.path}")
        for instance in self.instances:
            env, command = self.environment(instance), self.command(instance)
            log = self.home / f"server-{instance.name}.log"
            running = engine.launch(supervisor, self.testbed.site, instance, env, command, log)
            self.engines.append(running)

    def show_logs(self, recording: Recording) -> None:
        """Let a run hold the engines' logs: the same files, as they grow.

        Copies where the file system has no hard links.
        """
        for running in self.engines:
            target = recording.raw(running.log_path.name)
            target.unlink(missing_ok=True)
            try:
                os.link(running.log_path, target)
            except OSError:
                shutil.copyfile(running.log_path, target)

    def require_alive(self) -> None:
        """Raise EngineError when an engine has ended."""
        for running in self.engines:
            engine.require_alive(running)

    def keep_prelude(self, recording: Recording) -> None:
        """Put the rows recorded so far aside: they belong to every later run of this lifetime."""
        self.first_run_id = recording.run.run_id
        (self.prelude / RAW).mkdir(parents=True)
        recording.sync()
        for name in SHARED_JOURNALS:
            source = recording.directory / f"{name}.jsonl"
            if source.is_file():
                shutil.copyfile(source, self.prelude / source.name)
        for path in recording.raw("").glob("*"):
            if path.name.startswith(("client-", "plan-")) and path.name != "plan-probes.json":
                shutil.copyfile(path, self.prelude / RAW / path.name)

    def stop_engines(self) -> list[str]:
        """End every engine, the last one first; returns the names of those that ran."""
        stopped = []
        while self.engines:
            running = self.engines[-1]
            engine.stop(self.testbed.supervisor, self.testbed.site, running)
            stopped.append(running.instance)
            self.engines.pop()
        return stopped

    def close(self) -> None:
        """End what still runs and remove the pool; every run of the lifetime is sealed by now."""
        self.stop_engines()
        if self.undo_kv is not None:
            self.testbed.supervisor.undo(self.undo_kv)
            self.undo_kv = None
        remove_tree(self.home)
