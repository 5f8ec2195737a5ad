"""The nouns of R8: frozen, slotted, keyword-only records that check themselves at birth.

Instants are integers of nanoseconds on the monotonic clock of the host that took them; sizes are
integers of bytes. Absent is `None`, never 0. No record holds a duration: only metrics subtract.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal

from r8.message import Check, Message, answer_of_all
from r8.roles import KvTier, Reads, Role

if TYPE_CHECKING:
    from r8.message import Answer

# Of every id and name: no path, shell or join can take one for something else.
NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")

INT64_MAX = 2**63 - 1
# Blocks of a campaign, and arms of a block: campaigns of a month have dozens. What goes over all
# blocks up to a run's own must end soon, whatever the run says.
BLOCKS_MAX = 10_000

Moves = Literal["read", "write"]


class Basis(StrEnum):
    """Where a number comes from. A shaped device makes every number of its run `modelled`."""

    MEASURED = "measured"
    MODELLED = "modelled"
    ESTIMATED = "estimated"
    SPECIFICATION = "specification"
    DERIVED = "derived"


class Outcome(StrEnum):
    """What a judged claim came to."""

    REPRODUCED = "REPRODUCED"
    DEVIATES = "DEVIATES"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"
    NOT_COMPARABLE = "NOT_COMPARABLE"
    NOT_MEASURED = "NOT_MEASURED"


class Phase(StrEnum):
    """What a request was sent for."""

    PROBE = "probe"  # throw-away request after a start: first-use costs
    POPULATE = "populate"
    FLUSH = "flush"  # sessions beyond the DRAM tier, so that measured ones leave it
    REWARM = "rewarm"  # unpopulated request after a drop: libraries are read again
    MEASURE = "measure"
    WARM = "warm"  # the measured sessions again, KV files in the page cache
    CONTROL = "control"


class RequestOutcome(StrEnum):
    """How a request ended. Everything but `OK` keeps its row and its reason."""

    OK = "ok"
    HTTP_ERROR = "http_error"
    TIMEOUT = "timeout"
    CONNECT_ERROR = "connect_error"
    CUT = "cut"  # the stream ended without its [DONE]
    STREAM_ERROR = "stream_error"  # the stream carried an error event or could not be parsed
    NO_USAGE = "no_usage"  # complete, but the server did not say how many tokens
    FINISH_FAILED = "finish_failed"  # complete by its form; its finish_reason says that it failed
    FINISH_UNKNOWN = "finish_unknown"  # complete by its form; nobody knows its finish_reason


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _require_names(**names: str) -> None:
    """Ids and names become parts of paths, commands and joins: one alphabet for all of them."""
    for what, name in names.items():
        whole = NAME.fullmatch(name) and name.strip(".")
        _require(whole, f"{what} {name!r} is no name of {NAME.pattern}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A block device: a kernel name says nothing without the host that gave it."""

    host: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """What is done to the engines of an arm, as the plan says it; None: the arm has no such thing.

    `reads` is how the reader of its KV goes about it: which calibration of the device predicts it.
    """

    patch: Literal["patched", "unpatched"] | None
    connector: KvTier | None
    reads: Reads | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchState:
    """The LMCache file an arm ran on, read through the engine's exec prefix before its start."""

    lmcache_version: str
    target_sha256: str
    base_sha256: str
    module_sha256: str | None  # of our reader module; None when unpatched


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the plan says one run must show; the certificate compares counters against it."""

    sessions: int  # measured sessions, each read at most once
    prompt_tokens: int
    output_tokens: int
    chunk_tokens: int  # read back from the running server
    chunk_bytes: int
    cpu_tier_bytes: int

    def __post_init__(self) -> None:
        """Refuse a plan that could not be certified."""
        _require(self.sessions > 0, "a run measures at least one session")
        _require(self.chunk_tokens > 0 and self.chunk_bytes > 0, "chunk size must be positive")
        _require(self.prompt_tokens > 0, "a prompt has at least one token")

    @property
    def hit_tokens_per_session(self) -> int:
        """Tokens LMCache can hit: whole chunks of the prompt less its last token."""
        return self.chunk_tokens * ((self.prompt_tokens - 1) // self.chunk_tokens)

    @property
    def hit_bytes(self) -> int:
        """KV bytes the whole cell must read from its device."""
        chunks = self.hit_tokens_per_session // self.chunk_tokens
        return self.sessions * chunks * self.chunk_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(ABC):
    """Provenance of one cell in one block, whatever it measures: what every `run.json` says."""

    kind: ClassVar[str]

    schema_version: int
    run_id: str
    campaign_id: str  # one invocation of a scenario: all its blocks
    plan_sha256: str | None  # of the campaign's declared plan; None: older than plan digests
    scenario: str
    arm: str
    role: Role
    concurrency: int
    block: int
    order: int  # position of the arm inside its block
    balanced: bool  # the blocks so far fill whole Williams rows
    basis: Basis
    site: str
    site_sha256: str
    fallback_level: str  # how far the rehearsal's device is a real one; "cluster" elsewhere
    seed: int
    started_wall_ns: int
    r8_version: str
    versions: dict[str, str]
    comparability: dict[str, str]
    host: dict[str, str]
    kv_host: str  # host of `kv_device` and `kv_dir`
    kv_device: str  # block device the arm names, e.g. "loop0"; "": its files lie on none
    kv_dir: str
    other_kv_devices: tuple[Device, ...]
    complete: bool  # False: recovered from a journal, never a measurement
    note: str | None = None
    link_bytes_per_s: int | None = None  # declared ceiling of the slowest link to kv_device

    def __post_init__(self) -> None:
        """Refuse provenance that could not be traced."""
        _require_names(
            run_id=self.run_id,
            campaign_id=self.campaign_id,
            scenario=self.scenario,
            arm=self.arm,
            site=self.site,
            kv_host=self.kv_host,
        )
        for name in self.processes:
            _require_names(process=name)
        for device in self.other_kv_devices:
            _require_names(other_kv_host=device.host)
            _require(device.name, f"another KV device of host {device.host} has no name")
        _require(self.concurrency > 0, f"offered concurrency {self.concurrency} is not positive")
        counted = all(0 <= one < BLOCKS_MAX for one in (self.block, self.order))
        _require(counted, f"block and order count from 0 to {BLOCKS_MAX - 1}")
        _require(0 <= self.expected_bytes <= INT64_MAX, "the plan's bytes do not fit 64 bits")
        link = self.link_bytes_per_s
        _require(link is None or link > 0, f"a link of {link} bytes/s carries nothing")

    @property
    @abstractmethod
    def processes(self) -> tuple[str, ...]:
        """Names of the engine instances or workers whose processes are sampled."""

    @property
    @abstractmethod
    def expected_bytes(self) -> int:
        """Bytes the plan says the cell moves from its device, or onto it."""

    @property
    @abstractmethod
    def workload(self) -> dict[str, float]:
        """What must be equal in two runs before their numbers are pooled."""

    @property
    def level(self) -> str:
        """The level as figures name it, for example `c16`."""
        return f"c{self.concurrency}"

    @property
    def recompute(self) -> bool:
        """Whether the arm has no KV tier and computes every prompt."""
        return self.role is Role.RECOMPUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class KvRun(Run):
    """A run whose engines answer requests, with a KV tier or without."""

    kind: ClassVar[str] = "kv"

    treatment: Treatment
    instances: tuple[str, ...]
    patch: PatchState | None  # None: the arm runs without LMCache
    expectation: Expectation

    @property
    def processes(self) -> tuple[str, ...]:
        """Names of the engine instances."""
        return self.instances

    @property
    def expected_bytes(self) -> int:
        """KV bytes the cell must read from its device."""
        return self.expectation.hit_bytes

    @property
    def workload(self) -> dict[str, float]:
        """Sessions, and the size of each."""
        planned = self.expectation
        return {
            "sessions": planned.sessions,
            "prompt_tokens": planned.prompt_tokens,
            "output_tokens": planned.output_tokens,
            "chunk_tokens": planned.chunk_tokens,
            "chunk_bytes": planned.chunk_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRun(Run):
    """A run without a KV engine: workers of a known number move known bytes."""

    kind: ClassVar[str] = "transfer"

    job: str  # "load", "switch" or "checkpoint"
    moves: Moves  # what the measured window does to the device
    tool: str  # what moves the bytes, for example "safetensors"
    workers: tuple[str, ...]
    files: int  # that hold the bytes, all workers together
    total_bytes: int  # of those files
    time_scale: float  # modelled seconds per second of this run; 1 where nothing is modelled

    def __post_init__(self) -> None:
        """Refuse a transfer nobody could make."""
        Run.__post_init__(self)
        _require(self.workers and self.files > 0, "a transfer needs workers and files")
        _require(self.total_bytes > 0, "a transfer moves at least one byte")
        _require(self.time_scale > 0, "a time scale is positive")

    @property
    def processes(self) -> tuple[str, ...]:
        """Names of the workers."""
        return self.workers

    @property
    def expected_bytes(self) -> int:
        """Bytes of all files."""
        return self.total_bytes

    @property
    def workload(self) -> dict[str, float]:
        """Bytes of all files."""
        return {"total_bytes": self.total_bytes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One metric of one run, as the shared SQL computed it."""

    run_id: str
    metric: str
    statistic: str
    value: float | None
    unit: str
    n: int
    estimator: str
    basis: Basis
    reason: str | None = None  # why the value is None
    phase: str = "measure"  # "measure", "warm", or "calibration" for what the device itself gives


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One forensic rule applied to one run."""

    rule_id: str
    run_id: str
    checks: tuple[Check, ...]
    answer: Answer = field(init=False)  # refuted by one check, else unknown by one, else held

    def __post_init__(self) -> None:
        """Compute the answer from the checks."""
        object.__setattr__(self, "answer", answer_of_all(self.checks))

    def __str__(self) -> str:
        """The answer and the comparisons it follows from, in symbols."""
        why = "; ".join(str(check) for check in self.checks if check.answer is self.answer)
        return f"{self.rule_id} {self.answer} in {self.run_id}: {why}"


# What a verdict gives as its reason: a message, a comparison, or a finding that forbids judging.
Reason = Message | Check | Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One judged statement: a published number, or R8's own about a rehearsal or a reference."""

    claim_id: str
    source: str  # "R1".."R9" for published claims, "rehearsal" or "reference" for R8's own
    kind: str  # "at-least", "band", "value", "prediction" or "equivalence"
    scenario: str
    metric: str
    numerator_arm: str
    denominator_arm: str | None  # None: the claim is about one arm's absolute value
    level: str
    low: float
    high: float | None  # upper end of a band
    unit: str
    tolerance: float  # relative; 0.05 is 5 %
    as_printed: str
    figure_ids: tuple[str, ...]
    comparability: dict[str, str]
    statistic: str = "p50"  # the estimator belongs to the claim
    min_blocks: int = 2  # fewer are no look at all
    looks: int = 1  # looks the plan allows; they share the error rate
    interpretation: str = ""  # of a printed "faster": "time saved" or "speed-up"
    derivation: str = ""  # how the number follows from the figures, where none of them prints it
    unit_base: int | None = None  # bytes of the unit's GB, from the ledger; None: decimal, or none

    def __post_init__(self) -> None:
        """Refuse a claim whose kind has no judge."""
        kinds = {"at-least", "band", "value", "prediction", "equivalence"}
        _require(self.kind in kinds, f"claim {self.claim_id}: unknown kind {self.kind}")
        _require(self.tolerance >= 0, f"claim {self.claim_id}: negative tolerance")
        _require(self.min_blocks >= 1, f"claim {self.claim_id}: needs at least one block")
        _require(self.looks >= 1, f"claim {self.claim_id}: needs at least one look")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A claim and what the runs say about it."""

    claim: Claim
    outcome: Outcome
    estimate: float | None
    low: float | None
    high: float | None
    confidence: float | None
    n_blocks: int
    estimator: str  # how the interval was made, by the ids of `r8.verdict.numbers`
    basis: Basis
    reasons: tuple[Reason, ...]  # why, the first one first; texts are renderings of them
    run_ids: tuple[str, ...] = ()  # the runs it rests on, in block order
