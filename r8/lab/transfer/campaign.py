"""The seam by which a scenario without a KV engine runs: the life of a work run.

A scenario of `[works.NAME]` in the site file names a job (`r8.lab.transfer.jobs.Job`: loading,
switching,
checkpoint). A cell is one arm with one number of workers in one block, and a life of its own:

    ground -> make the files -> workers start and wait -> probes start
           -> the job's phases (durable, drop, cold, measure, warm..) -> probes stop -> finalise

The workers (`r8.lab.transfer.worker_pool`) are processes that wait at one barrier; what they say
becomes events
named `work`, one a worker and phase, which the view `work` of data/queries/metrics.sql reads. The
run directory, its journals, probes, residency and manifest are those of every other run, so the
certificate's rules apply to it; a rule that asks about a KV engine says that it does not apply.

A new job: a module with a `JOB`, its name in `WorkPlan.job` and in `JOBS` below, and rules that
read its rows.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError, R8Error, SiteError
from r8.evidence.finalise import finalise, recover
from r8.lab.campaign import provenance
from r8.lab.campaign.base import CampaignBase
from r8.lab.campaign.engine_campaign import open_campaign, progress_of
from r8.lab.campaign.testbed import prepare
from r8.lab.instruments import probes as instruments
from r8.lab.instruments.recording import Recording
from r8.lab.machine.hosts import KvDirectory
from r8.lab.site import matrix
from r8.lab.transfer import checkpointing, loading, switching
from r8.lab.transfer.stage import ALL_FILES, WorkStage, expect
from r8.lab.transfer.worker_pool import start_pool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from r8.lab.campaign.engine_campaign import Campaign
    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.file import Host, LoadedSite
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place
    from r8.lab.site.transfer import WorkPlan
    from r8.lab.transfer.jobs import Job
    from r8.lab.transfer.stage import Files
    from r8.model import Run

# A busy machine takes a while to start a Python.
PROBE_START_S = 60.0
PROBE_LOOK_S = 0.1

JOBS: dict[str, Job] = {
    "load": loading.JOB,
    "switch": switching.JOB,
    "checkpoint": checkpointing.JOB,
}


@dataclass(slots=True, kw_only=True)
class WorkCampaign(CampaignBase):
    """A work scenario; for tests it is what `Campaign` is."""

    @property
    def plan(self) -> WorkPlan:
        """What this site gives the scenario to do."""
        return self.loaded.site.works[self.scenario]

    def run(self, place: Place) -> Path:
        """Run one cell; returns its finished directory. A finished cell is never run again.

        Raises:
            R8Error: the cell failed; what was recorded until then is kept as an incomplete run.

        """
        done = self.finished(place)
        if done is not None:
            return done
        stage = self._begin(place, self.begin(place))
        try:
            self._measure(stage)
        except (R8Error, OSError):
            stage.recording.close()
            recover(stage.recording.directory)
            raise
        stage.recording.event("run_end")
        stage.recording.close()
        path = finalise(stage.recording.directory, complete=True)
        self.progress.finish()
        return path

    def _begin(self, place: Place, run_id: str) -> WorkStage:
        plan, arm = self.plan, self.plan.arm[place.arm]
        host = self._host(arm.device)
        root = self.testbed.kv_root(arm.device)
        directory = KvDirectory(
            host=host, path=arm.files_dir or str(root / f"r8-{run_id}"), suffixes=ALL_FILES
        )
        recording = Recording.begin(
            self.runs_root,
            self._describe(place, run_id, directory.path),
            self.loaded.text,
            **self.outline(plan.concurrency),
        )
        recording.event("cell_begin", job=plan.job, tool=arm.tool, index=place.index)
        recording.event("ground", **self.testbed.facts(arm))
        return WorkStage(
            supervisor=self.supervisor,
            testbed=self.testbed,
            plan=plan,
            arm=arm,
            place=place,
            recording=recording,
            directory=directory,
            say=self.progress.say,
        )

    def _describe(self, place: Place, run_id: str, directory: str) -> Run:
        moves = JOBS[self.plan.job].moves
        return provenance.describe_work(
            self.loaded,
            self.scenario,
            self.testbed,
            place,
            ids=(self.matrix.campaign_id, run_id),
            directory=directory,
            seed=self.matrix.seed + place.block,
            moves=moves,
        )

    def _host(self, device: str) -> Host:
        """Workers, clocks and probes of a work run are this host's."""
        host = self.loaded.site.host(self.loaded.site.device(device).host)
        if host.exec_prefix:
            raise SiteError(
                f"work scenarios run on the host of their device, {host.name} is behind a prefix",
                where=str(self.loaded.path),
                next_step=f"start R8 on {host.name} with a site file that names no prefix for it",
            )
        return host

    def _measure(self, stage: WorkStage) -> None:
        job, recording, arm = JOBS[self.plan.job], stage.recording, stage.arm
        instruments.environment(recording, "begin", stage.directory.host)
        # A job that writes measures what the device takes, in its own phases.
        reads = self.testbed.calibration(arm, stage.place.block) if job.moves == "read" else ()
        for row in reads:
            recording.append("calibration", row)
        undo = None
        if arm.files_dir is None:
            # Noted before the act: what is half made is removed too.
            undo = self.supervisor.on_exit(stage.directory.words("remove"), "files of a work run")
            stage.directory.make()
        try:
            self._work(stage, job)
        finally:
            if undo is not None:
                self.supervisor.undo(undo)
        instruments.environment(recording, "end", stage.directory.host)

    def _work(self, stage: WorkStage, job: Job) -> None:
        recording = stage.recording
        recording.event("populate_begin")
        files = job.make(stage)
        expect(stage, files)
        recording.event("populate_end", files=files.files, bytes=files.total_bytes, made=files.made)
        stage.say("starting workers")
        stage.pool = start_pool(self.supervisor, job.specs(stage), recording.raw(""))
        try:
            for one in stage.pool.workers:
                recording.event("worker_started", worker=one.name, pid=one.pid, **_plain(one.facts))
            self._probed(stage, job, files)
        finally:
            stage.pool.stop()

    def _probed(self, stage: WorkStage, job: Job, files: Files) -> None:
        pids = {} if stage.pool is None else stage.pool.pids
        device = self.loaded.site.device(stage.arm.device)
        watched = tuple(
            replace(one, instances=tuple(pids)) for one in self.testbed.watched(stage.arm, ())
        )
        probes = instruments.start_probes(
            self.supervisor,
            stage.recording,
            watched,
            {
                "engines": pids,
                "metrics": {},
                "rates_hz": instruments.PROBE_RATES_HZ | {"nic": instruments.NIC_RATE_HZ},
                "nics": list(device.nics),
                "nfs_dirs": self._unwitnessed(stage),
                "iostat": True,
            },
        )
        try:
            _await_samples(stage)
            job.phases(stage, files)
        finally:
            instruments.stop_probes(self.supervisor, stage.recording, probes)

    def _unwitnessed(self, stage: WorkStage) -> list[str]:
        """Where the files lie when no block device of this host holds them: an NFS mount, say."""
        return [] if self.testbed.block_device(stage.arm.device) else [stage.directory.path]


def _await_samples(stage: WorkStage) -> None:
    """Wait until the probes write: what is looked at before that has no witness.

    Raises:
        InstrumentError: nothing came.

    """
    journal = stage.recording.directory / "probes.jsonl"
    deadline = time.monotonic() + PROBE_START_S
    while not (journal.is_file() and journal.stat().st_size):
        if time.monotonic() > deadline:
            raise InstrumentError(
                f"no sample of the probes within {PROBE_START_S:g} s",
                where=str(journal),
                next_step="read raw/probes.log of the run",
            )
        time.sleep(PROBE_LOOK_S)


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    """What a worker says of itself, without the words of the protocol."""
    return {key: value for key, value in facts.items() if key not in {"ready", "pid"}}


@contextlib.contextmanager
def open_work(
    loaded: LoadedSite,
    plan_of: Matrix,
    cells: tuple[Place, ...],
    supervisor: Supervisor,
    *,
    runs_root: Path,
) -> Iterator[WorkCampaign]:
    """Prepare the ground and hand out the campaign; what was built is taken down afterwards."""
    folder = runs_root / plan_of.scenario
    progress = progress_of(plan_of, folder)
    progress.start("ground")
    with prepare(loaded, plan_of.scenario, supervisor, progress.say, plan_of.arms) as testbed:
        matrix.write_matrix(folder, plan_of)
        try:
            yield WorkCampaign(
                loaded=loaded,
                scenario=plan_of.scenario,
                matrix=plan_of,
                places=cells,
                runs_root=runs_root,
                supervisor=supervisor,
                testbed=testbed,
                progress=progress,
            )
        finally:
            progress.end()


def open_scenario(
    loaded: LoadedSite,
    plan_of: Matrix,
    cells: tuple[Place, ...],
    supervisor: Supervisor,
    *,
    runs_root: Path,
) -> contextlib.AbstractContextManager[Campaign | WorkCampaign]:
    """A campaign of either kind, as the site file has the scenario."""
    opener = open_work if plan_of.scenario in loaded.site.works else open_campaign
    return opener(loaded, plan_of, cells, supervisor, runs_root=runs_root)
