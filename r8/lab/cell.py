"""One run: one arm at one level in one block, from engine start to finished evidence.

The order is the argument: populate, flush beyond the DRAM tier, make durable, drop, look whether
the drop worked, re-read the libraries, then read every measured session once. What comes after (the
same sessions warm, a prompt nobody stored) are the controls that show the instruments can say no.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import EngineError, R8Error
from r8.finalise import finalise, recover
from r8.lab import commands, instruments
from r8.lab.engine import RunningEngine, engine_env, launch, read_config, wait_ready
from r8.lab.plan import (
    CONTROL_SESSION,
    FLUSH_SESSIONS_FROM,
    PROBE_SESSION,
    REWARM_SESSION,
)
from r8.lab.recording import Recording, remove_tree
from r8.lab.site import fill_one
from r8.model import Phase, Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.lab.keeper import Keeper, Process
    from r8.lab.site import Arm, Instance, Plan, Site

# Probe samples before and after the window: byte balances use the last one before and first after.
SETTLE_S = 1.5
# Writes count as over when the KV directory has not changed for this long after a sync.
QUIET_S = 2.0
DURABLE_TIMEOUT_S = 120.0
# LMCache writes `<key>.pt`; anything else in the directory is not KV.
KV_SUFFIX = ".pt"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellContext:
    """What a cell needs beyond its own Run: the site, and how this campaign names things."""

    keeper: Keeper
    site: Site
    plan: Plan
    site_text: str
    runs_root: Path
    names: dict[str, str]  # for filling the site's commands
    env: dict[str, str]  # added to the site's engine environment, e.g. PYTHONPATH
    drop_command: list[str]
    block_devices: tuple[str, ...]
    calibration: tuple[dict[str, Any], ...]
    campaign: dict[str, object]  # arms, levels and blocks the campaign set out to run
    ground: dict[str, Any]  # what the devices are, for the record
    say: Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class _Cell:
    context: CellContext
    run: Run
    arm: Arm
    recording: Recording
    engines: list[RunningEngine]
    kv_dir: Path
    stored_sessions: int = 0

    @property
    def chunks_per_session(self) -> int:
        return self.context.plan.prompt_tokens // self.context.plan.chunk_tokens


def run_cell(context: CellContext, run: Run, arm: Arm) -> Path:
    """Measure one cell; returns the finished run directory.

    Raises:
        R8Error: something failed; what was recorded until then is kept as an incomplete run.

    """
    recording = Recording.begin(context.runs_root, run, context.site_text, **context.campaign)
    recording.event("ground", **context.ground)
    kv_dir = Path(run.kv_dir)
    cell = _Cell(context=context, run=run, arm=arm, recording=recording, engines=[], kv_dir=kv_dir)
    try:
        instruments.environment(recording, "begin")
        kv_dir.mkdir(parents=True)
        for row in context.calibration:
            recording.append("calibration", row)
        _measure(cell)
        instruments.environment(recording, "end")
    except (R8Error, OSError):
        recording.close()
        recover(recording.directory)
        raise
    finally:
        for engine in cell.engines:
            context.keeper.stop(engine.process, grace_s=context.site.engine.stop_grace_s)
        remove_tree(kv_dir)
    recording.event("run_end")
    recording.close()
    return finalise(recording.directory, complete=True)


def _measure(cell: _Cell) -> None:
    """The phases, in order."""
    _start_engines(cell)
    probes = _start_probes(cell)
    try:
        nics = cell.context.site.device(cell.arm.device).nics
        instruments.calibrate_wire(cell.recording, nics, cell.run.kv_device, settle_s=SETTLE_S)
        _load(cell, Phase.PROBE, [PROBE_SESSION])
        _record_config(cell)
        _load(cell, Phase.POPULATE, list(range(cell.run.expectation.sessions)))
        flush = range(FLUSH_SESSIONS_FROM, FLUSH_SESSIONS_FROM + cell.context.plan.flush_sessions)
        _load(cell, Phase.FLUSH, list(flush))
        _make_durable(cell)
        _drop(cell)
        _load(cell, Phase.REWARM, [REWARM_SESSION])
        time.sleep(QUIET_S)  # its own KV goes to the device in the background
        measured = list(range(cell.run.expectation.sessions))
        _load(cell, Phase.MEASURE, measured)
        instruments.residency(cell.recording, cell.kv_dir, "after_measure")
        _load(cell, Phase.WARM, measured)
        _load(cell, Phase.CONTROL, [CONTROL_SESSION])
    finally:
        instruments.stop_probes(cell.context.keeper, probes)
    for engine in cell.engines:
        cell.context.keeper.stop(engine.process, grace_s=cell.context.site.engine.stop_grace_s)
        cell.recording.event("engine_stopped", instance=engine.instance)


def _start_engines(cell: _Cell) -> None:
    context = cell.context
    patch = cell.run.patch
    if patch is not None:
        cell.recording.event(
            "patch_state",
            expected=patch.expected,
            lmcache_version=patch.lmcache_version,
            target_sha256=patch.target_sha256,
            base_sha256=patch.base_sha256,
            module_sha256=patch.module_sha256,
        )
    context.say("engine start")
    for name in context.plan.instances:
        cell.engines.append(_launch(cell, context.site.instance(name)))
    for engine in cell.engines:
        wait_ready(engine, context.site.engine.ready_path, context.site.engine.ready_timeout_s)
        cell.recording.event("engine_started", instance=engine.instance, pid=engine.root_pid)


def _launch(cell: _Cell, instance: Instance) -> RunningEngine:
    context = cell.context
    names = context.names | {
        "port": str(instance.port),
        "instance": instance.name,
        "kv_dir": str(cell.kv_dir),
        "run_id": cell.run.run_id,
    }
    words = context.site.engine.env | cell.arm.env | instance.env
    filled = {key: fill_one(word, names, where=f"env {key}") for key, word in words.items()}
    env = engine_env(filled | context.env, context.plan.extra_config | cell.arm.extra_config)
    log_path = cell.recording.raw(f"server-{instance.name}.log")
    return launch(context.keeper, context.site, instance, env, names, log_path)


def _start_probes(cell: _Cell) -> Process:
    return instruments.start_probes(
        cell.context.keeper,
        cell.recording,
        {
            "host": cell.context.site.engine.host,
            "block_devices": list(cell.context.block_devices),
            "engines": {engine.instance: engine.root_pid for engine in cell.engines},
            "metrics": {engine.instance: f"{engine.base_url}/metrics" for engine in cell.engines},
            "rates_hz": instruments.PROBE_RATES_HZ | {"nic": instruments.NIC_RATE_HZ},
            "nics": list(cell.context.site.device(cell.arm.device).nics),
            "iostat": True,
        },
    )


def _record_config(cell: _Cell) -> None:
    """Write down what the running engines say of their own settings (first request logs them)."""
    for engine in cell.engines:
        config = read_config(engine.log_path)
        cell.recording.event(
            "server_config",
            instance=engine.instance,
            source="engine log",
            enable_prefix_caching=config.enable_prefix_caching,
            chunk_tokens=config.chunk_tokens,
            cpu_tier_bytes=config.cpu_tier_bytes,
            disk_path=config.disk_path,
            kv_connector=config.kv_connector,
            extra_config=config.extra_config,
        )
        if config.chunk_tokens not in {None, cell.run.expectation.chunk_tokens}:
            raise EngineError(
                f"the engine runs LMCache chunks of {config.chunk_tokens} tokens, the plan says "
                f"{cell.run.expectation.chunk_tokens}",
                where=str(engine.log_path),
                next_step="make LMCACHE_CHUNK_SIZE and the scenario's chunk_tokens agree",
            )


def _load(cell: _Cell, phase: Phase, sessions: list[int]) -> None:
    """Run one phase of load between its two marks."""
    burst = phase in {Phase.MEASURE, Phase.WARM}
    plan = cell.context.plan
    concurrency = cell.run.concurrency if burst else plan.populate_concurrency
    cell.context.say(f"{phase} {len(sessions)} sessions")
    if burst:
        time.sleep(SETTLE_S)
    cell.recording.event(f"{phase}_begin", sessions=len(sessions), concurrency=concurrency)
    waves = -(-len(sessions) // concurrency)
    instruments.run_load(
        cell.recording,
        phase,
        {
            "phase": phase,
            "instance": cell.engines[0].instance,
            "base_url": cell.engines[0].base_url,
            "model": plan.model_name,
            "endpoint": plan.endpoint,
            "shape": "burst" if burst else "closed",
            "concurrency": min(concurrency, len(sessions)),
            "sessions": sessions,
            "seed": cell.run.seed,
            "prompt_tokens": _prompt_tokens(plan, phase),
            # Populating recomputes the same prompts: a cold read must repeat its tokens.
            "output_tokens": plan.output_tokens if burst or phase is Phase.POPULATE else 1,
            "vocab": list(plan.vocab),
            "timeout_s": plan.request_timeout_s,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        },
        timeout_s=plan.request_timeout_s * waves + 60,
    )
    cell.recording.event(f"{phase}_end")
    if burst:
        time.sleep(SETTLE_S)
    else:
        cell.stored_sessions += len(sessions)


def _prompt_tokens(plan: Plan, phase: Phase) -> int:
    """Rewarming must not store KV: its write-back would fall into the measured window."""
    return plan.chunk_tokens // 2 if phase is Phase.REWARM else plan.prompt_tokens


def _kv_state(kv_dir: Path) -> tuple[int, int]:
    """Number of KV files and their bytes."""
    sizes = [entry.stat().st_size for entry in kv_dir.rglob(f"*{KV_SUFFIX}") if entry.is_file()]
    return len(sizes), sum(sizes)


def _make_durable(cell: _Cell) -> None:
    """Wait until every chunk is a whole file on the device and nothing changes any more.

    The files found are recorded against those expected; judging the difference is not done here.
    """
    cell.context.say("waiting until the KV is durable")
    expected = cell.stored_sessions * cell.chunks_per_session
    deadline = time.monotonic() + DURABLE_TIMEOUT_S
    state, since = _kv_state(cell.kv_dir), time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = _kv_state(cell.kv_dir)
        if now != state:
            state, since = now, time.monotonic()
        elif now[0] >= expected and time.monotonic() - since >= QUIET_S:
            break
    commands.run(["sync", "-f", str(cell.kv_dir)])
    time.sleep(QUIET_S)
    after = _kv_state(cell.kv_dir)
    cell.recording.event(
        "durable",
        files=after[0],
        bytes=after[1],
        expected_files=expected,
        expected_bytes=expected * cell.run.expectation.chunk_bytes,
        quiet_ns=round(QUIET_S * 1e9) if after == state else 0,
    )


def _drop(cell: _Cell) -> None:
    """Drop the page cache with the site's command, then look what is left of every KV file."""
    cell.context.say("dropping the page cache")
    cell.recording.event("drop_begin")
    done = commands.run(cell.context.drop_command)
    cell.recording.event("drop_end", rc=done.returncode, command=done.line, error=done.error)
    instruments.residency(cell.recording, cell.kv_dir, "after_drop")
    cell.recording.event("cold_checked")
