"""Scenarios without a KV engine: devices, room for the files, tools, and the commands of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.instruments.probes import probes_argv
from r8.lab.machine import commands
from r8.lab.machine.commands import typed
from r8.lab.machine.hosts import engine_words
from r8.lab.preflight.requirement import Requirement
from r8.lab.preflight.scenario import Scenario
from r8.lab.site.file import fill
from r8.lab.transfer.engine_loading import engine_fault, engines_at_once, is_engine
from r8.lab.transfer.jobs import job_of
from r8.lab.transfer.model_files import SUFFIX, model_directories
from r8.lab.transfer.stage import transfer_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from r8.lab.site.arms import TransferArm, TransferPlan
    from r8.lab.site.machines import Rehearsal
    from r8.lab.site.plan import Place
    from r8.lab.testbed import Testbed
    from r8.lab.transfer.stage import Job

# A Python with torch in it.
WORKER_BYTES = 400_000_000
IMPORTS = "import torch, safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferScenario(Scenario):
    """A scenario of `[transfers.NAME]`."""

    @property
    def plan(self) -> TransferPlan:
        """What this site gives the scenario to do."""
        return self.site.transfers[self.name]

    @property
    def job(self) -> Job:
        """What its cells do."""
        return job_of(self.plan.job)

    @property
    def calibrated(self) -> bool:
        """A job that writes measures what the device takes, inside its cells."""
        return self.job.moves == "read"

    def starts(self) -> int:
        """One a cell."""
        return sum(len(self.plan.levels_of(arm)) for arm in self.plan.arms)

    def pools(self) -> dict[str, int]:
        """Bytes of the largest cell on each device; what the site names is there already."""
        pools: dict[str, int] = {}
        for name in self.plan.every_arm:
            arm = self.plan.arm[name]
            size = 0 if arm.files_dir else self.job.device_bytes(self.plan, name)
            pools[arm.device] = max(size, pools.get(arm.device, 0))
        return pools

    def memory_bytes(self, rehearsal: Rehearsal) -> int:
        """Images of the devices, and what the workers load."""
        images = sum(shape.image_bytes for shape in rehearsal.shapes_of(self.name))
        workers = max(self.plan.concurrency)
        # A loader holds its model and, as long as it reads, the pages it comes from.
        return images + workers * (2 * self.plan.worker_bytes + WORKER_BYTES)

    def of_plan(self) -> Iterator[Requirement]:
        """Workers, clocks and probes are those of this host; engines can be given a model."""
        for device in dict.fromkeys(arm.device for arm in self.plan.arm.values()):
            host = self.site.host(self.site.device(device).host)
            if host.exec_prefix:
                step = f"start R8 on {host.name}, with a site file that gives it no prefix"
                saw = f"{host.name} is behind a prefix"
                yield Requirement(name=f"host of {device}", saw=saw, next_step=step)
        for name, arm in self.plan.arm.items():
            if is_engine(arm):
                yield self._engines(name, arm)

    def _engines(self, name: str, arm: TransferArm) -> Requirement:
        """Whether the engine's command can be given a model, and often enough."""
        at_once = engines_at_once(self.plan, name)
        fault = engine_fault(self.site, at_once)
        if fault is None and self.site.rehearsal is None and arm.files_dir is None:
            fault = "an engine loads real models only, and files_dir names none"
        saw = fault or f"{at_once} at once of {len(self.site.instances)} instances"
        step = "correct [engine], [[instances]] or the arm's files_dir" if fault else ""
        return Requirement(name=f"engines of {name}", saw=saw, next_step=step)

    def of_software(self) -> Iterator[Requirement]:
        """The loader's libraries, and models where the site names them."""
        python = fill(self.site.engine.python, self.site.vars, where="engine.python")
        done = commands.run(engine_words(self.site, [*python, "-c", IMPORTS]))
        saw = "torch and safetensors import" if done.ok else f"{IMPORTS}: {done.error}"
        step = "" if done.ok else "install both where engine.python runs"
        yield Requirement(name="loader", saw=saw, next_step=step)
        for name in self.plan.every_arm:
            if self.plan.arm[name].files_dir is not None:
                yield self._models(name, Path(self.plan.arm[name].files_dir or ""))

    def _models(self, name: str, root: Path) -> Requirement:
        found, workers = model_directories(root), max(self.plan.levels_of(name))
        saw = f"{len(found)} directories with {SUFFIX} files below {root}, {workers} workers"
        step = "give each worker a model directory of its own there, no links"
        step = "" if len(found) >= workers else step
        return Requirement(name=f"models of {name}", saw=saw, next_step=step)

    def commands(
        self,
        testbed: Testbed,
        ids: Mapping[Place, str],
        block: Sequence[Place],  # noqa: ARG002 - no cell of a transfer depends on another
        folder: Path,
    ) -> Iterator[str]:
        """Each cell: files, workers, probes, the job's phases."""
        for place, run_id in ids.items():
            transfer = transfer_of(testbed, self.name, place, run_id=run_id, seed=0)
            arm, partial = transfer.arm, folder / f"{run_id}.partial"
            made = arm.files_dir is None
            said = self.job.files_said(transfer) if made else "as they are, a directory a worker"
            yield ""
            what = f"job {self.plan.job}, tool {arm.tool}"
            yield f"# cell {place.name}: {place.concurrency} workers, {what}"
            yield f"# files in {transfer.directory.path}: {said}"
            if made:
                yield typed(transfer.directory.words("make"))
            for number, worker in enumerate(transfer.workers):
                answers = str(partial / "raw" / f"worker-{worker}.jsonl")
                argv = transfer.worker_argv(number, self.job.tool(arm), "--answers", answers)
                yield typed(argv, "&")
            yield typed(probes_argv(partial), "&")
            yield from self.job.commands(transfer, partial)
            if made:
                yield typed(transfer.directory.words("remove"))
