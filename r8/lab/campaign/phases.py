"""The phases of an engine lifetime and of its cells: load between two marks, and durability."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import EngineError
from r8.lab.campaign.engine import read_config, wait_ready, with_root_pid
from r8.lab.instruments import clients, probes
from r8.lab.machine.hosts import QUIET_S
from r8.lab.site.plan import PROBE_SESSION, REWARM_SESSION, flush_share, share, special_session
from r8.model import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.lab.campaign.lifetime import EngineLifetime
    from r8.lab.instruments.recording import Recording
    from r8.lab.machine.hosts import KvDirectory
    from r8.lab.site.arms import Arm, Plan
    from r8.lab.site.plan import Place

# What an engine does late after its last answer is over when a burst begins: a burst waits SETTLE_S
# for the probes as well, and both waits are one.
LATE_S = QUIET_S - probes.SETTLE_S
# The second time a lifetime's flushing sessions are asked for: its plan lies beside the first.
FLUSH_AGAIN = "flush-again"
DURABLE_TIMEOUT_S = 600.0
DURABLE_LOOK_S = 0.5
BURSTS = frozenset({Phase.MEASURE, Phase.WARM})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One cell on its engines, while it is recorded."""

    lifetime: EngineLifetime
    recording: Recording
    place: Place
    arm: Arm

    @property
    def plan(self) -> Plan:
        """The load this site gives the scenario."""
        return self.lifetime.plan

    @property
    def chunks_per_session(self) -> int:
        """Whole chunks of a prompt: what one session leaves on the device."""
        return self.plan.prompt_tokens // self.plan.chunk_tokens

    def read_by(self, instance: int) -> list[int]:
        """The sessions one instance measures: its own, or those the next one populated."""
        count = len(self.plan.instances)
        owner = instance if self.arm.sessions_of == "itself" else (instance + 1) % count
        return share(self.place, owner, count)

    def special(self, base: int) -> list[list[int]]:
        """One session of one use for every instance."""
        return [
            [special_session(base, cell=self.place.index, instance=number)]
            for number in range(len(self.plan.instances))
        ]


def engines_ready(stage: Stage) -> None:
    """Wait until every engine answers, and note which processes they are."""
    lifetime, site = stage.lifetime, stage.lifetime.testbed.site
    for running in lifetime.engines:
        wait_ready(running, site.engine.ready_path, site.engine.ready_timeout_s)
    lifetime.engines[:] = [
        with_root_pid(site, running, lifetime.names_of(instance))
        for running, instance in zip(lifetime.engines, lifetime.instances, strict=True)
    ]
    for running in lifetime.engines:
        host = site.host_of(running.instance)
        stage.recording.event(
            "engine_started", instance=running.instance, host=host, pid=running.root_pid
        )


def first_use(stage: Stage) -> None:
    """First-use costs, and what the engines then say of themselves."""
    load(stage, Phase.PROBE, stage.special(PROBE_SESSION))
    record_config(stage)


def populate(stage: Stage, cells: Sequence[Place]) -> None:
    """The sessions of every cell to come, and flushing the DRAM tier."""
    count = len(stage.plan.instances)
    if stage.arm.kv == "none":
        return
    each = [[n for cell in cells for n in share(cell, one, count)] for one in range(count)]
    load(stage, Phase.POPULATE, each)
    load(stage, Phase.FLUSH, [flush_share(stage.plan, one) for one in range(count)])


def record_config(stage: Stage) -> None:
    """Write down what the running engines say of their own settings (first request logs them)."""
    for engine in stage.lifetime.engines:
        config = read_config(engine.log_path)
        said = {"instance": engine.instance, "source": "engine log", **asdict(config)}
        stage.recording.event("server_config", **said)
        if config.chunk_tokens not in {None, stage.plan.chunk_tokens}:
            raise EngineError(
                f"the engine runs LMCache chunks of {config.chunk_tokens} tokens, the plan says "
                f"{stage.plan.chunk_tokens}",
                where=str(engine.log_path),
                next_step="make LMCACHE_CHUNK_SIZE and the scenario's chunk_tokens agree",
            )


def load(
    stage: Stage,
    phase: Phase,
    sessions: Sequence[Sequence[int]],
    plan_name: str | None = None,
    **facts: str,
) -> None:
    """Run one phase of load between its two marks, on every instance at the same time."""
    burst = phase in BURSTS
    plan, lifetime = stage.plan, stage.lifetime
    total = sum(map(len, sessions))
    count = len(plan.instances)
    each = stage.place.concurrency // count if burst else plan.populate_concurrency
    lifetime.testbed.say(f"{phase} {total} sessions")
    if burst:
        time.sleep(probes.SETTLE_S)
    stage.recording.event(
        f"{phase}_begin",
        sessions=total,
        concurrency=each * count,
        by_instance=_by_name(stage, sessions),
        **facts,
    )
    waves = max(-(-len(mine) // each) for mine in sessions)
    clients.run_load(
        stage.recording,
        plan_name or phase,
        _load_plan(stage, phase, sessions, each * count),
        timeout_s=plan.request_timeout_s * waves + 60,
    )
    stage.recording.event(f"{phase}_end", **facts)
    if burst:
        time.sleep(probes.SETTLE_S)
    elif phase is not Phase.REWARM:
        lifetime.stored.update(number for mine in sessions for number in mine)
    lifetime.require_alive()


def _by_name(stage: Stage, sessions: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    return dict(zip(stage.plan.instances, map(list, sessions), strict=True))


def _load_plan(
    stage: Stage, phase: Phase, sessions: Sequence[Sequence[int]], concurrency: int
) -> dict[str, Any]:
    plan, burst = stage.plan, phase in BURSTS
    first, *others = stage.lifetime.engines
    # The client takes its instances in turn, position by position.
    in_turn = [number for together in zip(*sessions, strict=True) for number in together]
    return {
        "phase": phase,
        "instance": first.instance,
        "base_url": first.base_url,
        "more_instances": {one.instance: one.base_url for one in others},
        "model": plan.model_name,
        "endpoint": plan.endpoint,
        "profile": plan.profile,
        "shape": "burst" if burst else "closed",
        "concurrency": min(concurrency, len(in_turn)),
        "sessions": in_turn,
        "seed": stage.recording.run.seed,
        # Rewarming must not store KV: its write-back would fall into the measured window.
        "prompt_tokens": plan.chunk_tokens // 2 if phase is Phase.REWARM else plan.prompt_tokens,
        # Populating recomputes the same prompts: a cold read must repeat its tokens.
        "output_tokens": plan.output_tokens if burst or phase is Phase.POPULATE else 1,
        "vocab": list(plan.vocab),
        "timeout_s": plan.request_timeout_s,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }


def make_durable(stage: Stage) -> None:
    """Wait until every chunk is a whole file on the device and nothing changes any more.

    The files found are recorded against those expected; judging the difference is not done here.

    Raises:
        EngineError: nothing at all was stored: measuring an empty pool would take hours to refuse.

    """
    kv = stage.lifetime.kv
    if kv is None:
        return
    stage.lifetime.testbed.say("waiting until the KV is durable")
    chunks = len(stage.lifetime.stored) * stage.chunks_per_session
    expected = chunks * stage.plan.ranks
    state, quiet_s = _written(stage, kv, expected)
    stage.recording.event(
        "durable",
        files=state[0],
        bytes=state[1],
        expected_files=expected,
        expected_bytes=chunks * stage.plan.chunk_tokens * stage.plan.bytes_per_token
        + expected * stage.arm.file_header_bytes,
        quiet_ns=round(quiet_s * 1e9),
    )
    if not state[0]:
        raise EngineError(
            f"the pool {kv.path} is empty after populating {len(stage.lifetime.stored)} sessions",
            where=f"instances {', '.join(stage.plan.instances)}",
            next_step="look in the engine log for LMCache's Stored lines and its disk settings",
        )


def _written(stage: Stage, kv: KvDirectory, expected: int) -> tuple[tuple[int, int], float]:
    """Files and bytes of the pool, and for how many seconds after a sync it has not changed.

    Without the files expected, or with a pool that never rests, it gives up at the timeout: the
    interval is then shorter than asked for, or 0, and rule C2 says so.
    """
    deadline = time.monotonic() + DURABLE_TIMEOUT_S
    state, since, synced = kv.state(), time.monotonic(), False
    while time.monotonic() < deadline:
        whole = state[0] >= expected or not state[0]
        if whole and not synced:
            kv.sync()
            synced, since = True, time.monotonic()
        time.sleep(DURABLE_LOOK_S)
        stage.lifetime.require_alive()
        now = kv.state()
        if now != state:
            # What came after the sync may still be in memory: it is synced anew.
            state, since, synced = now, time.monotonic(), False
        elif synced and time.monotonic() - since >= QUIET_S:
            return state, QUIET_S
    kv.sync()
    return kv.state(), 0.0


def drop(stage: Stage) -> None:
    """Drop the page cache with the site's command, then look what is left of every KV file."""
    lifetime = stage.lifetime
    lifetime.testbed.say("dropping the page cache")
    probes.drop(stage.recording, lifetime.drops, lifetime.kv, lifetime.kv_offset)


def residency(stage: Stage, moment: str) -> None:
    """Record how much of every KV file is in the page cache."""
    kv, offset = stage.lifetime.kv, stage.lifetime.kv_offset
    if kv is not None:
        probes.residency(stage.recording, Path(kv.path), moment, kv.host, offset)


def measure(stage: Stage) -> None:
    """The cold burst, and the same sessions warm: what loading costs without the device."""
    kv = stage.lifetime.kv
    load(stage, Phase.REWARM, stage.special(REWARM_SESSION))
    if kv is not None:
        time.sleep(LATE_S)  # nothing of it is stored
    sessions = [stage.read_by(number) for number in range(len(stage.plan.instances))]
    load(stage, Phase.MEASURE, sessions)
    if kv is None:
        return
    residency(stage, "after_measure")
    _leave_dram(stage)
    load(stage, Phase.WARM, sessions)


def _leave_dram(stage: Stage) -> None:
    """Push the measured sessions out of the DRAM tier again; their files stay in the page cache.

    The flushing sessions are read back, not computed. Without it the warm burst would find a part
    of its sessions in the tier, and LMCache pins what a lookup found until the whole step is over:
    where that is all of the tier, the rest of the burst waits for buffers that cannot come.
    """
    count = len(stage.plan.instances)
    again = [flush_share(stage.plan, one) for one in range(count)]
    load(stage, Phase.FLUSH, again, FLUSH_AGAIN)
