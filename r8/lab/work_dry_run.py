"""What a work campaign would do, in order: the commands that are commands, the rest in words."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from r8.lab.engine_loading import is_engine
from r8.lab.ground import imagined
from r8.lab.site import fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from r8.lab.matrix import Matrix
    from r8.lab.plan import Place
    from r8.lab.site import LoadedSite


def work_dry_run(loaded: LoadedSite, matrix: Matrix, places: Sequence[Place]) -> Iterator[str]:
    """Lines to print: comments, and `here$ command`. Nothing is run, opened or asked."""
    plan, ground = loaded.site.works[matrix.scenario], imagined(loaded.site)
    yield f"# campaign {matrix.campaign_id}: {matrix.blocks} blocks, {len(places)} cells, "
    yield f"# site {loaded.site.name} ({loaded.path}), seed {matrix.seed}; nothing is run"
    for place in places:
        arm = plan.arm[place.arm]
        where = (
            arm.files_dir or f"{ground.kv_root(arm.device)}/r8-{matrix.campaign_id}-{place.name}"
        )
        made = "as they are" if arm.files_dir else f"{plan.worker_bytes} bytes a worker, made there"
        yield ""
        yield f"# cell {place.name}: {place.concurrency} workers, job {plan.job}, tool {arm.tool}"
        yield f"# files in {where}: {made}"
        for number in range(place.concurrency):
            device = plan.accelerator.format(worker=number)
            words = ground.python_running(f"WORKER_{arm.tool}", "--device", device)
            yield f"here$ {shlex.join(words)} &"
        if is_engine(arm):
            yield "# each worker starts the engine on its model; switched ones follow one another"
            at_once = 1 if plan.job == "switch" else place.concurrency
            for instance in loaded.site.instances[:at_once]:
                names = ground.names(arm) | instance.vars | {"model_dir": f"{where}/model-WORKER"}
                names |= {"port": str(instance.port), "instance": instance.name, "kv_dir": ""}
                command = fill(loaded.site.engine.command, names, where="engine.command")
                yield f"here$ {shlex.join(command)} &"
        yield f"here$ sync -f {shlex.quote(where)}"
        for words in ground.drop_commands(arm, ()):
            yield f"here$ {shlex.join(words)}"
        yield f"# residency of every file, then the job's phases: {plan.job}"
