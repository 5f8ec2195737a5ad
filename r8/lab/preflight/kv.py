"""Scenarios with a KV engine: what their numbers must satisfy, and the commands they would run."""

from __future__ import annotations

import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.campaign import controls, engine, provenance
from r8.lab.campaign.lifetime import EngineLifetime
from r8.lab.campaign.patch_state import targets
from r8.lab.campaign.phases import FLUSH_AGAIN
from r8.lab.instruments import probes
from r8.lab.instruments.clients import client_argv
from r8.lab.machine.commands import typed
from r8.lab.machine.hosts import engine_is_remote
from r8.lab.patching.series import read_series
from r8.lab.preflight.cluster import engine_checks
from r8.lab.preflight.requirement import Requirement
from r8.lab.preflight.scenario import Scenario
from r8.lab.site.matrix import LIFETIME_SUFFIX
from r8.lab.site.plan import control_place, lifetime_sessions, lifetimes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from r8.lab.site.arms import Plan
    from r8.lab.site.machines import Rehearsal
    from r8.lab.site.plan import Place
    from r8.lab.testbed import Testbed

# A Unix socket's path takes 107 characters (sun_path in unix(7)); LMCache adds "/engine_", a UUID
# and "_service_lookup_lmcache_rpc_port_0".
SOCKET_DIR_CHARACTERS = 107 - len("/engine_") - 36 - len("_service_lookup_lmcache_rpc_port_0")
ROOT_PID = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KvScenario(Scenario):
    """A scenario of `[scenarios.NAME]`."""

    @property
    def plan(self) -> Plan:
        """The load this site gives the scenario."""
        return self.site.scenarios[self.name]

    @property
    def calibrated(self) -> bool:
        """Always: the prediction rests on it."""
        return True

    def starts(self) -> int:
        """One a lifetime."""
        return len(lifetimes_of(self.plan.arms, self.site.arms))

    def pools(self) -> dict[str, int]:
        """KV bytes of the largest lifetime on each device, flushing included."""
        devices = dict.fromkeys(self.site.arms[name].device for name in self.plan.arms)
        return {name: self._pool_bytes(name) for name in devices}

    def _pool_bytes(self, device: str) -> int:
        plan, arms = self.plan, self.site.arms
        mine = [name for name in plan.arms if arms[name].device == device]
        lifetimes = [one for one in lifetimes_of(mine, arms).values() if arms[one[0]].kv != "none"]
        measured = max(
            (lifetime_sessions(plan.on(arms[one[0]]), one) for one in lifetimes), default=0
        )
        flushed = plan.flush_sessions * len(plan.instances) if lifetimes else 0
        return (measured + flushed) * plan.prompt_tokens * plan.bytes_per_token

    def memory_bytes(self, rehearsal: Rehearsal) -> int:
        """As the site file says."""
        return rehearsal.memory_bytes

    def of_plan(self) -> Iterator[Requirement]:
        """Ports and names of sockets, flushing, and the KV in flight."""
        yield from self._ports()
        yield from self._sockets()
        yield self._flush()
        yield self._in_flight()
        yield self._populated_at_once()

    def _ports(self) -> Iterator[Requirement]:
        for name in self.plan.instances:
            port = self.site.instance(name).port
            if self.site.host(self.site.host_of(name)).exec_prefix:
                continue  # another host's port: the start itself refuses one that is answered
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError as error:
                    saw = f"in use or not allowed: {error.strerror}"
                    step = f"stop what listens there (ss -ltnp 'sport = :{port}') or change the "
                    step += f"port of instance {name}"
                    yield Requirement(name=f"port {port}", saw=saw, next_step=step)
                else:
                    yield Requirement(name=f"port {port}", saw="free")

    def _sockets(self) -> Iterator[Requirement]:
        """Room for the names of LMCache's sockets, which an engine started here makes in TMPDIR.

        Longer names leave the engine healthy without its KV tier.
        """
        site = self.site
        elsewhere = all(engine_is_remote(site, site.host_of(one)) for one in self.plan.instances)
        # A prefix hands no setting of this shell on: there the site's own counts alone.
        place = site.engine.env.get("TMPDIR") or (None if elsewhere else tempfile.gettempdir())
        if place is None:
            return
        saw = f"{place}: {len(place)} characters, LMCache's socket names leave room for "
        saw += f"{SOCKET_DIR_CHARACTERS}"
        step = "start again with TMPDIR=/tmp, or set TMPDIR in [engine.env]"
        step = "" if len(place) <= SOCKET_DIR_CHARACTERS else step
        yield Requirement(name="temporary directory", saw=saw, next_step=step)

    def _flush(self) -> Requirement:
        """Sessions of flushing must push the measured ones out of an engine's DRAM tier."""
        plan, tier = self.plan, self._tier_bytes
        flushed = plan.flush_sessions * plan.prompt_tokens * plan.bytes_per_token
        ranks = f" ({plan.ranks} ranks)" if plan.ranks > 1 else ""
        saw = f"{plan.flush_sessions} sessions = {flushed} bytes, DRAM tier {tier}{ranks}"
        step = "raise flush_sessions until their KV exceeds cpu_tier_bytes"
        return Requirement(name="flush", saw=saw, next_step="" if flushed >= tier else step)

    def _in_flight(self) -> Requirement:
        """What one engine loads at once, beside the tier it is loaded through.

        A tier smaller than one request hangs the engine for ever; one smaller than the whole burst
        is safe as long as requests are loaded one after another, and deadlocks with async loading.
        """
        session, tier = self._session_bytes, self._tier_bytes
        burst = max(self.plan.concurrency) // len(self.plan.instances)
        saw = f"a session has {session} bytes of KV, a burst {burst} x {session} = "
        saw += f"{burst * session}; an engine's DRAM tier has {tier}"
        step = warning = ""
        if tier < session:
            step = "raise cpu_tier_bytes and LMCACHE_MAX_LOCAL_CPU_SIZE above one session"
        elif tier < burst * session:
            warning = "the tier holds less than a burst: keep LMCACHE_ENABLE_ASYNC_LOADING off"
        return Requirement(name="KV in flight", saw=saw, next_step=step, warning=warning)

    def _populated_at_once(self) -> Requirement:
        """What one engine stores at once, beside the tier it is stored through.

        A chunk for which the tier has no room is not stored, and its session is not whole on disk.
        """
        session, tier, at_once = (
            self._session_bytes,
            self._tier_bytes,
            self.plan.populate_concurrency,
        )
        saw = f"{at_once} x {session} = {at_once * session} bytes stored at once by an engine"
        saw += f", its DRAM tier has {tier}"
        warning = ""
        if tier < at_once * session:
            most = max(1, tier // session)
            warning = f"chunks without room in the tier are lost: set populate_concurrency = {most}"
        return Requirement(name="KV populated", saw=saw, warning=warning)

    @property
    def _tier_bytes(self) -> int:
        return self.plan.cpu_tier_bytes * self.plan.ranks

    @property
    def _session_bytes(self) -> int:
        plan = self.plan
        return plan.prompt_tokens // plan.chunk_tokens * plan.chunk_tokens * plan.bytes_per_token

    def of_rehearsal(self, rehearsal: Rehearsal) -> Iterator[Requirement]:
        """Whether the patch series knows each LMCache."""
        known = {one for entry in read_series().entries for one in entry.versions}
        names = ", ".join(sorted(known))
        for version in rehearsal.lmcache:
            saw, step = "the patch series knows it", ""
            if version not in known:
                saw = "no entry of patches/*/series.toml"
                step = f"name one of {names} in rehearsal.lmcache"
            yield Requirement(name=f"LMCache {version}", saw=saw, next_step=step)

    def of_software(self) -> Iterator[Requirement]:
        """The engine and all it needs."""
        yield from engine_checks(self.site)

    def commands(
        self, testbed: Testbed, ids: Mapping[Place, str], block: Sequence[Place], folder: Path
    ) -> Iterator[str]:
        """One engine lifetime: start, populate, every cell, and the end."""
        first, run_id = next(iter(ids.items()))
        arm = self.site.arms[first.arm]
        lifetime = EngineLifetime(
            testbed=testbed,
            plan=self.plan.on(arm),
            arm=arm,
            home=folder / f"{run_id}{LIFETIME_SUFFIX}",
            kv_dir=str(testbed.kv_roots[arm.device] / f"r8-{run_id}"),
        )
        last = control_place(block, self.site.arms, self.plan)
        names = ", ".join(f"{one.arm} c{one.concurrency}" for one in ids)
        yield ""
        yield f"# block {first.block}, place {first.order}: {names} on one engine start"
        yield from _patch_state(lifetime, self.plan)
        yield from _start(lifetime)
        for phase in _shared_phases(lifetime, controlled=last in ids):
            yield _client(phase, folder / f"{run_id}.partial")
        for place, own_id in ids.items():
            partial = folder / f"{own_id}.partial"
            yield f"# cell {place.name}: {place.sessions} sessions from {place.first_session} on"
            yield from _cell(lifetime, partial)
            if place == last:
                yield from _controls(lifetime, partial)
        yield from _stop(lifetime)

    def ending(self) -> Iterator[str]:
        """The patch is taken back."""
        yield ""
        yield "# at the end every LMCache is brought back into the patch state it was found in"


def _patch_state(lifetime: EngineLifetime, plan: Plan) -> Iterator[str]:
    testbed, env = lifetime.testbed, lifetime.testbed.env(lifetime.arm)
    if lifetime.kv is not None:
        verb = "apply" if lifetime.arm.is_patched else "revert"
        for target in targets(testbed, plan.instances, env):
            words = [f"{key}={value}" for key, value in sorted(target.env.items())]
            argv = ["env", *words, *target.command] if words else list(target.command)
            yield typed([*argv, "-"], "< patch agent: status")
            yield typed([*argv, "-"], f"< patch agent: {verb}, by exact digest")
    yield typed(provenance.versions_argv(testbed, env))


def _start(lifetime: EngineLifetime) -> Iterator[str]:
    """Every engine is started before the first one is waited for."""
    site = lifetime.testbed.site
    if lifetime.kv is not None:
        yield typed(lifetime.kv.words("make"))
    for instance in lifetime.instances:
        env, command = lifetime.environment(instance), lifetime.command(instance)
        argv = engine.engine_argv(site, instance, env, command)
        if not engine_is_remote(site, instance.host):
            argv = ["env", *(f"{key}={value}" for key, value in sorted(env.items())), *argv]
        yield typed(argv, "&")
    for instance in lifetime.instances:
        yield f"# until {engine.base_url_of(instance)}{site.engine.ready_path} says 200"
        if asked := engine.root_pid_argv(site, instance.name, lifetime.names_of(instance)):
            yield typed(asked)


def _shared_phases(lifetime: EngineLifetime, *, controlled: bool) -> list[str]:
    if lifetime.kv is None:
        return ["probe"]
    return ["probe", *([f"control-{controls.STORE}"] if controlled else []), "populate", "flush"]


def _stop(lifetime: EngineLifetime) -> Iterator[str]:
    site = lifetime.testbed.site
    for instance in reversed(lifetime.instances):
        if engine_is_remote(site, instance.host):
            yield typed(engine.stop_argv(site, instance))
        else:
            yield f"# engine {instance.name}: SIGTERM to the process started above, and its tree"
    if lifetime.kv is not None:
        yield typed(lifetime.kv.words("remove"))


def _client(phase: str, partial: Path) -> str:
    return typed(client_argv(partial / "raw" / f"plan-{phase}.json", partial))


def _cell(lifetime: EngineLifetime, partial: Path) -> Iterator[str]:
    site, kv = lifetime.testbed.site, lifetime.kv
    for watched in lifetime.testbed.watched(lifetime.arm.device, lifetime.plan.instances):
        plan = probes.PROBE_PLAN | {
            "block_devices": list(watched.block_devices),
            "engines": dict.fromkeys(watched.instances, ROOT_PID),
            "metrics": {
                one: f"{engine.base_url_of(site.instance(one))}/metrics"
                for one in watched.instances
            },
            "nics": list(site.device(lifetime.arm.device).nics),
        }
        if watched.host.exec_prefix:
            yield typed(probes.remote_probes_argv(watched.host, plan), "&")
        else:
            yield typed(probes.probes_argv(partial), "&")
    if kv is not None:
        yield typed(kv.words("look"), "until whole and quiet")
        yield typed(kv.words("sync"))
    for command in lifetime.drops:
        yield typed(command)
    yield from _residency(lifetime, "after_drop", partial)
    for phase in ("rewarm", "measure"):
        yield _client(phase, partial)
    if kv is not None:
        yield from _residency(lifetime, "after_measure", partial)
        for phase in (FLUSH_AGAIN, "warm"):
            yield _client(phase, partial)


def _controls(lifetime: EngineLifetime, partial: Path) -> Iterator[str]:
    if lifetime.kv is None:
        return
    yield "# the negative controls of the block, on sessions of their own"
    yield _client(f"control-{controls.RANDOM_PROMPT}", partial)
    for command in lifetime.drops:
        yield typed(command)
    yield typed(lifetime.kv.words("read in", "STORED_SINCE", "STORED_UNTIL"))
    yield from _residency(lifetime, controls.WARM_READ, partial)
    yield _client(f"control-{controls.WARM_READ}", partial)


def _residency(lifetime: EngineLifetime, moment: str, partial: Path) -> Iterator[str]:
    kv = lifetime.kv
    if kv is not None:
        yield typed(probes.residency_argv(Path(kv.path), moment, partial, kv.host))
