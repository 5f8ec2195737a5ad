"""Every job there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.lab.transfer import checkpointing, loading, switching

if TYPE_CHECKING:
    from r8.lab.transfer.stage import Job

JOBS: tuple[Job, ...] = (loading.JOB, switching.JOB, checkpointing.JOB)


def job_of(name: str) -> Job:
    """The job of that name in the site file."""
    return next(job for job in JOBS if job.name == name)
