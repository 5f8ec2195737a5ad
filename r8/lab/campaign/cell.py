"""One run: one arm at one level in one block, from engine start or the cell before it to evidence.

The order is the argument: populate, flush beyond the DRAM tier, make durable, drop, look whether
the drop worked, re-read the libraries, then read every measured session once, and once more warm.
The last cell of a block is followed by the negative controls, on sessions of their own.
A later cell of the same life begins at its own durability check: engines and pool are there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r8.errors import R8Error
from r8.evidence.finalise import finalise, recover
from r8.lab.campaign import controls, dropping, phases
from r8.lab.campaign.lifetime import facts
from r8.lab.campaign.phases import Stage
from r8.lab.instruments import probes as instruments
from r8.lab.instruments.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from r8.lab.campaign.lifetime import Lifetime
    from r8.lab.instruments.probes import Probes
    from r8.lab.site.file import Arm, Host
    from r8.lab.site.plan import Place
    from r8.model import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CellContext:
    """What a cell needs beyond its life and its own Run."""

    arm: Arm
    place: Place
    cells_to_come: Sequence[Place]  # of this life, this one first: what the populate is for
    control_place: Place | None  # the cell of the block that its negative controls follow
    runs_root: Path
    site_text: str
    calibration: tuple[dict[str, Any], ...]
    campaign: dict[str, object]  # arms, levels and blocks the campaign set out to run
    testbed: dict[str, Any]  # what the devices are, for the record


def run_cell(context: CellContext, life: Lifetime, run: Run) -> Path:
    """Measure one cell; returns the finished run directory.

    Raises:
        R8Error: something failed; what was recorded until then is kept as an incomplete run.

    """
    recording = _begin(context, life, run)
    stage = Stage(life=life, recording=recording, place=context.place, arm=context.arm)
    try:
        _environment(stage, "begin")
        for row in context.calibration:
            recording.append("calibration", row)
        _measure(stage, context)
        _environment(stage, "end")
    except (R8Error, OSError):
        recording.close()
        recover(recording.directory)
        raise
    recording.event("run_end")
    recording.close()
    return finalise(recording.directory, complete=True)


def _begin(context: CellContext, life: Lifetime, run: Run) -> Recording:
    recording = Recording.begin(
        context.runs_root,
        run,
        context.site_text,
        prelude=life.prelude if life.first_run_id else None,
        **context.campaign,
    )
    life.show_logs(recording)
    place = context.place
    recording.event(
        "cell_begin",
        **facts(life),
        index=place.index,
        kv=context.arm.kv,
        reads=context.arm.reads,
        first_session=place.first_session,
        sessions=place.sessions,
    )
    recording.event("ground", **context.testbed)
    return recording


def _measure(stage: Stage, context: CellContext) -> None:
    """The phases, in order."""
    life, first = stage.life, stage.life.first_run_id is None
    cells_to_come = context.cells_to_come
    if first:
        _start(stage)
    probes = _start_probes(stage)
    try:
        if first:
            _calibrate_wire(stage)
            phases.first_use(stage)
            if context.control_place in cells_to_come:
                life.control = controls.store(stage)
            phases.populate(stage, cells_to_come)
            life.keep_prelude(stage.recording)
        else:
            time.sleep(phases.SETTLE_S)
        phases.make_durable(stage)
        dropping.drop(stage)
        phases.measure(stage)
        if context.control_place == context.place and life.control is not None:
            controls.run(stage, life.control)
    finally:
        instruments.stop_probes(life.setting.supervisor, stage.recording, probes)
    if len(cells_to_come) == 1:
        for name in life.stop_engines():
            stage.recording.event("engine_stopped", instance=name)


def _start(stage: Stage) -> None:
    patch = stage.recording.run.patch
    if patch is not None:
        stage.recording.event(
            "patch_state",
            expected=patch.expected,
            lmcache_version=patch.lmcache_version,
            target_sha256=patch.target_sha256,
            base_sha256=patch.base_sha256,
            module_sha256=patch.module_sha256,
        )
    stage.life.setting.say("engine start")
    stage.life.start(stage.recording)
    phases.engines_ready(stage)


def _start_probes(stage: Stage) -> Probes:
    setting, running = stage.life.setting, stage.life.engines
    return instruments.start_probes(
        setting.supervisor,
        stage.recording,
        setting.watched,
        {
            "engines": {engine.instance: engine.root_pid for engine in running},
            "metrics": {engine.instance: f"{engine.base_url}/metrics" for engine in running},
            "rates_hz": instruments.PROBE_RATES_HZ | {"nic": instruments.NIC_RATE_HZ},
            "nics": list(setting.site.device(stage.arm.device).nics),
            "iostat": True,
        },
    )


def _kv_host(stage: Stage) -> Host:
    site = stage.life.setting.site
    return site.host(site.device(stage.arm.device).host)


def _environment(stage: Stage, moment: str) -> None:
    instruments.environment(stage.recording, moment, _kv_host(stage))


def _calibrate_wire(stage: Stage) -> None:
    """Once a life: its events and the counters around them stay with the first cell's run."""
    device = stage.life.setting.site.device(stage.arm.device)
    instruments.calibrate_wire(
        stage.recording,
        device.nics,
        stage.recording.run.kv_device,
        settle_s=phases.SETTLE_S,
        host=_kv_host(stage),
    )
