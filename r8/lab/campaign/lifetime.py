"""One engine life: the engines of one arm in one block, started and populated once.

Several cells run in one life, one after another, each a run directory of its own. What they share
(engine start, populate, flush) is recorded in the first cell, and its rows are copied into every
later one: a run directory stays whole evidence that can be judged, sealed and given away alone,
without a reference to a neighbour. `cell_begin` says which run the copied rows were first
recorded in. The engines log into the life's own directory, and each run holds that log up to its
own end, so that whatever an engine said before a cell is there when the cell is judged.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from r8.lab.campaign import engine as engines
from r8.lab.instruments.recording import RAW, remove_tree
from r8.lab.site.file import fill, fill_one

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.lab.campaign.controls import Stored
    from r8.lab.campaign.engine import RunningEngine
    from r8.lab.instruments.probes import Watched
    from r8.lab.instruments.recording import Recording
    from r8.lab.machine.hosts import KvDirectory
    from r8.lab.machine.remote import ClockOffset
    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.file import Arm, Instance, Plan, Site

# Journals whose rows of the shared phases go into every run of a life.
SHARED_JOURNALS = ("events", "requests", "chunks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every phase of a life needs: the site, and how this campaign names things."""

    supervisor: Supervisor
    site: Site
    plan: Plan
    arm: Arm  # the first of the life; those that share it differ only in what they read
    home: Path  # the life's own directory, beside the runs
    kv: KvDirectory | None  # None: the arm has no KV tier
    names: dict[str, str]  # for filling the site's commands
    env: dict[str, str]  # added to the site's engine environment, e.g. PYTHONPATH
    drop_commands: list[list[str]]  # of every host the arm touches
    watched: tuple[Watched, ...]
    say: Callable[[str], None]

    @property
    def kv_offset(self) -> ClockOffset | None:
        """The clock of the host that holds the pool; None: it is ours."""
        name = None if self.kv is None else self.kv.host.name
        return next((one.offset for one in self.watched if one.host.name == name), None)

    def command(self, instance: Instance) -> list[str]:
        """The engine's own command for one instance, filled."""
        engine = self.site.engine
        words = engine.command if self.kv is None else (*engine.command, *engine.kv_args)
        return fill(words, self.names_of(instance), where="engine.command")

    def environment(self, instance: Instance) -> dict[str, str]:
        """Everything the site, the scenario, the arm and the instance set for an engine."""
        engine, arm = self.site.engine, self.arm
        kind = {} if arm.kv == "none" else engine.kv_env.get(arm.kv, {})
        words = engine.env | kind | self.plan.env | arm.env | instance.env
        if arm.kv == "none":
            words = {key: word for key, word in words.items() if not key.startswith("LMCACHE_")}
        names = self.names_of(instance)
        filled = {key: fill_one(word, names, where=f"env {key}") for key, word in words.items()}
        extra = {} if arm.kv == "none" else self.plan.extra_config | arm.extra_config
        return engines.engine_env(filled | self.env, extra)

    def names_of(self, instance: Instance) -> dict[str, str]:
        """What `{names}` stand for in one instance's command."""
        own = {"port": str(instance.port), "instance": instance.name}
        kv = {"kv_dir": "" if self.kv is None else self.kv.path}
        return self.names | instance.vars | own | kv

    def instances(self) -> list[Instance]:
        """The instances of the plan, in its order."""
        return [self.site.instance(name) for name in self.plan.instances]


@dataclass(slots=True, kw_only=True)
class Lifetime:
    """The engines of one arm in one block, and what they have stored so far."""

    setting: Setting
    engines: list[RunningEngine] = field(default_factory=list)
    stored: set[int] = field(default_factory=set)  # session numbers that are on the device
    first_run_id: str | None = None  # the run whose rows the later ones share
    undo_kv: int | None = None
    control: Stored | None = None  # the files of the negative control, where this life ends a block

    @property
    def prelude(self) -> Path:
        """Where the shared rows wait for the next cell."""
        return self.setting.home / "prelude"

    def start(self, recording: Recording) -> None:
        """Make the pool and start every engine; the caller waits until they are ready."""
        setting = self.setting
        setting.home.mkdir(parents=True)
        if setting.kv is not None:
            remove = setting.kv.words("remove")
            self.undo_kv = setting.supervisor.on_exit(remove, f"KV directory {setting.kv.path}")
            setting.kv.make()
        for instance in setting.instances():
            log = setting.home / f"server-{instance.name}.log"
            log.touch()
            self.show_log(recording, log)
            self.engines.append(
                engines.launch(
                    setting.supervisor,
                    setting.site,
                    instance,
                    setting.environment(instance),
                    setting.command(instance),
                    log,
                )
            )

    def show_logs(self, recording: Recording) -> None:
        """Let a run hold the engines' logs: the same files, as they grow."""
        for engine in self.engines:
            self.show_log(recording, engine.log_path)

    @staticmethod
    def show_log(recording: Recording, log: Path) -> None:
        """One log under its name in raw/; a copy where the file system has no hard links."""
        target = recording.raw(log.name)
        target.unlink(missing_ok=True)
        try:
            os.link(log, target)
        except OSError:
            shutil.copyfile(log, target)

    def require_alive(self) -> None:
        """Raise EngineError when an engine has ended."""
        for engine in self.engines:
            engines.require_alive(engine)

    def keep_prelude(self, recording: Recording) -> None:
        """Put the rows recorded so far aside: they belong to every later run of this life too."""
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
        """End every engine; returns the names of those that ran."""
        setting, stopped = self.setting, []
        while self.engines:
            engine = self.engines[-1]
            engines.stop(setting.supervisor, setting.site, engine)
            stopped.append(engine.instance)
            self.engines.pop()
        return stopped

    def close(self) -> None:
        """End what still runs and remove the pool; every run of the life is sealed by now."""
        self.stop_engines()
        if self.undo_kv is not None:
            self.setting.supervisor.undo(self.undo_kv)
            self.undo_kv = None
        remove_tree(self.setting.home)


def facts(life: Lifetime) -> dict[str, Any]:
    """What a run says of the life it belongs to."""
    return {"life": life.setting.home.name, "shared_from": life.first_run_id}
