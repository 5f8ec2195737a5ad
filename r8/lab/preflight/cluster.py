"""What a cluster's hosts, engine and devices must offer; looks, starts nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import InstrumentError, PatchError, SiteError
from r8.lab.instruments.fio import SWITCH_OFF, fio_plan
from r8.lab.instruments.probes import topology
from r8.lab.machine import commands, remote
from r8.lab.machine.hosts import engine_words, free_bytes, through
from r8.lab.patching import patching
from r8.lab.preflight.accelerators import accelerators
from r8.lab.preflight.requirement import Requirement
from r8.lab.site.arms import TransferPlan
from r8.lab.site.file import fill
from r8.lab.site.machines import DROP_CACHES
from r8.roles import Role
from r8.units import s_from_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.machine.commands import CommandResult
    from r8.lab.site.arms import Plan
    from r8.lab.site.file import Site
    from r8.lab.site.machines import Device, Host

# Beyond this, lines of two hosts' logs cannot be told apart by their wall clocks.
WALL_OFFSET_S = 1.0
NETWORK = frozenset({"nfs", "nfs4"})


def device_checks(
    site: Site, device: Device, pool: int, plan: Plan | TransferPlan, *, counted: bool = True
) -> Iterator[Requirement]:
    """The directory of a device that must take `pool` bytes, and what it lies on.

    `counted`: whether the roles of its arms need a block device that counts their bytes.
    """
    host, name = site.host(device.host), f"device {device.name}"
    look = 'test -d "$1" && { test -w "$1" && echo writable || echo "not writable"; }'
    done = commands.run(through(host.exec_prefix, ["sh", "-c", look, "r8", device.kv_dir]))
    if not done.ok:
        saw = f"{device.kv_dir} is not a directory on {host.name}{_said(done)}"
        step = "mount it, or correct kv_dir of that device"
        yield Requirement(name=name, saw=saw, next_step=step)
        return
    found, step = done.output.strip(), f"give this user a directory under {device.kv_dir}"
    step = "" if found == "writable" else step
    yield Requirement(name=name, saw=f"{device.kv_dir} is {found}", next_step=step)
    free = free_bytes(host, device.kv_dir)
    saw = f"{free} bytes free, the pool needs {pool}"
    step = "" if free >= pool else f"free {pool - free} bytes on {device.kv_dir}"
    yield Requirement(name=f"pool on {device.name}", saw=saw, next_step=step)
    yield from _fio(site, plan, device, free)
    yield _lies_on(host, device, counted=counted)
    yield _drop(host)


def _said(done: CommandResult) -> str:
    """Error output in brackets, ssh's for example; a test that is only false prints none."""
    return f" ({done.error})" if done.error else ""


def _fio(site: Site, plan: Plan | TransferPlan, device: Device, free: int) -> Iterator[Requirement]:
    """Whether fio is there and its files have room; nothing where the site switched it off.

    A checkpoint's ceiling is written by fio whatever the site says of reading, in files its cells
    have room for.
    """
    writes = isinstance(plan, TransferPlan) and plan.job == "checkpoint"
    planned = None if writes else fio_plan(site, plan, device.name)
    if planned is None and not writes:
        return
    there = commands.run(through(site.host(device.host).exec_prefix, ["fio", "--version"]))
    version, step = there.output.strip(), ""
    if not there.ok:
        saw = f"{there.line}: {there.error}"
        step = "install fio there" if writes else f"install fio there, or {SWITCH_OFF}"
    elif planned is None:
        saw = f"{version}; it writes the ceiling"
    else:
        saw = f"{version}; {free} bytes free, its files need {planned.needed_bytes}; at most "
        saw += f"{device.fio.longest_s} s a block"
        try:
            planned.require_room(free)
        except SiteError as error:
            saw, step = error.what, error.next_step
    yield Requirement(name=f"fio on {device.name}", saw=saw, next_step=step)


def _lies_on(host: Host, device: Device, *, counted: bool) -> Requirement:
    """Down to the members, as the certificate will ask for them."""
    name = f"topology of {device.name}"
    try:
        if host.exec_prefix:
            remote.install(host)
        found = topology(Path(device.kv_dir), host)
    except InstrumentError as error:
        return Requirement(name=name, saw=error.what, next_step=error.next_step)
    block = str(found.get("device") or "")
    if not block and device.block_device is None:
        return _no_block_device(name, found, counted=counted)
    saw = f"{block or 'no block device'} ({found.get('kind')}) at {found.get('mount')}"
    members = found.get("members") or []
    saw += f", members {', '.join(map(str, members))}" if members else ""
    step = f"correct block_device = {device.block_device!r} of {device.name}"
    ok = bool(block) and device.block_device in {None, block}
    return Requirement(name=name, saw=saw, next_step="" if ok else step)


def _no_block_device(name: str, found: dict[str, Any], *, counted: bool) -> Requirement:
    """Nothing here counts what is read; some roles accept a network mount all the same."""
    saw = f"no block device: {found.get('fstype')} from {found.get('source')} at "
    saw += f"{found.get('mount')}"
    if not counted and found.get("fstype") in NETWORK:
        warning = "C1, C2, C4, C8, C9 and N1 will be unknown for it: its claims stay INVALID"
        return Requirement(name=name, saw=saw, warning=warning)
    step = (
        "mount a block device there, or correct kv_dir: no counter would see the bytes; a network "
    )
    step += f"mount is accepted for the role {Role.BASELINE}"
    return Requirement(name=name, saw=saw, next_step=step)


def _drop(host: Host) -> Requirement:
    words, uid = list(host.drop_caches or DROP_CACHES), str(os.geteuid())
    if host.exec_prefix:
        uid = commands.run(through(host.exec_prefix, ["id", "-u"])).output.strip()
    allowed = uid == "0" or "sudo" in words or host.drop_caches is not None
    saw = f"{' '.join(words)} on {host.name} as uid {uid or '?'}"
    step = 'run as root, or set drop_caches = ["sudo", "-n", ...] with a sudoers rule for it'
    return Requirement(name="drop caches", saw=saw, next_step="" if allowed else step)


def host_checks(site: Site) -> Iterator[Requirement]:
    """Hosts behind a prefix: whether they answer, and how far their clocks are from ours."""
    for host in site.hosts:
        if not host.exec_prefix:
            continue
        step = warning = ""
        try:
            offset = remote.clock_offset(host)
        except InstrumentError as error:
            saw, step = error.what, error.next_step
        else:
            wall_s, way_s = s_from_ns(offset.wall_ns), s_from_ns(offset.way_ns)
            saw = f"answers in {way_s:.4f} s; its wall clock is {wall_s:+.4f} s from ours"
            if abs(wall_s) > WALL_OFFSET_S:
                warning = "set both clocks by the same time server: their logs cannot be joined"
        yield Requirement(name=f"host {host.name}", saw=saw, next_step=step, warning=warning)


def engine_checks(site: Site) -> Iterator[Requirement]:
    """The engine's Python, its LMCache, its model and its accelerators."""
    words = fill(site.engine.python, site.vars, where="engine.python")
    code = "import sys; print(sys.version.split()[0])"
    done = commands.run(engine_words(site, [*words, "-c", code]))
    saw, step = f"{done.line}: {done.error}", "correct engine.python and engine.exec_prefix"
    if done.ok:
        saw, step = done.output.strip(), ""
    yield Requirement(name="engine python", saw=saw, next_step=step)
    if done.ok:
        yield _lmcache(engine_words(site, words))
        yield _same_user(site)
    yield accelerators(site)
    model = site.vars.get("model_dir")
    if model is not None:
        there = commands.run(engine_words(site, ["test", "-d", model]))
        saw = f"{model} {'is there' if there.ok else f'is not a directory{_said(there)}'}"
        step = "" if there.ok else "correct vars.model_dir"
        yield Requirement(name="model", saw=saw, next_step=step)


def _lmcache(python: list[str]) -> Requirement:
    """Whether the patch series knows the LMCache this engine imports."""
    try:
        found = patching.status(patching.PatchTarget(command=tuple(python), env={}))
    except PatchError as error:
        return Requirement(name="LMCache", saw=error.what, next_step=error.next_step)
    known = found.state in {"base", "patched"}
    step = "" if known else "install a version of patches/*/series.toml (r8 patch show)"
    return Requirement(name="LMCache", saw=f"{found.lmcache_version}: {found.what}", next_step=step)


def _same_user(site: Site) -> Requirement:
    """Whether the probes may look at what the engine's user owns: its files and its counters."""
    host, warning = site.host(site.engine.host), ""
    ours = commands.run(through(host.exec_prefix, ["id", "-u"])).output.strip()
    theirs = commands.run(engine_words(site, ["id", "-u"])).output.strip()
    if not ours:
        warning = "whether they may read the engine's files and counters is not known"
    elif ours not in {"0", theirs}:
        warning = "residency and /proc/PID/io of another user cannot be read: C3 and C4 would be "
        warning += "unknown; run R8 as root there, or the engine as this user"
    saw = f"probes run as uid {ours or '?'}, the engine as uid {theirs or '?'}"
    return Requirement(name="probes' user", saw=saw, warning=warning)
