"""What a work campaign would do, in order: the commands that are commands, the rest in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r8.lab.campaign.testbed import imagined
from r8.lab.instruments import probes as instruments
from r8.lab.instruments import write_ceiling
from r8.lab.machine.hosts import KvDirectory
from r8.lab.preflight.lines import calibration, line
from r8.lab.transfer import checkpointing, engine_loading, loading
from r8.lab.transfer.stage import ALL_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from r8.lab.campaign.testbed import Testbed
    from r8.lab.site.file import LoadedSite
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place
    from r8.lab.site.transfer import WorkArm, WorkPlan


def work_dry_run(
    loaded: LoadedSite, matrix: Matrix, places: Sequence[Place], runs_root: Path
) -> Iterator[str]:
    """Lines to print: comments, and `here$ command`. Nothing is run, opened or asked."""
    plan, testbed = loaded.site.works[matrix.scenario], imagined(loaded.site)
    yield f"# campaign {matrix.campaign_id}: {matrix.blocks} blocks, {len(places)} cells, "
    yield f"# site {loaded.site.name} ({loaded.path}), seed {matrix.seed}; nothing is run"
    measured: set[tuple[str, int]] = set()
    for place in places:
        arm = plan.arm[place.arm]
        if plan.job != "checkpoint" and (arm.device, place.block) not in measured:
            measured.add((arm.device, place.block))
            yield from calibration(testbed, plan, arm.device, place.block)
        run_id = f"{matrix.campaign_id}-{place.name}"
        partial = runs_root / matrix.scenario / f"{run_id}.partial"
        root = testbed.kv_root(arm.device)
        directory = KvDirectory(
            host=loaded.site.host(loaded.site.device(arm.device).host),
            path=arm.files_dir or str(root / f"r8-{run_id}"),
            suffixes=ALL_FILES,
        )
        yield ""
        yield f"# cell {place.name}: {place.concurrency} workers, job {plan.job}, tool {arm.tool}"
        yield from _cell(testbed, plan, place, directory, partial)


def _cell(
    testbed: Testbed, plan: WorkPlan, place: Place, directory: KvDirectory, partial: Path
) -> Iterator[str]:
    arm = plan.arm[place.arm]
    yield f"# files in {directory.path}: {_files(plan, arm)}"
    if arm.files_dir is None:
        yield line(directory.words("make"))
    yield from _workers(testbed, plan, place, partial)
    yield line(instruments.probes_argv(partial), "&")
    phases = _checkpoint if plan.job == "checkpoint" else _reads
    yield from phases(testbed, plan, place, directory, partial)
    if arm.files_dir is None:
        yield line(directory.words("remove"))


def _files(plan: WorkPlan, arm: WorkArm) -> str:
    if arm.files_dir is not None:
        return "as they are, a directory a worker"
    if plan.job != "checkpoint":
        return f"{plan.worker_bytes} bytes a worker, made there"
    whose = "of every rank" if arm.tool == checkpointing.FULL_EACH else "of all ranks together"
    return f"written by the ranks, a snapshot of {plan.worker_bytes} bytes {whose}"


def _workers(testbed: Testbed, plan: WorkPlan, place: Place, partial: Path) -> Iterator[str]:
    tool = checkpointing.TOOL if plan.job == "checkpoint" else loading.TOOL
    arm = plan.arm[place.arm]
    if engine_loading.is_engine(arm):
        tool = engine_loading.TOOL
    for number in range(place.concurrency):
        device = plan.accelerator.format(worker=number)
        answers = partial / "raw" / f"worker-w{number}.jsonl"
        words = [str(tool), "--device", device, "--answers", str(answers)]
        yield line(testbed.python_running(*words), "&")


def _reads(
    testbed: Testbed, plan: WorkPlan, place: Place, directory: KvDirectory, partial: Path
) -> Iterator[str]:
    arm = plan.arm[place.arm]
    yield line(directory.words("sync"))
    yield line(directory.words("look"), "until quiet")
    yield from _drop(testbed, arm, directory, partial)
    if engine_loading.is_engine(arm):
        yield from _engines(testbed, plan, place, directory)
    elif plan.job == "switch":
        period_s = (plan.settings | arm.settings)["period_s"]
        yield f"# a small model is loaded; then every {period_s:g} s a worker loads its own, serves"
    else:
        yield "# a small model is loaded by each; then each loads its own, at one instant"
    yield _look(directory, partial, "after_measure")
    warm = "the last model" if plan.job == "switch" or engine_loading.is_engine(arm) else "each"
    yield f"# {warm} once more, from the page cache: the certificate must refuse it"


def _engines(
    testbed: Testbed, plan: WorkPlan, place: Place, directory: KvDirectory
) -> Iterator[str]:
    """What the workers start; engines of a switching run follow one another on one instance."""
    arm, instances = plan.arm[place.arm], testbed.site.instances
    switched = plan.job == "switch"
    yield "# each worker starts the engine on its model" + (
        ", one after another on one instance" if switched else ", at one instant"
    )
    for number in range(place.concurrency):
        name = f"MODEL_{number}" if arm.files_dir else f"model-w{number}"
        one = instances[0 if switched else min(number, len(instances) - 1)]
        path = Path(directory.path) / name
        env, argv = engine_loading.start_words(testbed, arm, path, one)
        settings = [f"{key}={value}" for key, value in sorted(env.items())]
        yield line(["env", *settings, *argv] if settings else argv, "&")
        if switched:
            yield "# until the next switch; then SIGTERM to it and all it started"


def _checkpoint(
    testbed: Testbed, plan: WorkPlan, place: Place, directory: KvDirectory, partial: Path
) -> Iterator[str]:
    arm = plan.arm[place.arm]
    yield "# each rank makes its weights and saves one tensor of them: the earlier checkpoint"
    settings = plan.settings | arm.settings
    nbytes = int(settings.get("ceiling_bytes", checkpointing.CEILING_BYTES))
    words = write_ceiling.fio_argv(
        Path(directory.path) / write_ceiling.FILE, nbytes // checkpointing.CEILING_READINGS
    )
    yield line(words, f"# {checkpointing.CEILING_READINGS} times, its file removed each time")
    yield "# the ranks save, flush and commit at one instant: no sync of ours before the drop"
    yield line(directory.words("look"), "twice, nothing flushed")
    yield from _drop(testbed, arm, directory, partial)
    yield "# each rank reads back what it saved, and the earlier checkpoint is read again"


def _drop(testbed: Testbed, arm: WorkArm, directory: KvDirectory, partial: Path) -> Iterator[str]:
    for words in testbed.drop_commands(arm, ()):
        yield line(words)
    yield _look(directory, partial, "after_drop")


def _look(directory: KvDirectory, partial: Path, moment: str) -> str:
    words = instruments.residency_argv(Path(directory.path), moment, partial, directory.host)
    return line(words)
