"""What must be true before anything starts: every check says what it saw and what to type next."""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import PatchError, SiteError
from r8.lab import commands, patching
from r8.lab.plan import life_sessions, lives_of
from r8.lab.rehearsal import ladder
from r8.lab.site import DROP_CACHES, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.site import Device, LoadedSite, Plan, Site

# A run directory of R1 holds a few MB; a full disk in the middle costs a block.
RUNS_FREE_BYTES = 500_000_000
# Room for what the file system itself needs beside the pool.
POOL_HEADROOM = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at; `next_step` is empty when it is fine."""

    name: str
    ok: bool
    saw: str
    next_step: str = ""


def preflight(loaded: LoadedSite, scenario: str, runs_root: Path) -> list[Check]:
    """Look at everything the scenario needs from this site; starts and changes nothing."""
    site = loaded.site
    if scenario not in site.scenarios:
        known = ", ".join(site.scenarios) or "none"
        return [
            Check(
                name="scenario",
                ok=False,
                saw=f"no [scenarios.{scenario}] in {loaded.path}",
                next_step=f"add the table, or choose one of: {known}",
            )
        ]
    plan = site.scenarios[scenario]
    checks = [*_ports(site, plan), _flush(plan), _runs_root(site, runs_root)]
    if site.rehearsal is not None:
        checks += _rehearsal(site)
    else:
        checks += _engine(site)
        for name in dict.fromkeys(site.arms[arm].device for arm in plan.arms):
            checks += _device(site, site.device(name), plan)
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


def pool_bytes(site: Site, plan: Plan, device: str) -> int:
    """KV bytes that lie on a device at once: those of the largest life, flushing included."""
    arms = [name for name in plan.arms if site.arms[name].device == device]
    lives = [
        members
        for members in lives_of(arms, site.arms).values()
        if site.arms[members[0]].kv != "none"
    ]
    measured = max((life_sessions(plan, members) for members in lives), default=0)
    flushed = plan.flush_sessions * len(plan.instances) if lives else 0
    return (measured + flushed) * plan.prompt_tokens * plan.bytes_per_token


def _ports(site: Site, plan: Plan) -> Iterator[Check]:
    for name in plan.instances:
        port = site.instance(name).port
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


def _flush(plan: Plan) -> Check:
    """Sessions of flushing must push the measured ones out of the DRAM tier."""
    flushed = plan.flush_sessions * plan.prompt_tokens * plan.bytes_per_token
    ok = flushed >= plan.cpu_tier_bytes
    return Check(
        name="flush",
        ok=ok,
        saw=f"{plan.flush_sessions} sessions = {flushed} bytes, DRAM tier {plan.cpu_tier_bytes}",
        next_step="" if ok else "raise flush_sessions until their KV exceeds cpu_tier_bytes",
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
        if site.rehearsal is None and Path(device.kv_dir).is_dir()
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


def _engine(site: Site) -> Iterator[Check]:
    prefix = [*site.host(site.engine.host).exec_prefix, *site.engine.exec_prefix]
    python = [*prefix, *fill(site.engine.python, site.vars, where="engine.python")]
    done = commands.run([*python, "-c", "import sys; print(sys.version.split()[0])"])
    yield Check(
        name="engine python",
        ok=done.ok,
        saw=done.output.strip() if done.ok else f"{done.line}: {done.error}",
        next_step="" if done.ok else "mend engine.python and engine.exec_prefix",
    )
    if done.ok:
        yield _lmcache(python)
    model = site.vars.get("model_dir")
    if model is not None:
        there = commands.run([*prefix, "test", "-d", model]).ok
        yield Check(
            name="model",
            ok=there,
            saw=f"{model} {'is there' if there else 'is not a directory'}",
            next_step="" if there else "mend vars.model_dir",
        )


def _lmcache(python: list[str]) -> Check:
    """Whether the patch series knows the LMCache this engine imports."""
    try:
        found = patching.status(patching.PatchTarget(command=tuple(python), env={}))
    except PatchError as error:
        return Check(name="LMCache", ok=False, saw=error.what, next_step=error.next_step)
    ok = found.state in {"base", "patched"}
    return Check(
        name="LMCache",
        ok=ok,
        saw=f"{found.lmcache_version}: {found.what}",
        next_step="" if ok else "install a version of patches/*/series.toml (r8 patch show)",
    )


def _device(site: Site, device: Device, plan: Plan) -> Iterator[Check]:
    path = Path(device.kv_dir)
    if not path.is_dir():
        yield Check(
            name=f"device {device.name}",
            ok=False,
            saw=f"{path} is not a directory here",
            next_step="mount it, or mend kv_dir of that device",
        )
        return
    writable = os.access(path, os.W_OK)
    yield Check(
        name=f"device {device.name}",
        ok=writable,
        saw=f"{path} {'is writable' if writable else 'is not writable'}",
        next_step="" if writable else f"give this user a directory of its own under {path}",
    )
    pool = round(pool_bytes(site, plan, device.name) * POOL_HEADROOM)
    free = shutil.disk_usage(path).free
    yield Check(
        name=f"pool on {device.name}",
        ok=free >= pool,
        saw=f"{free} bytes free, the pool needs {pool}",
        next_step="" if free >= pool else f"free {pool - free} bytes on {path}",
    )
    drop = list(site.host(device.host).drop_caches or DROP_CACHES)
    allowed = os.geteuid() == 0 or "sudo" in drop
    yield Check(
        name="drop caches",
        ok=allowed,
        saw=f"{' '.join(drop)} as uid {os.geteuid()}",
        next_step=""
        if allowed
        else 'run as root, or set drop_caches = ["sudo", "-n", ...] with a sudoers rule for it',
    )


def _rehearsal(site: Site) -> Iterator[Check]:
    """What the rehearsal's ground needs; missing capabilities are steps down, not failures."""
    assert site.rehearsal is not None  # noqa: S101 - for the type checker; the caller looked
    available = _available_bytes()
    needed = site.rehearsal.memory_bytes
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
