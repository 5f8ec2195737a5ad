"""Concurrent model loading: every worker loads a model of its own, cold, at one barrier.

The order is the argument: make the models, bring them to the device, drop the page cache, look
whether nothing is left, then load each once. The same loads again, from the page cache, show that
the byte balance can say no. An arm with tool `engine` starts engines instead of loaders; they stay
until the window's bytes are counted, and one of them stands for all in the warm load.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.machine.commands import typed
from r8.lab.transfer import engine_loading, model_files
from r8.lab.transfer.engine_loading import is_engine
from r8.lab.transfer.stage import (
    Files,
    Job,
    act,
    drop,
    drop_commands,
    look,
    look_command,
    make_durable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from r8.lab.site.arms import TransferArm, TransferPlan
    from r8.lab.transfer.stage import Stage, Transfer

# Enough to run every line of the loader once.
REWARM_BYTES = 1_000_000
TOOL = Path(__file__).with_name("tools") / "load_safetensors.py"


def tool_of(arm: TransferArm) -> Path:
    """The program of an arm's workers."""
    return engine_loading.TOOL if is_engine(arm) else TOOL


def models_of(transfer: Transfer) -> dict[str, Path]:
    """The model directory of each worker."""
    if transfer.arm.files_dir is None:
        return {name: transfer.path / f"model-{name}" for name in transfer.workers}
    found = model_files.found_models(transfer.path, len(transfer.workers))
    return dict(zip(transfer.workers, found, strict=True))


def make_models(transfer: Transfer) -> Files:
    """A model for each worker, made on the spot unless the site names a directory of them."""
    plan, made, models = transfer.plan, transfer.arm.files_dir is None, models_of(transfer)
    if is_engine(transfer.arm):
        engine_loading.require_engines(transfer)
        if made:
            engine_loading.make_models(transfer, models)
    elif made:
        transfer.testbed.say(f"making {len(models)} models of {plan.worker_bytes} bytes")
        for directory in models.values():
            model_files.make_model(directory, plan.worker_bytes, plan.shard_bytes, transfer.seed)
    directories = list(models.values())
    if made:
        files, size = model_files.size_of(directories)
        return Files(files=files, total_bytes=size, made=True)
    # A directory of the site may hold more models than workers, and more in each than weights.
    files, size = model_files.weights_of(directories)
    around = model_files.size_of([transfer.path])
    return Files(files=files, total_bytes=size, made=False, around=around)


def rewarm(stage: Stage) -> None:
    """Load a small model from elsewhere: a drop takes the libraries' pages away as well."""
    if is_engine(stage.arm):
        engine_loading.rewarm(stage)
        return
    small = stage.testbed.work_dir / "rewarm"
    if not small.is_dir():
        model_files.make_model(small, REWARM_BYTES, REWARM_BYTES, stage.seed)
    act(stage, "rewarm", {name: {"path": str(small)} for name in stage.workers})


def _phases(stage: Stage, files: Files) -> None:
    make_durable(stage, files)
    drop(stage)
    rewarm(stage)
    models = models_of(stage)
    if is_engine(stage.arm):
        act(stage, "measure", engine_loading.loads(stage, models))
        look(stage, "after_measure")
        act(stage, "release", {name: {"do": "stop"} for name in models})
        engine_loading.warm(stage, models)
        return
    orders = {name: {"path": str(path)} for name, path in models.items()}
    act(stage, "measure", orders)
    look(stage, "after_measure")
    act(stage, "warm", orders)


def device_bytes(plan: TransferPlan, name: str) -> int:
    """Bytes one cell of an arm puts on its device."""
    return max(plan.levels_of(name)) * plan.worker_bytes


def files_said(transfer: Transfer) -> str:
    """What is made in the directory, as a dry run says it."""
    return f"{transfer.plan.worker_bytes} bytes a worker, made there"


def commands_around(
    transfer: Transfer, partial: Path, loads: Iterable[str], warm: str
) -> Iterator[str]:
    """The commands before and after the loads, as a dry run prints them."""
    yield typed(transfer.directory.words("sync"))
    yield typed(transfer.directory.words("look"), "until quiet")
    yield from drop_commands(transfer, partial)
    yield from loads
    yield look_command(transfer, partial, "after_measure")
    yield f"# {warm} once more, from the page cache: the certificate must refuse it"


def _commands(transfer: Transfer, partial: Path) -> Iterator[str]:
    loads: Iterable[str] = (
        "# a small model is loaded by each; then each loads its own, at one instant",
    )
    warm = "each"
    if is_engine(transfer.arm):
        loads, warm = engine_loading.start_commands(transfer, "at one instant"), "the last model"
    yield from commands_around(transfer, partial, loads, warm)


JOB = Job(
    name="load",
    moves="read",
    tool=tool_of,
    make=make_models,
    phases=_phases,
    device_bytes=device_bytes,
    files_said=files_said,
    commands=_commands,
)
