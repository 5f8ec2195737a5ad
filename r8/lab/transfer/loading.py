"""Concurrent model loading: every worker loads a model of its own, cold, at one barrier.

The order is the argument: make the models, bring them to the device, drop the page cache, look
whether nothing is left, then load each once. The same loads again, from the page cache, show that
the byte balance can say no. An arm with tool `engine` starts engines instead of loaders; they stay
until the window's bytes are counted, and one of them stands for all in the warm load.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.transfer import engine_loading, model_files
from r8.lab.transfer.jobs import Job
from r8.lab.transfer.stage import Files, act, drop, look, make_durable, one_a_worker

if TYPE_CHECKING:
    from r8.lab.transfer.stage import WorkStage
    from r8.lab.transfer.worker_pool import WorkerSpec

# Enough to run every line of the loader once.
REWARM_BYTES = 1_000_000
TOOL = Path(__file__).with_name("tools") / "load_safetensors.py"


def models_of(stage: WorkStage) -> dict[str, Path]:
    """The model directory of each worker."""
    if stage.arm.files_dir is None:
        return {name: stage.path / f"model-{name}" for name in stage.workers}
    found = model_files.found_models(stage.path, len(stage.workers))
    return dict(zip(stage.workers, found, strict=True))


def make_models(stage: WorkStage) -> Files:
    """A model for each worker, made on the spot unless the site names a directory of them."""
    plan, made, models = stage.plan, stage.arm.files_dir is None, models_of(stage)
    if engine_loading.is_engine(stage.arm):
        # Engines of a switching run follow one another.
        engine_loading.require_engines(stage, 1 if plan.job == "switch" else len(models))
        if made:
            engine_loading.make_models(stage, models)
    elif made:
        stage.say(f"making {len(models)} models of {plan.worker_bytes} bytes")
        for directory in models.values():
            model_files.make_model(
                directory, plan.worker_bytes, plan.shard_bytes, stage.recording.run.seed
            )
    directories = list(models.values())
    if made:
        files, size = model_files.size_of(directories)
        return Files(files=files, total_bytes=size, made=True)
    # A directory of the site may hold more models than workers, and more in each than weights.
    files, size = model_files.weights_of(directories)
    around = model_files.size_of([stage.path])
    return Files(files=files, total_bytes=size, made=False, around=around)


def loaders(stage: WorkStage) -> list[WorkerSpec]:
    """A process a worker, each with its device."""
    tool = engine_loading.TOOL if engine_loading.is_engine(stage.arm) else TOOL
    return one_a_worker(stage, tool)


def rewarm(stage: WorkStage) -> None:
    """Load a small model from elsewhere: a drop takes the libraries' pages away as well."""
    if engine_loading.is_engine(stage.arm):
        engine_loading.rewarm(stage)
        return
    small = stage.testbed.work_dir / "rewarm"
    if not small.is_dir():
        model_files.make_model(small, REWARM_BYTES, REWARM_BYTES, stage.recording.run.seed)
    act(stage, "rewarm", {name: {"path": str(small)} for name in stage.workers})


def _phases(stage: WorkStage, files: Files) -> None:
    make_durable(stage, files)
    drop(stage)
    rewarm(stage)
    models = models_of(stage)
    if engine_loading.is_engine(stage.arm):
        act(stage, "measure", engine_loading.loads(stage, models))
        look(stage, "after_measure")
        act(stage, "release", {name: {"do": "stop"} for name in models})
        engine_loading.warm(stage, models)
        return
    orders = {name: {"path": str(path)} for name, path in models.items()}
    act(stage, "measure", orders)
    look(stage, "after_measure")
    act(stage, "warm", orders)


JOB = Job(moves="read", make=make_models, specs=loaders, phases=_phases)
