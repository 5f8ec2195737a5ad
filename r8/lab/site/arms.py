"""The tables of a site file about what is compared: arms, and the scenarios that run them.

An arm is a role, a device and a treatment. Its name is the site's own: nothing asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from r8.lab.site.machines import ALIGNMENT_BYTES
from r8.lab.site.values import (
    ONCE,
    SOME,
    ArmName,
    Bytes,
    Count,
    DeviceName,
    Estimate,
    Fault,
    Folder,
    InstanceName,
    Levels,
    Names,
    Natural,
    Positive,
    Seconds,
    Setting,
    Table,
)
from r8.roles import CONTRACTS, KvTier, Reads, Role, SessionsOf
from r8.units import BYTES_PER_MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Treatment(Table, frozen=True, kw_only=True):
    """What is done to the software of an arm; arms of one engine lifetime share it."""

    patch: Literal["patched", "unpatched"] | None = None  # None: only where there is no KV tier
    lmcache: str | None = None  # version of an overlay; None: what the engine has installed
    kv: KvTier | None = None  # None: the first tier its role may have
    extra_config: dict[str, Setting] = {}  # of LMCache
    env: dict[str, str] = {}  # of the engine


class Arm(Table, frozen=True, kw_only=True):
    """What differs between the arms of an engine scenario."""

    role: Role
    device: DeviceName
    treatment: Treatment = Treatment()
    # How its reader brings chunk files in, which decides the calibration that predicts it; None:
    # nothing predicts it.
    reads: Reads | None = None
    # Arms of one engine lifetime share engine start and populate; None: a lifetime of its own.
    engine_lifetime: str | None = None
    sessions_of: SessionsOf = "itself"  # which sessions an instance measures
    file_header_bytes: Natural = 0  # what the tier writes before the KV bytes of each file
    instances: Annotated[tuple[InstanceName, ...], ONCE] = ()  # of the plan's; empty: all of them

    @property
    def kv(self) -> Literal["disk", "fs", "none"]:
        """The KV tier of its engines."""
        tiers = CONTRACTS[self.role].tiers
        return (self.treatment.kv or tiers[0]) if tiers else "none"

    @property
    def is_patched(self) -> bool:
        """Whether its LMCache carries the parallel-read patch."""
        return self.treatment.patch == "patched"

    def faults(self) -> Iterator[Fault]:
        """What the contract of the role forbids or asks for."""
        contract, treatment = CONTRACTS[self.role], self.treatment
        if contract.tiers and treatment.patch is None:
            step = 'write treatment = { patch = "patched" } or { patch = "unpatched" }'
            yield Fault("treatment.patch", "is missing", step)
        if contract.tiers and self.kv not in contract.tiers:
            what = f'"{self.kv}" is no KV tier of the role {self.role}'
            yield Fault("treatment.kv", what, f"write one of: {', '.join(contract.tiers)}")
        if not contract.tiers and (treatment.kv or treatment.patch or self.reads):
            what = f"gives kv, patch or reads to the role {self.role}, which has no KV tier"
            yield Fault("treatment", what, "leave them out, or give the arm another role")
        if self.sessions_of not in contract.sessions_of:
            what = f'"{self.sessions_of}" is not what the role {self.role} measures'
            yield Fault("sessions_of", what, f"write one of: {', '.join(contract.sessions_of)}")


class TransferArm(Table, frozen=True, kw_only=True):
    """What differs between the arms of a transfer scenario: the device, and the tool."""

    role: Role
    device: DeviceName
    tool: str  # one of the job's, see JOBS
    env: dict[str, str] = {}  # added to the workers' environment
    # A directory of the device that holds one directory a worker already; None: made on the spot.
    files_dir: Folder | None = None
    settings: dict[str, float] = {}  # of the plan's, where this arm has its own


class _AnyPlan(Table, frozen=True, kw_only=True):
    """What both kinds of scenario say."""

    arms: Names
    other_arms: Annotated[tuple[str, ...], ONCE] = ()  # run too with `--arms all`
    concurrency: Levels  # of the machine: requests or workers of all instances together
    levels: dict[str, Levels] = {}  # of arms that are not run at every level
    blocks: Count = 5

    @property
    def every_arm(self) -> tuple[str, ...]:
        """Those run by default, then those of `--arms all`."""
        return (*self.arms, *self.other_arms)

    def levels_of(self, arm: str) -> tuple[int, ...]:
        """The levels one arm is run at, lowest first."""
        return tuple(sorted(self.levels.get(arm, self.concurrency)))

    def faults(self) -> Iterator[Fault]:
        """Faults: an arm in both lists, and levels of an arm that is in neither."""
        for arm in sorted({*self.arms} & {*self.other_arms}):
            yield Fault("other_arms", f"names '{arm}' twice", "name each once")
        for arm in sorted(self.levels.keys() - {*self.every_arm}):
            known = ", ".join(self.every_arm)
            yield Fault("levels", f"names '{arm}', which is no arm here", f"use one of: {known}")


class Plan(_AnyPlan, frozen=True, kw_only=True):
    """How much load one engine scenario puts on this site."""

    arms: Annotated[tuple[ArmName, ...], SOME]
    other_arms: Annotated[tuple[ArmName, ...], ONCE] = ()
    instances: Annotated[tuple[InstanceName, ...], SOME]
    prompt_tokens: Count
    output_tokens: Count
    flush_sessions: Natural
    chunk_tokens: Count
    bytes_per_token: Count
    cpu_tier_bytes: Count
    vocab: tuple[Natural, Count]  # the first token id, and the one after the last
    model_name: str
    sessions: Count | None = None  # measured in a cell; None: one burst, as many as the level
    ranks: Count = 1  # files a chunk is spread over: one a tensor-parallel rank
    env: dict[str, str] = {}  # settings of the engine that this scenario changes
    cell_estimate_s: Estimate = 120.0  # for the ETA, until cells have been finished
    start_estimate_s: Estimate = 60.0  # engine start, populate and flush of one arm
    populate_concurrency: Count = 1
    endpoint: Literal["completions", "chat"] = "completions"
    # Whose keys beyond OpenAI's the server takes, as load_client/workload/profiles.py says.
    profile: Literal["vllm", "sglang", "trtllm", "nim", "openai"] = "vllm"
    request_timeout_s: Seconds = 1800.0
    extra_config: dict[str, Setting] = {}

    @property
    def file_bytes(self) -> int:
        """Size of one chunk file, rounded up to what direct writes can write."""
        size = -(-self.chunk_tokens * self.bytes_per_token // self.ranks)
        return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES

    def on(self, arm: Arm) -> Plan:
        """The plan as one arm runs it: on the instances the arm names, or on all of them."""
        return msgspec.structs.replace(self, instances=arm.instances) if arm.instances else self

    def faults(self) -> Iterator[Fault]:
        """The faults of every plan, and a vocabulary that holds no token."""
        yield from super().faults()
        if self.vocab[0] >= self.vocab[1]:
            what = f"runs from {self.vocab[0]} to {self.vocab[1]}"
            yield Fault("vocab", what, "write the first token id and the one after the last")


# Transfers have no chunks: a calibration reads files of this size.
CALIBRATION_FILE_BYTES = 16 * BYTES_PER_MIB
ENGINE_TOOL = "engine"  # its workers start the site's engine on their models


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetting:
    """A number that a job takes beyond its plan; its unit is the end of its name."""

    name: str
    what: str
    example: str = ""  # what to write where it is missing; empty: the job has a default
    multiple_of: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContract:
    """What a site file may say of one job: nobody would read another name."""

    tools: tuple[str, ...]  # another would be measured as one of these, under its own name
    settings: tuple[JobSetting, ...]


_ENGINE_MEMORY = JobSetting(name="engine_memory_bytes", what="the memory one engine may take")
_PERIOD = JobSetting(name="period_s", what="the seconds between two switches", example="180.0")
_CEILING = JobSetting(name="ceiling_bytes", what="the bytes that measure the write ceiling")
_TENSOR = JobSetting(
    name="tensor_bytes", what="the bytes of one tensor, of half-precision weights", multiple_of=2
)
JOBS = {
    "load": JobContract(tools=("safetensors", ENGINE_TOOL), settings=(_ENGINE_MEMORY,)),
    "switch": JobContract(tools=("safetensors", ENGINE_TOOL), settings=(_ENGINE_MEMORY, _PERIOD)),
    "checkpoint": JobContract(tools=("full-each", "sharded"), settings=(_CEILING, _TENSOR)),
}


class TransferPlan(_AnyPlan, frozen=True, kw_only=True):
    """How much one transfer scenario moves: workers load or write files, and there is no KV."""

    job: Literal["load", "switch", "checkpoint"]
    arm: dict[str, TransferArm]
    worker_bytes: Bytes  # each worker moves so many, where files are made on the spot
    shard_bytes: Bytes  # largest file
    accelerator: str = "cpu"  # torch device of a worker; {worker} is its number: `cuda:{worker}`
    time_scale: Positive = 1.0  # modelled seconds per second here; 1 where nothing is modelled
    timeout_s: Seconds = 1800.0  # of one phase
    start_estimate_s: Estimate = 20.0  # making files and starting workers
    cell_estimate_s: Estimate = 30.0
    # What a job takes beyond this: numbers with their unit in the name.
    settings: dict[str, float] = {}

    @property
    def file_bytes(self) -> int:
        """Size of the files a calibration reads one after another."""
        return CALIBRATION_FILE_BYTES

    def faults(self) -> Iterator[Fault]:
        """The faults of every plan, and arms, tools and settings that the job does not know."""
        yield from super().faults()
        for name in sorted({*self.every_arm} - self.arm.keys()):
            known = f"use one of: {', '.join(self.arm)}"
            yield Fault("arms", f"names '{name}', which has no table .arm.{name}", known)
        try:
            self.accelerator.format(worker=0)
        except (KeyError, IndexError, ValueError) as error:
            what = f"'{self.accelerator}' uses a name that is not defined: {error}"
            yield Fault("accelerator", what, "only {worker} is filled in: write cuda:{worker}")
        tools = JOBS[self.job].tools
        for name, arm in self.arm.items():
            if arm.tool not in tools:
                what = f"'{arm.tool}' is no tool of job {self.job}"
                yield Fault(f"arm.{name}.tool", what, f"use one of: {', '.join(tools)}")
            yield from self._settings(f"arm.{name}.settings", self.settings | arm.settings)

    def _settings(self, where: str, given: Mapping[str, float]) -> Iterator[Fault]:
        known = {one.name: one for one in JOBS[self.job].settings}
        for name in sorted(given.keys() - known.keys()):
            what = f"names '{name}', which job {self.job} does not read"
            yield Fault(where, what, f"use one of: {', '.join(known)}")
        for name, one in known.items():
            value = given.get(name)
            if value is None:
                if one.example:
                    yield Fault(where, f"has no {name}", f"give {one.what}: {name} = {one.example}")
            elif value <= 0:
                yield Fault(where, f"{name} = {value:g} is not above 0", f"give {one.what}")
            elif value % one.multiple_of:
                what = f"{name} = {value:g} is not a multiple of {one.multiple_of}"
                yield Fault(where, what, f"give {one.what}")
