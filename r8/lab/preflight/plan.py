"""What a scenario's own numbers must satisfy, with the arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.lab.preflight.check import Check
from r8.lab.site.plan import levels_of, life_sessions, lives_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.lab.site.file import Plan, Site

SECONDS_PER_MINUTE = 60.0


def pool_bytes(site: Site, plan: Plan, device: str) -> int:
    """KV bytes that lie on a device at once: those of the largest life, flushing included."""
    arms = [name for name in plan.arms if site.arms[name].device == device]
    lives = [
        members
        for members in lives_of(arms, site.arms).values()
        if site.arms[members[0]].kv != "none"
    ]
    measured = max(
        (life_sessions(plan_for(plan, site.arms[members[0]]), members) for members in lives),
        default=0,
    )
    flushed = plan.flush_sessions * len(plan.instances) if lives else 0
    return (measured + flushed) * plan.prompt_tokens * plan.bytes_per_token


def plan_checks(site: Site, plan: Plan) -> Iterator[Check]:
    """Flushing, the KV in flight, and how long the matrix takes."""
    yield _flush(plan)
    yield _in_flight(plan)
    yield _populated_at_once(plan)
    yield _duration(site, plan)


def _flush(plan: Plan) -> Check:
    """Sessions of flushing must push the measured ones out of an engine's DRAM tier."""
    flushed = plan.flush_sessions * plan.prompt_tokens * plan.bytes_per_token
    tier = plan.cpu_tier_bytes * plan.ranks
    ok = flushed >= tier
    ranks = f" ({plan.ranks} ranks)" if plan.ranks > 1 else ""
    return Check(
        name="flush",
        ok=ok,
        saw=f"{plan.flush_sessions} sessions = {flushed} bytes, DRAM tier {tier}{ranks}",
        next_step="" if ok else "raise flush_sessions until their KV exceeds cpu_tier_bytes",
    )


def _in_flight(plan: Plan) -> Check:
    """What one engine loads at once, beside the tier it is loaded through.

    Smaller than one request the tier hangs the engine for ever; smaller than the whole burst it is
    safe as long as requests are loaded one after another, and deadlocks with async loading.
    """
    session = _session_bytes(plan)
    burst = max(plan.concurrency) // len(plan.instances)
    tier = plan.cpu_tier_bytes * plan.ranks
    saw = f"a session has {session} bytes of KV, a burst {burst} x {session} = {burst * session}"
    saw += f"; an engine's DRAM tier has {tier}"
    if tier < session:
        step = "raise cpu_tier_bytes and LMCACHE_MAX_LOCAL_CPU_SIZE above one session"
        return Check(name="KV in flight", ok=False, saw=saw, next_step=step)
    warning = ""
    if tier < burst * session:
        warning = "the tier holds less than a burst: keep LMCACHE_ENABLE_ASYNC_LOADING off"
    return Check(name="KV in flight", ok=True, saw=saw, warning=warning)


def _populated_at_once(plan: Plan) -> Check:
    """What one engine stores at once, beside the tier it is stored through.

    A chunk for which the tier has no room is not stored, and its session is not whole on disk.
    """
    session, tier = _session_bytes(plan), plan.cpu_tier_bytes * plan.ranks
    at_once = plan.populate_concurrency
    saw = f"{at_once} x {session} = {at_once * session} bytes stored at once by an engine"
    saw += f", its DRAM tier has {tier}"
    warning = ""
    if tier < at_once * session:
        most = max(1, tier // session)
        warning = f"what finds no room in the tier is not stored: set populate_concurrency = {most}"
    return Check(name="KV populated", ok=True, saw=saw, warning=warning)


def _session_bytes(plan: Plan) -> int:
    return plan.prompt_tokens // plan.chunk_tokens * plan.chunk_tokens * plan.bytes_per_token


def _duration(site: Site, plan: Plan) -> Check:
    lives = lives_of(plan.arms, site.arms)
    cells = sum(len(levels_of(plan, arm)) for arm in plan.arms)
    seconds = plan.blocks * (len(lives) * plan.start_estimate_s + cells * plan.cell_estimate_s)
    saw = f"{plan.blocks} blocks of {cells} cells on {len(lives)} engine starts: about "
    saw += f"{seconds / SECONDS_PER_MINUTE:.0f} min by the site's estimates"
    fio_s = plan.blocks * fio_seconds(site, plan)
    if fio_s:
        saw += f", and at most {fio_s / SECONDS_PER_MINUTE:.0f} min of fio"
    return Check(name="duration", ok=True, saw=saw)


def fio_seconds(site: Site, plan: Plan) -> int:
    """The longest that fio takes before one block, on all devices the arms name."""
    if site.rehearsal is not None:
        return 0  # a shaped device is read for some seconds: inside the estimates
    devices = {site.device(site.arms[arm].device) for arm in plan.arms}
    return sum(one.fio.longest_s for one in devices if one.fio.read_bytes != 0)
