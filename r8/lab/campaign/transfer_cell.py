"""Cells without a KV engine: workers of a known number move files of a known size.

A scenario of `[transfers.NAME]` in the site file names a job (`r8.lab.transfer.jobs`). A cell is
one arm with one number of workers in one block:

    make the files -> workers start and wait -> probes start
        -> the job's phases (durable, drop, cold, measure, warm..) -> probes stop -> files removed

The workers (`r8.lab.transfer.worker_pool`) are processes that wait at one barrier; what they say
becomes events named `work`, one a worker and phase. The run directory, its journals, probes,
residency and manifest are those of every other run, so the certificate's rules apply to it; a rule
that asks about a KV engine says that it does not apply.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError, SiteError
from r8.lab.campaign import provenance
from r8.lab.campaign.kind import Cell, CellKind
from r8.lab.instruments import probes
from r8.lab.transfer.jobs import job_of
from r8.lab.transfer.stage import expect, transfer_of
from r8.lab.transfer.worker_pool import start_pool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from r8.lab.instruments.recording import Recording
    from r8.lab.site.file import LoadedSite, Site
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place
    from r8.lab.transfer.stage import Files, Job, Stage, Transfer

# A busy machine takes a while to start a Python.
PROBE_START_S = 60.0
PROBE_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferCell(Cell):
    """One cell of a job."""

    job: Job
    transfer: Transfer

    def begin(self, recording: Recording) -> dict[str, Any]:  # noqa: ARG002 - nothing runs yet
        """What the run says of its job."""
        transfer = self.transfer
        return {"job": self.job.name, "tool": transfer.arm.tool, "index": transfer.place.index}

    def measure(self, recording: Recording) -> None:
        """Every phase; the files that were made are removed afterwards."""
        supervisor, directory = self.transfer.testbed.supervisor, self.transfer.directory
        if self.transfer.arm.files_dir is not None:
            self._with_files(recording)
            return
        undo = directory.create(supervisor, "files of a transfer")
        try:
            self._with_files(recording)
        finally:
            supervisor.undo(undo)

    def _with_files(self, recording: Recording) -> None:
        job, transfer = self.job, self.transfer
        recording.event("populate_begin")
        files = job.make(transfer)
        expect(recording, files)
        recording.event("populate_end", files=files.files, bytes=files.total_bytes, made=files.made)
        transfer.testbed.say("starting workers")
        specs = transfer.worker_specs(job.tool(transfer.arm))
        pool = start_pool(transfer.testbed.supervisor, specs, recording.raw(""))
        try:
            for one in pool.workers:
                recording.event(
                    "worker_started",
                    worker=one.name,
                    host=transfer.directory.host.name,
                    pid=one.pid,
                    **one.said,
                )
            self._probed(transfer.begun(recording, pool), files)
        finally:
            pool.stop()

    def _probed(self, stage: Stage, files: Files) -> None:
        testbed, device = stage.testbed, self.device
        pids = stage.pool.pids
        watched = tuple(replace(one, instances=tuple(pids)) for one in testbed.watched(device))
        plan = probes.PROBE_PLAN | {
            "engines": pids,
            "metrics": {},
            "nics": list(testbed.site.device(device).nics),
            # Where no block device of this host holds the files: an NFS mount, say.
            "nfs_dirs": [] if testbed.block_names[device] else [stage.directory.path],
        }
        running = probes.start_probes(testbed.supervisor, stage.recording, watched, plan)
        try:
            _await_samples(stage.recording)
            self.job.phases(stage, files)
        finally:
            probes.stop_probes(testbed.supervisor, stage.recording, running)


def _await_samples(recording: Recording) -> None:
    """Wait until the probes write: what happens before that is not recorded.

    Raises:
        InstrumentError: nothing came.

    """
    journal = recording.directory / "probes.jsonl"
    deadline = time.monotonic() + PROBE_START_S
    while not (journal.is_file() and journal.stat().st_size):
        if time.monotonic() > deadline:
            raise InstrumentError(
                f"no sample of the probes within {PROBE_START_S:g} s",
                where=str(journal),
                next_step="read raw/probes.log of the run",
            )
        time.sleep(PROBE_LOOK_S)


@dataclass(slots=True, kw_only=True)
class TransferCells(CellKind):
    """The cells of a scenario without a KV engine; they share nothing."""

    @staticmethod
    def plans(site: Site) -> Mapping[str, object]:
        """Scenarios without a KV engine."""
        return site.transfers

    @staticmethod
    def require(loaded: LoadedSite, matrix: Matrix) -> None:
        """Workers, clocks and probes of a transfer are those of this host."""
        site = loaded.site
        for arm in matrix.arms:
            host = site.host(site.device(site.transfers[matrix.scenario].arm[arm].device).host)
            if host.exec_prefix:
                raise SiteError(
                    f"transfers run on the host of their device, and {host.name} is behind a "
                    "prefix",
                    where=str(loaded.path),
                    next_step=f"start R8 on {host.name} with a site file that gives it no prefix",
                )

    def cell(self, place: Place, run_id: str) -> TransferCell:
        """The cell, with what its device gives by itself where the job reads."""
        scenario, seed = self.matrix.scenario, self.matrix.seed + place.block
        transfer = transfer_of(self.testbed, scenario, place, run_id=run_id, seed=seed)
        job, device = job_of(transfer.plan.job), transfer.arm.device
        return TransferCell(
            run=provenance.describe_transfer(self.loaded, self.matrix, transfer, run_id, job.moves),
            device=device,
            host=transfer.directory.host,
            # A job that writes measures what the device takes, in its own phases.
            calibration=self.testbed.calibration(device, place.block)
            if job.moves == "read"
            else (),
            job=job,
            transfer=transfer,
        )
