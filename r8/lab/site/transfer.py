"""The part of a site file about scenarios without a KV engine: `[works.NAME]` and its arms.

A work scenario moves files and no KV: workers of a known number load or write files of a known
size. Its arms differ in the device the files lie on and in the tool that moves them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from r8.lab.site.numbers import Bytes, Count, Estimate, Levels, Names, Positive, Seconds
from r8.units import BYTES_PER_MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# Work scenarios have no chunks: a calibration reads files of this size.
CALIBRATION_FILE_BYTES = 16 * BYTES_PER_MIB

# What a job can be told to move its bytes with. A name that is not here would be measured with
# something else and reported under that name.
TOOLS = {
    "load": {"safetensors", "engine"},
    "switch": {"safetensors", "engine"},
    "checkpoint": {"full-each", "sharded"},
}


class WorkArm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs between arms: the device, and the tool that moves the bytes."""

    device: str
    tool: str  # one of TOOLS of the job
    env: dict[str, str] = {}  # added to the workers' environment
    # A directory of the device that holds one directory a worker already; None: made on the spot.
    files_dir: str | None = None
    settings: dict[str, float] = {}  # of the plan's, where this arm has its own


class WorkPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much one work scenario moves on this site."""

    job: Literal["load", "switch", "checkpoint"]
    arms: Names
    other_arms: tuple[str, ...] = ()  # run too with `--arms all`
    arm: dict[str, WorkArm]
    concurrency: Levels  # workers: loaders, switches, ranks
    levels: dict[str, Levels] = {}  # of arms that are not run at every level
    worker_bytes: Bytes  # each worker moves so many, where files are made on the spot
    shard_bytes: Bytes  # largest file
    accelerator: str = "cpu"  # torch device of a worker; {worker} is its number: `cuda:{worker}`
    time_scale: Positive = 1.0  # modelled seconds per second here; 1 where nothing is modelled
    blocks: Count = 5
    timeout_s: Seconds = 1800.0  # of one phase
    start_estimate_s: Estimate = 20.0  # making files and starting workers
    cell_estimate_s: Estimate = 30.0
    # What a job takes beyond this: numbers with their unit in the name.
    settings: dict[str, float] = {}

    @property
    def file_bytes(self) -> int:
        """Size of the files a calibration reads one after another."""
        return CALIBRATION_FILE_BYTES


def work_names(
    works: Mapping[str, WorkPlan], devices: set[str]
) -> Iterator[tuple[str, str, set[str]]]:
    """Every name the work tables use, with where it stands and what is defined."""
    for name, plan in works.items():
        arms = set(plan.arm)
        for key, arm in plan.arm.items():
            yield f"works.{name}.arm.{key}.device", arm.device, devices
            yield f"works.{name}.arm.{key}.tool", arm.tool, TOOLS[plan.job]
        for key in (*plan.arms, *plan.other_arms, *plan.levels):
            yield f"works.{name}.arms", key, arms
