"""What a scenario without a KV engine needs: its devices, room for the files, and the tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.machine import commands
from r8.lab.machine.hosts import engine_words
from r8.lab.preflight.check import Check
from r8.lab.preflight.cluster import POOL_HEADROOM, place_checks
from r8.lab.preflight.plan import SECONDS_PER_MINUTE
from r8.lab.site.file import fill
from r8.lab.site.plan import levels_of
from r8.lab.transfer import checkpointing
from r8.lab.transfer.engine_loading import engine_fault, is_engine
from r8.lab.transfer.model_files import SUFFIX, model_directories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.site.file import Site
    from r8.lab.site.rehearsal import Rehearsal
    from r8.lab.site.transfer import WorkArm, WorkPlan

# A Python with torch in it.
WORKER_BYTES = 400_000_000
IMPORTS = "import torch, safetensors"


def work_checks(site: Site, plan: WorkPlan) -> Iterator[Check]:
    """Everything but the run directory, which is every scenario's."""
    yield _duration(site, plan)
    yield from _here(site, plan)
    yield from _engines(site, plan)
    if site.rehearsal is not None:
        return  # the rehearsal builds its own devices and environment
    yield _tools(site)
    names = tuple(dict.fromkeys((*plan.arms, *plan.other_arms)))
    for device in dict.fromkeys(plan.arm[name].device for name in names):
        here = [name for name in names if plan.arm[name].device == device]
        pool = max(pool_bytes(plan, name) for name in here)
        yield from place_checks(site, site.device(device), round(pool * POOL_HEADROOM), plan)
    for name in names:
        if plan.arm[name].files_dir is not None:
            yield _files(name, plan.arm[name], max(levels_of(plan, name)))


def pool_bytes(plan: WorkPlan, name: str) -> int:
    """Bytes one cell of an arm puts on its device; what the site names is there already."""
    arm, workers = plan.arm[name], max(levels_of(plan, name))
    if arm.files_dir is not None:
        return 0
    if plan.job != "checkpoint":
        return workers * plan.worker_bytes
    settings = plan.settings | arm.settings
    earlier = workers * int(settings.get("tensor_bytes", checkpointing.TENSOR_BYTES))
    snapshots = workers if arm.tool == checkpointing.FULL_EACH else 1
    ceiling = int(settings.get("ceiling_bytes", checkpointing.CEILING_BYTES))
    # What fio writes is removed before the ranks write.
    return earlier + max(snapshots * plan.worker_bytes, ceiling // checkpointing.CEILING_READINGS)


def memory_needed(rehearsal: Rehearsal, site: Site, scenario: str) -> int:
    """Bytes of memory a rehearsal takes: images of the devices, and what the workers load."""
    plan = site.works[scenario]
    images = sum(shape.image_bytes for shape in rehearsal.shapes_of(scenario))
    # A loader holds its model and, as long as it reads, the pages it comes from.
    loaded = 2 * max(plan.concurrency) * plan.worker_bytes
    return images + loaded + max(plan.concurrency) * WORKER_BYTES


def _duration(site: Site, plan: WorkPlan) -> Check:
    cells = sum(len(plan.levels.get(arm, plan.concurrency)) for arm in plan.arms)
    seconds = plan.blocks * cells * (plan.start_estimate_s + plan.cell_estimate_s)
    saw = f"{plan.blocks} blocks of {cells} cells: about {seconds / SECONDS_PER_MINUTE:.0f} min "
    saw += "by the site's estimates"
    # A job that writes takes its own ceiling, inside its cells.
    if site.rehearsal is None and plan.job != "checkpoint":
        devices = {site.device(plan.arm[arm].device) for arm in plan.arms}
        fio_s = plan.blocks * sum(one.fio.longest_s for one in devices if one.fio.read_bytes != 0)
        saw += f", and at most {fio_s / SECONDS_PER_MINUTE:.0f} min of fio" if fio_s else ""
    return Check(name="duration", ok=True, saw=saw)


def _here(site: Site, plan: WorkPlan) -> Iterator[Check]:
    """Workers, clocks and probes of a work run are this host's."""
    for device in dict.fromkeys(arm.device for arm in plan.arm.values()):
        host = site.host(site.device(device).host)
        if host.exec_prefix:
            yield Check(
                name=f"host of {device}",
                ok=False,
                saw=f"{host.name} is behind a prefix",
                next_step=f"start R8 on {host.name}, with a site file that names no prefix for it",
            )


def _engines(site: Site, plan: WorkPlan) -> Iterator[Check]:
    """Arms that start the engine: whether its command can be given a model, and often enough."""
    for name, arm in plan.arm.items():
        if not is_engine(arm):
            continue
        at_once = 1 if plan.job == "switch" else max(levels_of(plan, name))
        fault = engine_fault(site, at_once)
        if fault is None and site.rehearsal is None and arm.files_dir is None:
            fault = "an engine loads real models only, and files_dir names none"
        yield Check(
            name=f"engines of {name}",
            ok=fault is None,
            saw=fault or f"{at_once} at once of {len(site.instances)} instances",
            next_step=""
            if fault is None
            else "mend [engine], [[instances]] or the arm's files_dir",
        )


def _tools(site: Site) -> Check:
    python = fill(site.engine.python, site.vars, where="engine.python")
    done = commands.run(engine_words(site, [*python, "-c", IMPORTS]))
    return Check(
        name="loader",
        ok=done.ok,
        saw="torch and safetensors import" if done.ok else f"{IMPORTS}: {done.error}",
        next_step="" if done.ok else "install both where engine.python runs",
    )


def _files(name: str, arm: WorkArm, workers: int) -> Check:
    root = Path(arm.files_dir or "")
    found = model_directories(root)
    ok = len(found) >= workers
    return Check(
        name=f"models of {name}",
        ok=ok,
        saw=f"{len(found)} directories with {SUFFIX} files below {root}, {workers} workers",
        next_step="" if ok else "give each worker a model directory of its own there, no links",
    )
