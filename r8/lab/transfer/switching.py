"""Model switching at a compressed time scale: load, serve until the next switch, load the next one.

Every switch has a worker of its own, which waits with everything imported: at its instant it takes
over, loads its model cold, and answers until the next one's instant, when it lets its memory go.
So a switch costs what the published model counts, the load, and nothing that does not scale with
the device, such as the start of a framework. A load that is not over when the next switch is due
serves nothing. An arm with tool `engine` leaves nothing out: at each instant the engine that served
is stopped, another one is started on its own model, and serves from its first answer on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.errors import SiteError
from r8.lab.transfer import engine_loading
from r8.lab.transfer.jobs import Job
from r8.lab.transfer.loading import loaders, make_models, models_of, rewarm
from r8.lab.transfer.stage import act, drop, look, make_durable
from r8.units import NS_PER_S

if TYPE_CHECKING:
    from r8.lab.transfer.stage import Files, WorkStage

PERIOD = "period_s"


def schedule(workers: tuple[str, ...], period_ns: int) -> dict[str, dict[str, int]]:
    """When each worker takes over and until when it serves, after the first switch."""
    return {
        name: {"after_ns": number * period_ns, "serve_after_ns": (number + 1) * period_ns}
        for number, name in enumerate(workers)
    }


def _phases(stage: WorkStage, files: Files) -> None:
    period_s = stage.setting(PERIOD)
    if period_s is None or period_s <= 0:
        raise SiteError(
            f"a switching scenario needs settings.{PERIOD} above 0",
            where=f"works.{stage.recording.run.scenario}",
            next_step=f"give the seconds between two switches here, e.g. {PERIOD} = 180.0",
        )
    make_durable(stage, files)
    drop(stage)
    rewarm(stage)
    models = models_of(stage)
    planned = schedule(stage.workers, round(period_s * NS_PER_S))
    stage.recording.event("switch_plan", period_s=period_s, time_scale=stage.plan.time_scale)
    if engine_loading.is_engine(stage.arm):
        act(stage, "measure", engine_loading.switches(stage, models, planned))
        look(stage, "after_measure")
        engine_loading.warm(stage, models)
        return
    paths = {name: {"path": str(path)} for name, path in models.items()}
    orders: dict[str, dict[str, Any]] = {name: paths[name] | planned[name] for name in paths}
    act(stage, "measure", orders)
    look(stage, "after_measure")
    # One alone: they share the device one has to itself while it serves. The last: in memory that
    # does not hold all models the first is cold again, and a true cold read would refute N1.
    last = stage.workers[-1]
    act(stage, "warm", {last: paths[last]})


JOB = Job(moves="read", make=make_models, specs=loaders, phases=_phases)
