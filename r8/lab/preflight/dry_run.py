"""Every command a campaign would run, in order. Nothing is run, opened or asked.

All are typed on this machine: what runs on another stands behind that host's own prefix.

The words come from the very functions that run them; what only a running machine can say (a pid, a
device behind a mount) stands there in capitals.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.campaign import controls, engine, provenance
from r8.lab.campaign.engine_campaign import make_setting
from r8.lab.campaign.patch_state import targets
from r8.lab.campaign.phases import FLUSH_AGAIN
from r8.lab.campaign.testbed import imagined
from r8.lab.instruments import clients
from r8.lab.instruments import probes as instruments
from r8.lab.machine import remote
from r8.lab.machine.hosts import engine_is_remote
from r8.lab.machine.supervisor import Supervisor
from r8.lab.preflight.lines import calibration, line
from r8.lab.preflight.transfer_dry_run import work_dry_run
from r8.lab.site.plan import check_lives, control_place, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from r8.lab.campaign.lifetime import Setting
    from r8.lab.campaign.testbed import Testbed
    from r8.lab.machine.hosts import KvDirectory
    from r8.lab.site.file import LoadedSite
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place

ROOT_PID = 1


def dry_run(
    loaded: LoadedSite, matrix: Matrix, places: Sequence[Place], runs_root: Path
) -> Iterator[str]:
    """Lines to print: comments, and `here$ command`."""
    if matrix.scenario in loaded.site.works:
        yield from work_dry_run(loaded, matrix, places, runs_root)
        return
    check_lives(matrix.arms, loaded.site.arms, str(loaded.path))
    testbed = imagined(loaded.site)
    yield f"# campaign {matrix.campaign_id}: {matrix.blocks} blocks, {len(places)} cells, "
    yield f"# site {loaded.site.name} ({loaded.path}), seed {matrix.seed}; nothing is run"
    yield from _hosts(testbed)
    plan, measured = loaded.site.scenarios[matrix.scenario], set[tuple[str, int]]()
    for _, group in groupby(places, key=lambda place: (place.block, place.life)):
        life = list(group)
        device = loaded.site.arms[life[0].arm].device
        if (device, life[0].block) not in measured:
            measured.add((device, life[0].block))
            yield from calibration(testbed, plan, device, life[0].block)
        block = [one for one in places if one.block == life[0].block]
        last = control_place(block, loaded.site.arms, plan)
        yield from _life(testbed, matrix, life, runs_root / matrix.scenario, last)
    yield ""
    yield "# at the end every LMCache tree is brought back into the state it was found in"


def _hosts(testbed: Testbed) -> Iterator[str]:
    """What is done once on hosts behind a prefix."""
    for host in testbed.site.hosts:
        if host.exec_prefix:
            yield ""
            yield f"# host {host.name}: the probes are copied there, clocks are compared"
            yield line(remote.install_argv(host), "< probes.tar")
            yield line(remote.clock_argv(host))


def _life(
    testbed: Testbed, matrix: Matrix, cells: list[Place], folder: Path, last: Place | None
) -> Iterator[str]:
    site, first = testbed.site, cells[0]
    arm = site.arms[first.arm]
    plan = plan_for(site.scenarios[matrix.scenario], arm)
    run_id = f"{matrix.campaign_id}-{first.name}"
    setting = make_setting(
        testbed,
        plan,
        arm,
        supervisor=Supervisor(folder),
        home=folder / f"{run_id}.life",
        kv_path=str(testbed.kv_root(arm.device) / f"r8-{run_id}"),
        say=print,
    )
    yield ""
    names = ", ".join(f"{one.arm} c{one.concurrency}" for one in cells)
    yield f"# block {first.block}, place {first.order}: {names} on one engine start"
    yield from _trees(testbed, matrix, setting)
    if setting.kv is not None:
        yield line(setting.kv.words("make"))
    for instance in setting.instances():
        yield _start(setting, instance.name)
    for instance in setting.instances():
        yield from _ready(setting, instance.name)
    partial = folder / f"{run_id}.partial"
    for phase in _before_cells(setting, controlled=last in cells):
        yield _client(phase, partial)
    for cell in cells:
        cell_partial = folder / f"{matrix.campaign_id}-{cell.name}.partial"
        yield from _cell(setting, cell, cell_partial)
        if cell == last:
            yield from _controls(setting, cell_partial)
    for instance in reversed(setting.instances()):
        if engine_is_remote(site, instance.host):
            yield line(engine.stop_argv(site, instance))
        else:
            yield f"# engine {instance.name}: SIGTERM to the process started above, and its tree"
    if setting.kv is not None:
        yield line(setting.kv.words("remove"))


def _before_cells(setting: Setting, *, controlled: bool) -> list[str]:
    if setting.kv is None:
        return ["probe"]
    return ["probe", *([f"control-{controls.STORE}"] if controlled else []), "populate", "flush"]


def _trees(testbed: Testbed, matrix: Matrix, setting: Setting) -> Iterator[str]:
    if setting.arm.kv != "none":
        verb = "apply" if setting.arm.patch == "patched" else "revert"
        plan = testbed.site.scenarios[matrix.scenario]
        for target in targets(testbed, plan.instances, setting.env):
            words = [f"{key}={value}" for key, value in sorted(target.env.items())]
            argv = ["env", *words, *target.command] if words else list(target.command)
            yield line([*argv, "-"], "< patch agent: status")
            yield line([*argv, "-"], f"< patch agent: {verb}, by exact digest")
    yield line(provenance.versions_argv(testbed, setting.env))


def _start(setting: Setting, name: str) -> str:
    site = setting.site
    instance = site.instance(name)
    env, command = setting.environment(instance), setting.command(instance)
    argv = engine.engine_argv(site, instance, env, command)
    if not engine_is_remote(site, instance.host):
        argv = ["env", *(f"{key}={value}" for key, value in sorted(env.items())), *argv]
    return line(argv, "&")


def _ready(setting: Setting, name: str) -> Iterator[str]:
    """Every engine is started before the first one is waited for."""
    site = setting.site
    instance = site.instance(name)
    yield f"# until {engine.base_url_of(instance)}{site.engine.ready_path} says 200"
    if asked := engine.root_pid_argv(site, name, setting.names_of(instance)):
        yield line(asked)


def _client(phase: str, partial: Path) -> str:
    return line(clients.client_argv(partial / "raw" / f"plan-{phase}.json", partial))


def _cell(setting: Setting, cell: Place, partial: Path) -> Iterator[str]:
    yield f"# cell {cell.name}: {cell.sessions} sessions from {cell.first_session} on"
    for watched in setting.watched:
        plan = {
            "block_devices": list(watched.block_devices),
            "engines": dict.fromkeys(watched.instances, ROOT_PID),
            "metrics": {
                one: f"{engine.base_url_of(setting.site.instance(one))}/metrics"
                for one in watched.instances
            },
            "rates_hz": instruments.PROBE_RATES_HZ | {"nic": instruments.NIC_RATE_HZ},
            "nics": list(setting.site.device(setting.arm.device).nics),
        }
        if watched.host.exec_prefix:
            yield line(instruments.remote_probes_argv(watched.host, plan), "&")
        else:
            yield line(instruments.probes_argv(partial), "&")
    kv = setting.kv
    if kv is not None:
        yield line(kv.words("look"), "until whole and quiet")
        yield line(kv.words("sync"))
    for command in setting.drop_commands:
        yield line(command)
    yield from _residency(kv, "after_drop", partial)
    for phase in ("rewarm", "measure"):
        yield _client(phase, partial)
    if kv is not None:
        yield from _residency(kv, "after_measure", partial)
        for phase in (FLUSH_AGAIN, "warm"):
            yield _client(phase, partial)


def _controls(setting: Setting, partial: Path) -> Iterator[str]:
    kv = setting.kv
    if kv is None:
        return
    yield "# the negative controls of the block, on sessions of their own"
    yield _client(f"control-{controls.RANDOM_PROMPT}", partial)
    for command in setting.drop_commands:
        yield line(command)
    yield line(kv.words("read in", "STORED_SINCE", "STORED_UNTIL"))
    yield from _residency(kv, controls.WARM_READ, partial)
    yield _client(f"control-{controls.WARM_READ}", partial)


def _residency(kv: KvDirectory | None, moment: str, partial: Path) -> Iterator[str]:
    if kv is not None:
        yield line(instruments.residency_argv(Path(kv.path), moment, partial, kv.host))
