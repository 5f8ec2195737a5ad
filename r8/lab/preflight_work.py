"""What a scenario without a KV engine needs: its devices, room for the files, and the tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab import commands
from r8.lab.check import Check
from r8.lab.engine_loading import engine_fault, is_engine
from r8.lab.hosts import engine_words
from r8.lab.model_files import SUFFIX, model_directories
from r8.lab.plan import levels_of
from r8.lab.preflight_plan import SECONDS_PER_MINUTE
from r8.lab.preflight_site import place_checks
from r8.lab.site import fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.site import Site
    from r8.lab.site_rehearsal import Rehearsal
    from r8.lab.work_site import WorkArm, WorkPlan

# A Python with torch in it.
WORKER_BYTES = 400_000_000
IMPORTS = "import torch, safetensors"


def work_checks(site: Site, plan: WorkPlan) -> Iterator[Check]:
    """Everything but the run directory, which is every scenario's."""
    yield _duration(plan)
    yield from _here(site, plan)
    yield from _engines(site, plan)
    if site.rehearsal is not None:
        return  # the rehearsal builds its own devices and environment
    yield _tools(site)
    for name in dict.fromkeys((*plan.arms, *plan.other_arms)):
        arm = plan.arm[name]
        pool = 0 if arm.files_dir is not None else max(plan.concurrency) * plan.worker_bytes
        yield from place_checks(site, site.device(arm.device), pool, plan)
        if arm.files_dir is not None:
            yield _files(name, arm, max(plan.concurrency))


def memory_needed(rehearsal: Rehearsal, site: Site, scenario: str) -> int:
    """Bytes of memory a rehearsal takes: images of the devices, and what the workers load."""
    plan = site.works[scenario]
    images = sum(shape.image_bytes for shape in rehearsal.shapes_of(scenario))
    # A loader holds its model and, as long as it reads, the pages it comes from.
    loaded = 2 * max(plan.concurrency) * plan.worker_bytes
    return images + loaded + max(plan.concurrency) * WORKER_BYTES


def _duration(plan: WorkPlan) -> Check:
    cells = sum(len(plan.levels.get(arm, plan.concurrency)) for arm in plan.arms)
    seconds = plan.blocks * cells * (plan.start_estimate_s + plan.cell_estimate_s)
    return Check(
        name="duration",
        ok=True,
        saw=f"{plan.blocks} blocks of {cells} cells: about {seconds / SECONDS_PER_MINUTE:.0f} min "
        "by the site's estimates",
    )


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
