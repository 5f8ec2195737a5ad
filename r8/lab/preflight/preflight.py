"""What must be true before anything starts: every check says what it saw and what to type next."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.lab.machine.hosts import engine_is_remote
from r8.lab.patching.series import read_series
from r8.lab.preflight.check import Check
from r8.lab.preflight.cluster import device_checks, engine_checks, host_checks
from r8.lab.preflight.plan import plan_checks
from r8.lab.preflight.transfer import memory_needed, work_checks
from r8.lab.rehearsal import fallback as ladder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.site.file import LoadedSite, Plan, Site

# A run directory of R1 holds a few MB; a full disk in the middle costs a block.
RUNS_FREE_BYTES = 500_000_000
# A Unix socket's path takes 107 characters (sun_path in unix(7)); LMCache adds "/engine_", a UUID
# and "_service_lookup_lmcache_rpc_port_0".
SOCKET_DIR_CHARACTERS = 107 - len("/engine_") - 36 - len("_service_lookup_lmcache_rpc_port_0")


def scenario_of(site: Site, wanted: str) -> str:
    """A scenario's id from its own name or from its report's, `R2`."""
    names = (*site.scenarios, *site.works)
    if wanted in names:
        return wanted
    # A report with several questions: its first in the file stands for it.
    return next((name for name in names if name.startswith(f"{wanted.lower()}-")), wanted)


def preflight(loaded: LoadedSite, scenario: str, runs_root: Path) -> list[Check]:
    """Look at everything the scenario needs from this site; starts and changes nothing."""
    site = loaded.site
    if scenario in site.works:
        checks = [*work_checks(site, site.works[scenario]), _runs_root(site, runs_root)]
        needed = 0 if site.rehearsal is None else memory_needed(site.rehearsal, site, scenario)
        return checks + list(() if site.rehearsal is None else _rehearsal(needed))
    if scenario not in site.scenarios:
        known = ", ".join((*site.scenarios, *site.works)) or "none"
        return [
            Check(
                name="scenario",
                ok=False,
                saw=f"no [scenarios.{scenario}] in {loaded.path}",
                next_step=f"add the table, or choose one of: {known}",
            )
        ]
    plan = site.scenarios[scenario]
    checks = [*_ports(site, plan), *_sockets(site, plan)]
    checks += [*plan_checks(site, plan), _runs_root(site, runs_root)]
    if site.rehearsal is not None:
        checks += _versions(site.rehearsal.lmcache)
        checks += _rehearsal(site.rehearsal.memory_bytes)
    else:
        checks += [*host_checks(site), *engine_checks(site)]
        for name in dict.fromkeys(site.arms[arm].device for arm in plan.arms):
            checks += device_checks(site, site.device(name), plan)
    return checks


def require_ready(loaded: LoadedSite, scenario: str, runs_root: Path) -> None:
    """Stop before anything starts when a check failed.

    Raises:
        SiteError: naming the first failed check, and how many there are.

    """
    failed = [check for check in preflight(loaded, scenario, runs_root) if not check.ok]
    if failed:
        more = f" (and {len(failed) - 1} more: r8 preflight)" if len(failed) > 1 else ""
        raise SiteError(
            f"{failed[0].name}: {failed[0].saw}{more}",
            where=str(loaded.path),
            next_step=failed[0].next_step,
        )


def _ports(site: Site, plan: Plan) -> Iterator[Check]:
    for name in plan.instances:
        port = site.instance(name).port
        if site.host(site.host_of(name)).exec_prefix:
            continue  # another host's port: the start itself refuses one that is answered
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                yield Check(
                    name=f"port {port}",
                    ok=False,
                    saw=f"in use or not allowed: {error.strerror}",
                    next_step=f"stop what listens there (ss -ltnp 'sport = :{port}') or change "
                    f"the port of instance {name}",
                )
            else:
                yield Check(name=f"port {port}", ok=True, saw="free")


def _sockets(site: Site, plan: Plan) -> Iterator[Check]:
    """Room for the names of LMCache's sockets, which an engine started here makes in TMPDIR.

    Longer names leave the engine healthy without its KV tier.
    """
    elsewhere = all(engine_is_remote(site, site.host_of(name)) for name in plan.instances)
    # A prefix hands no setting of this shell on: there the site's own counts alone.
    place = site.engine.env.get("TMPDIR") or (None if elsewhere else tempfile.gettempdir())
    if place is None:
        return
    ok = len(place) <= SOCKET_DIR_CHARACTERS
    yield Check(
        name="temporary directory",
        ok=ok,
        saw=f"{place}: {len(place)} characters, LMCache's socket names leave room for "
        f"{SOCKET_DIR_CHARACTERS}",
        next_step="" if ok else "start again with TMPDIR=/tmp, or set TMPDIR in [engine.env]",
    )


def _runs_root(site: Site, runs_root: Path) -> Check:
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
    if base.stat().st_dev in devices:
        return Check(
            name="run directory",
            ok=False,
            saw=f"{base} lies on a KV device: writing evidence would disturb what it measures",
            next_step="give another place with --runs-root",
        )
    ok = writable and free >= RUNS_FREE_BYTES
    return Check(
        name="run directory",
        ok=ok,
        saw=f"{base}: {free} bytes free, {'writable' if writable else 'not writable'}",
        next_step="" if ok else f"free {RUNS_FREE_BYTES} bytes there or give --runs-root",
    )


def _versions(wanted: tuple[str, ...]) -> Iterator[Check]:
    """Whether the patch series knows each LMCache; asked before an environment is built."""
    known = {one for entry in read_series().entries for one in entry.versions}
    for version in wanted:
        ok = version in known
        yield Check(
            name=f"LMCache {version}",
            ok=ok,
            saw="the patch series knows it" if ok else "no entry of patches/*/series.toml",
            next_step="" if ok else f"name one of {', '.join(sorted(known))} in rehearsal.lmcache",
        )


def _rehearsal(needed: int) -> Iterator[Check]:
    """What the rehearsal's ground needs; missing capabilities are steps down, not failures."""
    available = _available_bytes()
    yield Check(
        name="memory",
        ok=available >= needed,
        saw=f"{available} bytes available, the rehearsal needs {needed}",
        next_step=""
        if available >= needed
        else "close something, or lower rehearsal.memory_bytes "
        "together with VLLM_CPU_KVCACHE_SPACE and image_bytes",
    )
    for capability in ladder.capabilities():
        yield Check(name=capability.name, ok=True, saw=capability.saw)


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
