"""Cells with a KV engine: one arm at one level in one block, measured on running engines.

The order is the argument: populate, flush beyond the DRAM tier, make durable, drop, look whether
the drop worked, re-read the libraries, then read every measured session once, and once more warm.
The last cell of a block is followed by the negative controls, on sessions of their own.
A later cell of the same engine lifetime begins at its own durability check: engines and pool are
there.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from r8.lab.campaign import controls, phases, provenance
from r8.lab.campaign.kind import Cell, CellKind
from r8.lab.campaign.lifetime import EngineLifetime
from r8.lab.campaign.patch_state import PatchStates
from r8.lab.campaign.phases import Stage
from r8.lab.instruments import probes
from r8.lab.instruments.clients import calibrate_client
from r8.lab.site.matrix import LIFETIME_SUFFIX
from r8.lab.site.plan import control_place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from r8.lab.instruments.probes import Probes
    from r8.lab.instruments.recording import Recording
    from r8.lab.site.arms import Arm, Plan
    from r8.lab.site.file import Site
    from r8.lab.site.plan import Place
    from r8.model import KvRun

# Size of a rendered completions request per prompt token: digits, comma, blank.
REQUEST_BYTES_PER_TOKEN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCell(Cell):
    """One cell on the engines of its lifetime."""

    run: KvRun
    lifetime: EngineLifetime
    arm: Arm
    place: Place
    cells_to_come: Sequence[Place]  # of this lifetime, this one first: what the populate is for
    control_place: Place | None  # the cell of the block that its negative controls follow

    def begin(self, recording: Recording) -> dict[str, Any]:
        """Let the run hold the engines' logs; what it says of its place."""
        self.lifetime.show_logs(recording)
        return {
            "engine_lifetime": self.lifetime.home.name,
            "shared_from": self.lifetime.first_run_id,
            "index": self.place.index,
            "kv": self.arm.kv,
            "sessions_of": self.arm.sessions_of,
            "first_session": self.place.first_session,
            "sessions": self.place.sessions,
        }

    def measure(self, recording: Recording) -> None:
        """The phases, in order."""
        lifetime = self.lifetime
        stage = Stage(lifetime=lifetime, recording=recording, place=self.place, arm=self.arm)
        first = lifetime.first_run_id is None
        if first:
            self._start(stage)
        running = self._start_probes(recording)
        try:
            if first:
                self._populate(stage)
            else:
                time.sleep(probes.SETTLE_S)
            phases.make_durable(stage)
            phases.drop(stage)
            phases.measure(stage)
            if self.control_place == self.place and lifetime.control is not None:
                controls.run(stage, lifetime.control)
        finally:
            probes.stop_probes(lifetime.testbed.supervisor, recording, running)
        if len(self.cells_to_come) == 1:
            for name in lifetime.stop_engines():
                recording.event("engine_stopped", instance=name)

    def _start(self, stage: Stage) -> None:
        if self.run.patch is not None:
            expected = self.run.treatment.patch
            stage.recording.event("patch_state", expected=expected, **asdict(self.run.patch))
        self.lifetime.testbed.say("engine start")
        try:
            self.lifetime.start()
        finally:
            self.lifetime.show_logs(stage.recording)
        phases.engines_ready(stage)

    def _start_probes(self, recording: Recording) -> Probes:
        testbed, engines = self.lifetime.testbed, self.lifetime.engines
        plan = probes.PROBE_PLAN | {
            "engines": {engine.instance: engine.root_pid for engine in engines},
            "metrics": {engine.instance: f"{engine.base_url}/metrics" for engine in engines},
            "nics": list(testbed.site.device(self.device).nics),
        }
        watched = testbed.watched(self.device, self.lifetime.plan.instances)
        return probes.start_probes(testbed.supervisor, recording, watched, plan)

    def _populate(self, stage: Stage) -> None:
        """What is done once in a lifetime; its rows belong to every later run of it too."""
        nics = self.lifetime.testbed.site.device(self.device).nics
        probes.calibrate_wire(stage.recording, nics, self.run.kv_device, self.host)
        phases.first_use(stage)
        if self.control_place in self.cells_to_come:
            self.lifetime.control = controls.store(stage)
        phases.populate(stage, self.cells_to_come)
        self.lifetime.keep_prelude(stage.recording)


@dataclass(slots=True, kw_only=True)
class KvCells(CellKind):
    """The cells of a scenario with KV engines; those of one lifetime share engines and pool."""

    patches: PatchStates = field(init=False)
    client_rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    lifetime: EngineLifetime | None = None  # that runs now

    def __post_init__(self) -> None:
        """Begin with no LMCache touched."""
        self.patches = PatchStates(testbed=self.testbed, instances=self.plan.instances)

    @property
    def plan(self) -> Plan:
        """The load this site gives the scenario."""
        return self.loaded.site.scenarios[self.matrix.scenario]

    @staticmethod
    def plans(site: Site) -> Mapping[str, object]:
        """Scenarios with a KV engine."""
        return site.scenarios

    def cell(self, place: Place, run_id: str) -> KvCell:
        """The cell, on the engines of its lifetime; the first of them starts them."""
        lifetime = self._lifetime_of(place, run_id)
        arm = self.loaded.site.arms[place.arm]
        run = provenance.describe(self.loaded, self.matrix, place, run_id, lifetime)
        of_block = [one for one in self.places if one.block == place.block]
        return KvCell(
            run=run,
            device=arm.device,
            host=self.testbed.host_of(arm.device),
            calibration=(
                *self.testbed.calibration(arm.device, place.block),
                self._client_row(place.concurrency),
            ),
            prelude=lifetime.prelude if lifetime.first_run_id else None,
            lifetime=lifetime,
            arm=arm,
            place=place,
            cells_to_come=self._to_come(place),
            control_place=control_place(of_block, self.loaded.site.arms, self.plan),
        )

    def ended(self, place: Place) -> None:
        """End the engines after the last cell of their lifetime."""
        if not self._to_come(place):
            self.close()

    def close(self) -> None:
        """End the engines that run now and remove their pool."""
        lifetime, self.lifetime = self.lifetime, None
        if lifetime is not None:
            lifetime.close()

    def restore(self) -> None:
        """Bring every LMCache back into the state it was found in."""
        self.patches.restore()

    def _to_come(self, place: Place) -> list[Place]:
        """Cells of this place's lifetime that are still to be run, this one first."""
        return [
            one
            for one in self.places
            if (one.block, one.lifetime) == (place.block, place.lifetime)
            and one.index >= place.index
            and self.finished(one) is None
        ]

    def _lifetime_of(self, place: Place, run_id: str) -> EngineLifetime:
        key = (place.block, place.lifetime)
        if self.lifetime is not None and self.lifetime.key == key:
            return self.lifetime
        self.close()
        self.testbed.say("setting the patch state")
        arm = self.loaded.site.arms[place.arm]
        env = self.testbed.env(arm)
        patch = None if arm.kv == "none" else self.patches.set(arm, env)
        self.lifetime = EngineLifetime(
            testbed=self.testbed,
            plan=self.plan.on(arm),
            arm=arm,
            home=self.folder / f"{run_id}{LIFETIME_SUFFIX}",
            kv_dir=str(self.testbed.kv_roots[arm.device] / f"r8-{run_id}"),
            key=key,
            patch=patch,
            versions=provenance.versions(self.testbed, env),
        )
        return self.lifetime

    def _client_row(self, concurrency: int) -> dict[str, Any]:
        if concurrency not in self.client_rows:
            self.testbed.say("calibrating the load client against its null server")
            out = self.testbed.work_dir / f"client-c{concurrency}.jsonl"
            size = self.plan.prompt_tokens * REQUEST_BYTES_PER_TOKEN
            self.client_rows[concurrency] = calibrate_client(out, concurrency, size)
        return self.client_rows[concurrency]
