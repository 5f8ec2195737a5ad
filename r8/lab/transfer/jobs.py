"""The kinds of work there are, and what each brings to the seam of `r8.lab.transfer.campaign`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.lab.transfer.stage import Files, WorkStage
    from r8.lab.transfer.worker_pool import WorkerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One kind of work.

    `moves` is what its measured window does to the device, "read" or "write". `make` puts the files
    on the device that must be there before the workers start (none: a write run). `specs` are the
    workers, in the order of `stage.workers`. `phases` is everything between the start of the probes
    and their end: it must leave the events `durable`, `drop_begin`, `drop_end`, `measure_begin` and
    `measure_end`, in the order the job's rules ask for.
    """

    moves: str
    make: Callable[[WorkStage], Files]
    specs: Callable[[WorkStage], list[WorkerSpec]]
    phases: Callable[[WorkStage, Files], None]
