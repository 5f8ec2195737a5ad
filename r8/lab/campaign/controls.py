"""The negative controls: once a block, after its cells, on sessions no cell measures.

A certificate that never says no says nothing. So one session of every engine is stored before
everything else of the lifetime, leaves the DRAM tier with the flush, and is read at the very end
with one thing wrong: its files were read into the page cache after the drop. And a prompt that was
never stored is sent. What the rules must say of both is not known here.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from r8.lab.campaign import phases
from r8.lab.campaign.lifetime import ControlSessions
from r8.lab.campaign.phases import load, residency
from r8.lab.instruments import probes
from r8.lab.site.plan import CONTROL_SESSION, WARM_CONTROL_SESSION
from r8.model import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.lab.campaign.phases import Stage
    from r8.lab.machine.hosts import KvDirectory

# As the rules know them, in the detail of control_begin and control_end.
STORE = "store"
RANDOM_PROMPT = "random_prompt"
WARM_READ = "warm_read"
# A few chunks an engine writes behind its answer; without them the control shows nothing, and a
# rule will say so.
STORED_TIMEOUT_S = 60.0
STORED_QUIET_S = 0.5


def store(stage: Stage) -> ControlSessions | None:
    """Store the control's own session: before all others, so that they drive it out of DRAM."""
    kv = stage.lifetime.kv
    if kv is None:
        return None
    since = kv.now()
    sessions = stage.special(WARM_CONTROL_SESSION)
    _load(stage, STORE, sessions)
    _wait_written(stage, kv)
    return ControlSessions(sessions=tuple(map(tuple, sessions)), since=since, until=kv.now())


def run(stage: Stage, stored: ControlSessions) -> None:
    """The random prompt, then a drop, the files read into the page cache, and the warm read."""
    kv = stage.lifetime.kv
    if kv is None:
        return
    _load(stage, RANDOM_PROMPT, stage.special(CONTROL_SESSION))
    _wait_written(stage, kv)
    stage.recording.event("control_drop_begin")
    stage.recording.event("control_drop_end", **probes.drop_caches(stage.lifetime.drops))
    done = kv.read_in(stored.since, stored.until)
    read_in = done.output.strip()
    stage.recording.event(
        "control_read_in",
        rc=done.returncode,
        error=done.error,
        bytes=int(read_in) if read_in.isdigit() else None,
    )
    residency(stage, WARM_READ)
    time.sleep(probes.SETTLE_S)
    _load(stage, WARM_READ, stored.sessions)
    time.sleep(probes.SETTLE_S)


def _load(stage: Stage, name: str, sessions: Sequence[Sequence[int]]) -> None:
    load(stage, Phase.CONTROL, sessions, f"control-{name}", control=name)


def _wait_written(stage: Stage, kv: KvDirectory) -> None:
    """Wait until every chunk stored so far is a file and the pool no longer changes."""
    expected = len(stage.lifetime.stored) * stage.chunks_per_session * stage.plan.ranks
    deadline = time.monotonic() + STORED_TIMEOUT_S
    state, since = kv.state(), time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(min(phases.DURABLE_LOOK_S, STORED_QUIET_S))
        now = kv.state()
        if now != state:
            state, since = now, time.monotonic()
        elif now[0] >= expected and time.monotonic() - since >= STORED_QUIET_S:
            return
        stage.lifetime.require_alive()
