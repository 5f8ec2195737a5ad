"""Synthetic run directories for unit tests: made up, sealed by the real finaliser.

Nothing here was measured. `build_run(root, SyntheticRun(...))` gives the path of a run that is
right in every respect unless a field says otherwise; one field is changed to make one thing wrong.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from r8.evidence.finalise import finalise
from r8.evidence.journal import run_to_json
from r8.model import Basis, Device, Expectation, KvRun, PatchState, Treatment
from r8.roles import Role
from r8.schema import SCHEMA_VERSION
from r8.tests.support.run_factory_context import context_events, engine_rows
from r8.tests.support.run_factory_log import log_lines
from r8.tests.support.run_factory_rows import (
    HOST,
    calibration_rows,
    event_rows,
    probe_rows,
    request_rows,
    residency_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.roles import Reads

Row = dict[str, Any]

MIB = 1 << 20
MODULE_SHA256 = "ab" * 32
# Arms as the scenarios' own sites treat them: role, and how their reader reads.
ARMS: dict[str, tuple[Role, Reads | None]] = {
    "patched": (Role.ARRAY, "parallel"),
    "unpatched": (Role.ARRAY, "serial"),
    "upstream-32": (Role.ARRAY, "parallel"),
    "upstream-4": (Role.ARRAY, None),
    "array": (Role.ARRAY, "parallel"),
    "local-nvme": (Role.LOCAL, "parallel"),
    "pool": (Role.POOL, "parallel"),
    "pool-cross": (Role.NEGATIVE, None),
    "fs-own": (Role.SHARED, None),
    "fs-cross": (Role.SHARED, None),
    "recompute": (Role.RECOMPUTE, None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRun:
    """What the run directory shall show. Times are seconds, sizes bytes; None leaves rows out."""

    campaign_id: str = "campaign-1"
    scenario: str = "r1-parallel-read"
    arm: str = "patched"
    concurrency: int = 4
    block: int = 0
    order: int = 0
    balanced: bool = True
    run_id: str | None = None  # made from campaign, block, arm and level when None
    basis: Basis = Basis.MODELLED
    fallback_level: str = "loop"
    comparability: dict[str, str] = field(default_factory=lambda: {"device": "shaped"})
    seed: int = 7
    complete: bool = True

    # requests
    ttft_s: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)  # one a measured session
    warm_ttft_s: tuple[float, ...] | None = (0.5, 0.5, 0.5, 0.5)
    itl_s: float = 0.05
    output_tokens: int = 5
    prompt_tokens: int = 1025
    output_text: str = "same text"
    failures: int = 0  # the last so many measured requests end in a timeout
    send_lag_s: float = 0.001

    # the cache and the device
    chunk_tokens: int = 256
    chunk_bytes: int = 2 * MIB
    cpu_tier_bytes: int = 64 * MIB
    kv_device: str = "loop0"
    kv_members: tuple[str, ...] = ()
    other_kv_devices: tuple[str, ...] = ("loop1",)
    device_read_bytes: int | None = -1  # -1: what the plan expects
    read_s: float = 4.0  # the device reads evenly for so long from measure_begin on
    other_device_read_bytes: int = 0
    system_read_bytes: int = 0  # libraries, from the device "vda" that holds no KV
    process_read_bytes: int | None = -1  # -1: the device's plus the system's
    hit_tokens: int | None = -1  # by the engine's lookup lines; -1: what the plan expects
    computed_tokens: int = 0
    epoch_grows: bool = False  # the device's counter regressed inside the measure phase
    kv_mount_device: str | None = None  # device the KV files lie on, when not kv_device

    # drop and durability
    dropped: bool = True
    drop_rc: int = 0
    resident_share: float = 0.0  # of every KV file after the drop
    residency_self_test: bool = True
    durable: bool = True
    enable_prefix_caching: bool = False

    # the patch
    patch_mode: str | None = "by arm"  # "parallel", "serial", None: no R8-PATCH loaded line
    patch_sha256: str = MODULE_SHA256  # by the engine's own line
    patch_reads: bool = True
    patch_misses: int = 0
    fatal_line: str | None = None

    # calibration, bytes a second
    ceiling_bytes_per_s: int | None = 128_000_000
    serial_bytes_per_s: int | None = 24_000_000
    client_calibrated: bool = True

    # the arm and its link
    link_bytes_per_s: int | None = None
    role: Role | None = None  # None: by the arm's name
    patch: Literal["patched", "unpatched"] | None = None  # None: by the arm's name

    # controls
    controls: bool = True
    warm_control_device_bytes: int = 0  # a good warm control reads nothing from the device
    control_drop_rc: int = 0
    control_resident_share: float = 1.0  # of the control's files, before they are read
    control_file_bytes: int | None = -1  # what the engine read of files; -1: what was hit
    random_control_hit_tokens: int = 0

    @property
    def name(self) -> str:
        """The run's id."""
        made = f"{self.campaign_id}-b{self.block}-{self.arm}-c{self.concurrency}"
        return self.run_id or made

    @property
    def expectation(self) -> Expectation:
        """What the plan says the run must show."""
        return Expectation(
            sessions=len(self.ttft_s),
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
            chunk_tokens=self.chunk_tokens,
            chunk_bytes=self.chunk_bytes,
            cpu_tier_bytes=self.cpu_tier_bytes,
        )

    @property
    def device_bytes(self) -> int | None:
        """Bytes the KV device reads in the measure phase."""
        planned = self.expectation.hit_bytes
        return planned if self.device_read_bytes == -1 else self.device_read_bytes

    @property
    def process_bytes(self) -> int | None:
        """Bytes the engine's processes read in the measure phase."""
        if self.process_read_bytes != -1:
            return self.process_read_bytes
        return (self.device_bytes or 0) + self.system_read_bytes

    @property
    def session_hit_tokens(self) -> int | None:
        """Hit tokens the lookup line of one measured request gives."""
        planned = self.expectation.hit_tokens_per_session
        return planned if self.hit_tokens == -1 else self.hit_tokens

    @property
    def patched(self) -> bool:
        """Whether its LMCache is the patched one."""
        return self.arm == "patched" if self.patch is None else self.patch == "patched"

    @property
    def mode(self) -> str | None:
        """Mode the patch's loaded line gives; None: no such line."""
        if self.patch_mode == "by arm":
            return "parallel" if self.patched else None
        return self.patch_mode


def synthetic_run(spec: SyntheticRun) -> KvRun:
    """The provenance record of the run."""
    patched = spec.patched
    role, reads = ARMS.get(spec.arm, (Role.ARRAY, "parallel" if patched else "serial"))
    patch = PatchState(
        lmcache_version="0.5.0",
        target_sha256=("0a" if patched else "0b") * 32,
        base_sha256="0b" * 32,
        module_sha256=MODULE_SHA256 if patched else None,
    )
    return KvRun(
        schema_version=SCHEMA_VERSION,
        run_id=spec.name,
        campaign_id=spec.campaign_id,
        plan_sha256=None,
        scenario=spec.scenario,
        arm=spec.arm,
        role=spec.role or role,
        concurrency=spec.concurrency,
        block=spec.block,
        order=spec.order,
        balanced=spec.balanced,
        basis=spec.basis,
        site="synthetic",
        site_sha256="00" * 32,
        fallback_level=spec.fallback_level,
        seed=spec.seed,
        started_wall_ns=1_790_000_000_000_000_000 + spec.block,
        r8_version="0",
        versions={"vllm": "0.27.1", "lmcache": "0.5.0"},
        comparability=spec.comparability,
        host={"name": "host-1"},
        kv_host=HOST,
        kv_device=spec.kv_device,
        kv_dir="/kv",
        other_kv_devices=tuple(Device(host=HOST, name=one) for one in spec.other_kv_devices),
        treatment=Treatment(
            patch="patched" if patched else "unpatched",
            connector="disk",
            reads=reads,
        ),
        instances=("a",),
        patch=patch,
        expectation=spec.expectation,
        complete=False,
        note=None,
        link_bytes_per_s=spec.link_bytes_per_s,
    )


def build_partial(root: Path, spec: SyntheticRun, probes: list[Row] | None = None) -> Path:
    """The run's `.partial` directory, below `root/<scenario>/`; `probes` instead of its own."""
    partial = root / spec.scenario / f"{spec.name}.partial"
    (partial / "raw").mkdir(parents=True)
    requests, chunks = request_rows(spec)
    write_lines(partial / "requests.jsonl", requests)
    write_lines(partial / "chunks.jsonl", chunks)
    rows = probe_rows(spec) + engine_rows(spec) if probes is None else probes
    write_lines(partial / "probes.jsonl", rows)
    write_lines(partial / "events.jsonl", _in_order(event_rows(spec) + context_events(spec)))
    write_lines(partial / "residency.jsonl", residency_rows(spec))
    write_lines(partial / "calibration.jsonl", calibration_rows(spec))
    log = "".join(line + "\n" for line in log_lines(spec))
    (partial / "raw" / "server-a.log").write_text(log)
    (partial / "raw" / "site.toml").write_text("# synthetic\n")
    (partial / "run.json").write_text(json.dumps(run_to_json(synthetic_run(spec))))
    return partial


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["mono_ns"])


def build_run(root: Path, spec: SyntheticRun) -> Path:
    """The sealed directory of the run, below `root/<scenario>/`."""
    return finalise(build_partial(root, spec), complete=spec.complete)


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """Rows as a journal's JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a journal."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def edit_rows(partial: Path, table: str, change: Callable[[list[Row]], list[Row]]) -> None:
    """Replace a journal's rows by `change(rows)`."""
    path = partial / f"{table}.jsonl"
    write_lines(path, change(read_lines(path)))
