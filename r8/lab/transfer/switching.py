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

from r8.lab.transfer import engine_loading
from r8.lab.transfer.engine_loading import is_engine
from r8.lab.transfer.loading import (
    commands_around,
    device_bytes,
    files_said,
    make_models,
    models_of,
    rewarm,
    tool_of,
)
from r8.lab.transfer.stage import Job, act, drop, look, make_durable
from r8.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from r8.lab.transfer.stage import Files, Stage, Transfer


def schedule(workers: tuple[str, ...], period_ns: int) -> dict[str, dict[str, int]]:
    """When each worker takes over and until when it serves, after the first switch."""
    return {
        name: {"after_ns": number * period_ns, "serve_after_ns": (number + 1) * period_ns}
        for number, name in enumerate(workers)
    }


def _phases(stage: Stage, files: Files) -> None:
    period_s = stage.settings["period_s"]
    make_durable(stage, files)
    drop(stage)
    rewarm(stage)
    models = models_of(stage)
    planned = schedule(stage.workers, round(period_s * NS_PER_S))
    stage.recording.event("switch_plan", period_s=period_s, time_scale=stage.plan.time_scale)
    if is_engine(stage.arm):
        act(stage, "measure", engine_loading.switches(stage, models, planned))
        look(stage, "after_measure")
        engine_loading.warm(stage, models)
        return
    paths = {name: {"path": str(path)} for name, path in models.items()}
    orders: dict[str, dict[str, Any]] = {name: paths[name] | planned[name] for name in paths}
    act(stage, "measure", orders)
    look(stage, "after_measure")
    # One worker: each had the device to itself. The last one: where memory cannot hold all models,
    # the first is no longer cached, and its cold read would refute N1.
    last = stage.workers[-1]
    act(stage, "warm", {last: paths[last]})


def _commands(transfer: Transfer, partial: Path) -> Iterator[str]:
    period = f"{transfer.settings['period_s']:g} s"
    loads: Iterable[str] = (
        f"# a small model is loaded; then every {period} a worker loads its own, serves",
    )
    if is_engine(transfer.arm):
        loads = engine_loading.start_commands(transfer, "one after another on one instance")
    yield from commands_around(transfer, partial, loads, "the last model")


JOB = Job(
    name="switch",
    moves="read",
    tool=tool_of,
    make=make_models,
    phases=_phases,
    device_bytes=device_bytes,
    files_said=files_said,
    commands=_commands,
)
