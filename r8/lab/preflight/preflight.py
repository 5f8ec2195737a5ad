"""What must be true before anything starts: every requirement says what it saw and what to type."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.lab.machine.hosts import FILE_SYSTEM_FACTOR
from r8.lab.preflight.cluster import device_checks, host_checks
from r8.lab.preflight.kv import KvScenario
from r8.lab.preflight.requirement import Requirement
from r8.lab.preflight.transfer import TransferScenario
from r8.lab.rehearsal.device import available_memory_bytes
from r8.lab.rehearsal.fallback import capabilities
from r8.roles import CONTRACTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.preflight.scenario import Scenario
    from r8.lab.site.file import LoadedSite, Site

# A run directory of R1 holds a few MB; a full disk in the middle costs a block.
RUNS_FREE_BYTES = 500_000_000
SECONDS_PER_MINUTE = 60.0


def scenario_of(site: Site, wanted: str | None) -> str:
    """A scenario's id from its own name or from its report's, `R2`; None: the site's first."""
    names = (*site.scenarios, *site.transfers)
    if wanted is None:
        return names[0] if names else "r1-parallel-read"
    if wanted in names:
        return wanted
    # A report with several questions: its first in the file stands for it.
    return next((name for name in names if name.startswith(f"{wanted.lower()}-")), wanted)


def scenario_on(loaded: LoadedSite, name: str) -> Scenario:
    """A scenario that the site has."""
    kind = TransferScenario if name in loaded.site.transfers else KvScenario
    return kind(loaded=loaded, name=name)


def preflight(loaded: LoadedSite, scenario: str, runs_root: Path) -> list[Requirement]:
    """Look at everything the scenario needs from this site; starts and changes nothing."""
    site = loaded.site
    if site.plan_of(scenario) is None:
        known = ", ".join((*site.scenarios, *site.transfers)) or "none"
        saw = f"no [scenarios.{scenario}] in {loaded.path}"
        step = f"add the table, or choose one of: {known}"
        return [Requirement(name="scenario", saw=saw, next_step=step)]
    found = scenario_on(loaded, scenario)
    return [
        *found.of_plan(),
        _duration(found),
        _runs_root(site, runs_root),
        *(_cluster(found) if site.rehearsal is None else _rehearsal(found)),
    ]


def require_ready(loaded: LoadedSite, scenario: str, runs_root: Path) -> None:
    """Stop before anything starts when a requirement is not met.

    Raises:
        SiteError: naming the first one, and how many there are.

    """
    failed = [one for one in preflight(loaded, scenario, runs_root) if not one.ok]
    if failed:
        more = f" (and {len(failed) - 1} more: r8 preflight)" if len(failed) > 1 else ""
        raise SiteError(
            f"{failed[0].name}: {failed[0].saw}{more}",
            where=str(loaded.path),
            next_step=failed[0].next_step,
        )


def _duration(scenario: Scenario) -> Requirement:
    """By the site's estimates; a shaped device is read for some seconds, inside them."""
    plan, site, starts = scenario.plan, scenario.site, scenario.starts()
    cells = sum(len(plan.levels_of(arm)) for arm in plan.arms)
    minutes = plan.blocks * (starts * plan.start_estimate_s + cells * plan.cell_estimate_s)
    minutes /= SECONDS_PER_MINUTE
    saw = f"{plan.blocks} blocks of {cells} cells on {starts} starts: about {minutes:.0f} min by "
    saw += "the site's estimates"
    if site.rehearsal is None and scenario.calibrated:
        devices = {site.device(site.arms_of(scenario.name)[arm].device) for arm in plan.arms}
        fio_s = plan.blocks * sum(one.fio.longest_s for one in devices if one.fio.read_bytes != 0)
        saw += f", and at most {fio_s / SECONDS_PER_MINUTE:.0f} min of fio" if fio_s else ""
    return Requirement(name="duration", saw=saw)


def _runs_root(site: Site, runs_root: Path) -> Requirement:
    base = runs_root
    while not base.exists():
        base = base.parent
    free = shutil.disk_usage(base).free
    writable = os.access(base, os.W_OK)
    devices = {
        Path(device.kv_dir).stat().st_dev
        for device in site.devices
        if site.rehearsal is None
        and not site.host(device.host).exec_prefix
        and Path(device.kv_dir).is_dir()
    }
    saw = f"{base}: {free} bytes free, {'writable' if writable else 'not writable'}"
    step = f"free {RUNS_FREE_BYTES} bytes there or give --runs-root"
    if base.stat().st_dev in devices:
        saw = f"{base} lies on a KV device: writing evidence would disturb what it measures"
        step = "give another place with --runs-root"
    elif writable and free >= RUNS_FREE_BYTES:
        step = ""
    return Requirement(name="run directory", saw=saw, next_step=step)


def _cluster(scenario: Scenario) -> Iterator[Requirement]:
    site = scenario.site
    yield from host_checks(site)
    yield from scenario.of_software()
    for name, size in scenario.pools().items():
        pool = round(size * FILE_SYSTEM_FACTOR)
        arms = site.arms_of(scenario.name)
        roles = {arms[arm].role for arm in scenario.plan.every_arm if arms[arm].device == name}
        counted = any(CONTRACTS[role].counted for role in roles)
        yield from device_checks(site, site.device(name), pool, scenario.plan, counted=counted)


def _rehearsal(scenario: Scenario) -> Iterator[Requirement]:
    """What a rehearsal needs; missing capabilities lower the fallback level and are no failure."""
    rehearsal = scenario.site.rehearsal
    if rehearsal is None:
        return
    yield from scenario.of_rehearsal(rehearsal)
    needed, available = scenario.memory_bytes(rehearsal), available_memory_bytes()
    saw = f"{available} bytes available, the rehearsal needs {needed}"
    step = "close something, or lower rehearsal.memory_bytes together with VLLM_CPU_KVCACHE_SPACE "
    step += "and image_bytes"
    yield Requirement(name="memory", saw=saw, next_step="" if available >= needed else step)
    for capability in capabilities():
        warning = "" if capability.present else "missing: the rehearsal uses a lesser device"
        yield Requirement(name=capability.name, saw=capability.saw, warning=warning)
