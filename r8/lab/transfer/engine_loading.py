"""The engine as a loader: what a worker of `tools/load_engine.py` is told, and its models.

An arm with tool `engine` starts the site's own engine command, without a KV tier, on a model
directory of the medium. A loader has an instance of the site for itself (port, accelerator by the
instance's environment); a switching run has one instance, which all its engines use in turn. The
weights are real ones to the engine: made on the spot by the rehearsal's tiny model, found in
`files_dir` on a cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import SiteError
from r8.lab.machine import commands
from r8.lab.machine.commands import typed
from r8.lab.rehearsal.build import MODEL_TIMEOUT_S, model_argv
from r8.lab.rehearsal.device import available_memory_bytes
from r8.lab.site.arms import ENGINE_TOOL
from r8.lab.site.file import fill, fill_one
from r8.lab.transfer.stage import act

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from r8.lab.site.arms import TransferArm, TransferPlan
    from r8.lab.site.file import Site
    from r8.lab.site.machines import Instance
    from r8.lab.transfer.stage import Stage, Transfer

TOOL = Path(__file__).with_name("tools") / "load_engine.py"
MODEL_WORD = "{model_dir}"
# What an engine may take of this host's memory; a site of another size says `engine_memory_bytes`.
ENGINE_BYTES = 6_000_000_000


def is_engine(arm: TransferArm) -> bool:
    """Whether this arm's workers start engines."""
    return arm.tool == ENGINE_TOOL


def engines_at_once(plan: TransferPlan, name: str, workers: int | None = None) -> int:
    """How many engines of an arm run at the same time; those of a switching run take turns."""
    if plan.job == "switch":
        return 1
    return max(plan.levels_of(name)) if workers is None else workers


def require_engines(transfer: Transfer) -> None:
    """Stop before anything is made when the cell's engines cannot run here at once.

    Raises:
        SiteError: too few instances, too little memory, or a command that names no model.

    """
    site, where = transfer.testbed.site, transfer.where
    count = engines_at_once(transfer.plan, transfer.place.arm, transfer.place.concurrency)
    what = engine_fault(site, count)
    if what is not None:
        raise SiteError(what, where=where, next_step="correct [engine] and [[instances]]")
    each = int(transfer.settings.get("engine_memory_bytes", ENGINE_BYTES))
    available = available_memory_bytes()
    if available < count * each:
        raise SiteError(
            f"{count} engines of {each} bytes do not fit in {available} bytes of free memory",
            where=where,
            next_step="give this arm fewer workers in `levels`, or its true engine_memory_bytes",
        )


def engine_fault(site: Site, count: int) -> str | None:
    """Why a site cannot start so many engines on directories it is given; None: it can."""
    if not any(MODEL_WORD in word for word in site.engine.command):
        return f"engine.command has no {MODEL_WORD}: it would load another model than the arm's"
    if count > len(site.instances):
        return f"{count} engines at once, and the site has {len(site.instances)} instances"
    return None


def make_models(transfer: Transfer, directories: Mapping[str, Path]) -> None:
    """A small real model a worker, weights of its own each, in shards of the plan's size.

    Raises:
        SiteError: no [rehearsal] table to say which, or it could not be made.

    """
    testbed = transfer.testbed
    if testbed.site.rehearsal is None:
        raise SiteError(
            "an engine loads real models only, and none is named",
            where=transfer.where,
            next_step="give files_dir: a directory of model directories on that device",
        )
    numbers = testbed.site.rehearsal.model_of(transfer.scenario)
    for place, directory in enumerate(directories.values()):
        testbed.say(f"making the model of {directory.name}")
        own = numbers | {"seed": transfer.seed + place, "shard_bytes": transfer.plan.shard_bytes}
        done = commands.run(model_argv(testbed.python(), directory, own), timeout_s=MODEL_TIMEOUT_S)
        if not done.ok:
            raise SiteError(
                f"the model could not be made: {done.error}",
                where=str(directory),
                next_step="correct [rehearsal.models], or give the device a larger image_bytes",
            )


def rewarm(stage: Stage) -> None:
    """Start an engine on a small model from elsewhere, so that its libraries are in memory again.

    A cluster has no such model: there the first start reads the libraries, from their own device.
    """
    small = stage.testbed.fillings.get("model_dir")
    if small:
        name, instance = stage.workers[0], stage.testbed.site.instances[0]
        act(stage, "rewarm", {name: order(stage, name, Path(small), "rewarm", instance)})


def loads(stage: Stage, models: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Give every worker an order to start its engine at one instant and keep it running."""
    pairs = zip(models.items(), stage.testbed.site.instances, strict=False)
    return {
        name: order(stage, name, path, "measure", instance, keep=True)
        for (name, path), instance in pairs
    }


def switches(
    stage: Stage, models: Mapping[str, Path], planned: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, Any]]:
    """One engine after another on one instance, each until the next one's instant."""
    turns = stage.recording.raw("turns")
    turns.mkdir(exist_ok=True)
    instance = stage.testbed.site.instances[0]
    return {
        name: order(stage, name, path, "measure", instance, **planned[name])
        | {"turn": {"directory": str(turns), "number": number}}
        for number, (name, path) in enumerate(models.items())
    }


def warm(stage: Stage, models: Mapping[str, Path]) -> None:
    """Load the last model again, warm: where memory cannot hold all, that one is still cached."""
    name, path = list(models.items())[-1]
    instance = stage.testbed.site.instances[0]
    act(stage, "warm", {name: order(stage, name, path, "warm", instance)})


def order(
    stage: Stage, worker: str, path: Path, phase: str, instance: Instance, **more: Any
) -> dict[str, Any]:
    """What one worker is told to start, and where its log goes; `more` goes along as it is."""
    engine = stage.testbed.site.engine
    env, argv = start_words(stage, path, instance)
    return {
        "do": "start",
        "path": str(path),
        "argv": argv,
        "env": env,
        "url": instance.base_url.format(port=instance.port),
        "ready_path": engine.ready_path,
        "log": str(stage.recording.raw(log_name(worker, phase))),
        "timeout_s": engine.ready_timeout_s,
        "stop_grace_s": engine.stop_grace_s,
        **more,
    }


def log_name(worker: str, phase: str) -> str:
    """The log of the measured phase is the one the judge reads; the others lie beside it."""
    return f"server-{worker}.log" if phase == "measure" else f"engine-{worker}-{phase}.log"


def start_words(
    transfer: Transfer, path: Path, instance: Instance
) -> tuple[dict[str, str], list[str]]:
    """What is added to an engine's environment, and its command, for one model on one instance."""
    testbed, engine = transfer.testbed, transfer.testbed.site.engine
    own = {"port": str(instance.port), "instance": instance.name, "kv_dir": ""}
    names = testbed.names(transfer.arm.device) | instance.vars | own | {"model_dir": str(path)}
    env = engine.env | transfer.arm.env | instance.env
    filled = {key: fill_one(word, names, where=f"env {key}") for key, word in env.items()}
    # No KV tier: what is read is the model.
    env = {key: word for key, word in filled.items() if not key.startswith("LMCACHE_")}
    return env, fill(engine.command, names, where="engine.command")


def start_commands(transfer: Transfer, how: str) -> Iterator[str]:
    """What the workers start, as a dry run prints it."""
    yield f"# each worker starts the engine on its model, {how}"
    switched, instances = transfer.plan.job == "switch", transfer.testbed.site.instances
    for number, worker in enumerate(transfer.workers):
        name = f"MODEL_{number}" if transfer.arm.files_dir else f"model-{worker}"
        one = instances[0 if switched else min(number, len(instances) - 1)]
        env, argv = start_words(transfer, transfer.path / name, one)
        settings = [f"{key}={value}" for key, value in sorted(env.items())]
        yield typed(["env", *settings, *argv] if settings else argv, "&")
        if switched:
            yield "# until the next switch; then SIGTERM to it and all it started"
