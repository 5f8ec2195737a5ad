"""One invocation of a scenario: the ground it stands on, and every cell of every block on it."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from r8.lab.campaign import provenance
from r8.lab.campaign.base import CampaignBase
from r8.lab.campaign.cell import CellContext, run_cell
from r8.lab.campaign.lifetime import Lifetime, Setting
from r8.lab.campaign.patch_state import PatchStates
from r8.lab.campaign.testbed import Testbed, prepare
from r8.lab.instruments import clients
from r8.lab.machine.hosts import KvDirectory
from r8.lab.machine.progress import Progress
from r8.lab.site import matrix
from r8.lab.site.cells import cells_of
from r8.lab.site.plan import check_lives, control_place, plan_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.site.file import Arm, LoadedSite, Plan
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place
    from r8.model import PatchState

# Size of a rendered completions request per prompt token: digits, comma, blank.
REQUEST_BYTES_PER_TOKEN = 6


@dataclass(slots=True, kw_only=True)
class OpenLife:
    """The life that runs now, with what all its runs have in common."""

    block: int
    name: str
    life: Lifetime
    kv_path: str
    patch: PatchState | None
    versions: dict[str, str]


@dataclass(slots=True, kw_only=True)
class Campaign(CampaignBase):
    """A scenario with KV engines."""

    trees: PatchStates
    client_rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    open_life: OpenLife | None = None

    @property
    def plan(self) -> Plan:
        """The load this site gives the scenario."""
        return self.loaded.site.scenarios[self.scenario]

    def run(self, place: Place) -> Path:
        """Run one cell; returns its finished directory. A finished cell is never run again.

        Raises:
            R8Error: the cell failed. Its life is ended: the next cell begins a new one.

        """
        done = self.finished(place)
        if done is not None:
            return done
        run_id = self.begin(place)
        try:
            opened = self._life_for(place, run_id)
            path = self._run_in(opened, place, run_id)
        except BaseException:
            # Also on Ctrl-C: an engine that lost its cell is of no use to the next one.
            self.close_life()
            raise
        if len(self._to_come(place)) == 0:
            self.close_life()
        self.progress.finish()
        return path

    def _run_in(self, opened: OpenLife, place: Place, run_id: str) -> Path:
        arm = self.loaded.site.arms[place.arm]
        run = provenance.describe(
            self.loaded,
            self.scenario,
            self.testbed,
            place,
            ids=(self.matrix.campaign_id, run_id),
            kv_dir=opened.kv_path,
            seed=self.matrix.seed + place.block,
            patch=opened.patch,
            found_versions=opened.versions,
        )
        context = CellContext(
            arm=arm,
            place=place,
            cells_to_come=self._to_come(place),
            control_place=self._control_place(place.block),
            runs_root=self.runs_root,
            site_text=self.loaded.text,
            calibration=(
                *self.testbed.calibration(arm, place.block),
                self._client_row(place.concurrency),
            ),
            campaign=self.outline(self.plan.concurrency),
            testbed=self.testbed.facts(arm),
        )
        return run_cell(context, opened.life, run)

    def _to_come(self, place: Place) -> list[Place]:
        """Cells of this place's life that are still to be run, this one first."""
        return [
            one
            for one in self.places
            if (one.block, one.life) == (place.block, place.life)
            and one.index >= place.index
            and self.finished(one) is None
        ]

    def _control_place(self, block: int) -> Place | None:
        cells = [one for one in self.places if one.block == block]
        return control_place(cells, self.loaded.site.arms, self.plan)

    def _life_for(self, place: Place, run_id: str) -> OpenLife:
        opened = self.open_life
        if opened is not None and (opened.block, opened.name) == (place.block, place.life):
            return opened
        self.close_life()
        self.progress.say("setting the patch state")
        arm = self.loaded.site.arms[place.arm]
        env = self.testbed.env(arm)
        patch = None if arm.kv == "none" else self.trees.set(arm, env)
        kv_path = str(self.testbed.kv_root(arm.device) / f"r8-{run_id}")
        setting = make_setting(
            self.testbed,
            plan_for(self.plan, arm),
            arm,
            supervisor=self.supervisor,
            home=self.folder / f"{run_id}{matrix.LIFE_SUFFIX}",
            kv_path=kv_path,
            say=self.progress.say,
        )
        self.open_life = OpenLife(
            block=place.block,
            name=place.life,
            life=Lifetime(setting=setting),
            kv_path=kv_path,
            patch=patch,
            versions=provenance.versions(self.testbed, env),
        )
        return self.open_life

    def close_life(self) -> None:
        """End the engines that run now and remove their pool."""
        opened, self.open_life = self.open_life, None
        if opened is not None:
            opened.life.close()

    def _client_row(self, concurrency: int) -> dict[str, Any]:
        if concurrency not in self.client_rows:
            self.progress.say("calibrating the load client against its null server")
            out = self.testbed.work_dir / f"client-c{concurrency}.jsonl"
            size = self.plan.prompt_tokens * REQUEST_BYTES_PER_TOKEN
            self.client_rows[concurrency] = clients.calibrate_client(out, concurrency, size)
        return self.client_rows[concurrency]


def make_setting(
    testbed: Testbed,
    plan: Plan,
    arm: Arm,
    *,
    supervisor: Supervisor,
    home: Path,
    kv_path: str,
    say: Callable[[str], None],
) -> Setting:
    """What the phases of a life need, from the ground it stands on."""
    host = testbed.site.host(testbed.site.device(arm.device).host)
    return Setting(
        supervisor=supervisor,
        site=testbed.site,
        plan=plan,
        arm=arm,
        home=home,
        kv=None if arm.kv == "none" else KvDirectory(host=host, path=kv_path),
        names=testbed.names(arm),
        env=testbed.env(arm),
        drop_commands=testbed.drop_commands(arm, plan.instances),
        watched=testbed.watched(arm, plan.instances),
        say=say,
    )


def plan_campaign(
    loaded: LoadedSite,
    scenario: str,
    arms: Sequence[str],
    *,
    blocks: int,
    seed: int,
    campaign_id: str | None = None,
) -> tuple[Matrix, tuple[Place, ...]]:
    """What a new campaign will run; nothing is written yet."""
    plan = loaded.site.plan_of(scenario)
    if plan is None:
        raise KeyError(scenario)
    cells = cells_of(loaded.site, scenario, arms, blocks, seed)
    planned = matrix.new_matrix(
        campaign_id or new_campaign_id(scenario),
        scenario,
        (str(loaded.path), loaded.sha256),
        seed,
        arms,
        cells,
        (plan.start_estimate_s, plan.cell_estimate_s),
    )
    return planned, cells


@contextlib.contextmanager
def open_campaign(
    loaded: LoadedSite,
    plan_of: Matrix,
    cells: tuple[Place, ...],
    supervisor: Supervisor,
    *,
    runs_root: Path,
) -> Iterator[Campaign]:
    """Prepare the ground, hand out the campaign, and put everything back afterwards."""
    scenario = plan_of.scenario
    check_lives(plan_of.arms, loaded.site.arms, str(loaded.path))
    progress = progress_of(plan_of, runs_root / scenario)
    progress.start("ground")
    with prepare(loaded, scenario, supervisor, progress.say) as testbed:
        matrix.write_matrix(runs_root / scenario, plan_of)
        campaign = Campaign(
            loaded=loaded,
            scenario=scenario,
            matrix=plan_of,
            places=cells,
            runs_root=runs_root,
            supervisor=supervisor,
            testbed=testbed,
            progress=progress,
            trees=PatchStates(
                testbed=testbed,
                supervisor=supervisor,
                instances=loaded.site.scenarios[scenario].instances,
            ),
        )
        try:
            yield campaign
        finally:
            campaign.progress.end()
            campaign.close_life()
            campaign.trees.restore()


def progress_of(plan_of: Matrix, folder: Path) -> Progress:
    """Progress of a campaign; its ETA counts what an earlier session of it has finished."""
    states = matrix.cell_states(folder, plan_of)
    done = sum(one.state == "done" for one in states)
    left = max(1, len(states) - done)
    return Progress(
        total=len(states), estimate_s=matrix.eta_s(plan_of, states) / left, already=done
    )


def new_campaign_id(scenario: str) -> str:
    """A campaign's id: its scenario and the instant it began; several begin at one instant."""
    return f"{scenario}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
