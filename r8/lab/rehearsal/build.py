"""Building a rehearsal's testbed: engine environment, tiny model, shaped devices."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import SiteError
from r8.lab.instruments.probes import CHECKOUT, topology
from r8.lab.machine import commands
from r8.lab.rehearsal import stack
from r8.lab.rehearsal.calibrate import ShapedCalibrator
from r8.lab.rehearsal.fallback import shaped_device
from r8.lab.rehearsal.shape import Shape
from r8.lab.site.arms import ENGINE_TOOL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.rehearsal.fallback import ShapedDevice
    from r8.lab.site.arms import Plan
    from r8.lab.site.file import Site
    from r8.lab.site.machines import Rehearsal
    from r8.lab.site.machines import Shape as SiteShape

# Beside nox's own environments, so that `git clean` and a newcomer find it in one place.
STACK_DIR = CHECKOUT / ".nox" / "r8-stack"
MODEL_TIMEOUT_S = 300.0
CONNECTOR = "r8_cpu_connector.py"


@contextlib.contextmanager
def rehearsal_testbed(
    site: Site,
    rehearsal: Rehearsal,
    scenario: str,
    arms: Sequence[str],
    supervisor: Supervisor,
    work_dir: Path,
    say: Callable[[str], None],
) -> Iterator[dict[str, Any]]:
    """The fields of a Testbed, ready to measure on; `arms` are those that will be run.

    Raises:
        SiteError: the environment, the model or the devices could not be made.

    """
    needs = _needs(site, rehearsal, scenario, arms)
    say("engine environment")
    stack.ensure(STACK_DIR, needs.lmcache)
    python = stack.stack_python(STACK_DIR)
    model_dir = ""
    if needs.model is not None:
        say("tiny model")
        model = _model(needs.model, python)
        if needs.plan is not None:
            _check_model(model, needs.plan, site.name)
        model_dir = str(model["path"])
    with contextlib.ExitStack() as built:
        shapes = rehearsal.shapes_of(scenario)
        devices = _devices(shapes, supervisor, work_dir, built, say)
        calibrators = {
            shape.device: ShapedCalibrator(
                device=devices[shape.device],
                chunk_bytes=needs.chunk_bytes,
                target_ratio=_target_ratio(shape),
                raw_dir=work_dir / "calibration" / shape.device,
                say=say,
            )
            for shape in shapes
        }
        yield {
            "fallback_level": ", ".join(sorted({device.level.name for device in devices.values()})),
            "note": "; ".join(f"{name}: {device.note}" for name, device in devices.items()),
            "kv_roots": {name: device.kv_dir for name, device in devices.items()},
            "block_names": {name: _block(device) for name, device in devices.items()},
            "drops": {
                name: site.host(site.device(name).host).drop_caches or device.drop_command
                for name, device in devices.items()
            },
            "fillings": {
                "stack_python": str(python),
                "model_dir": model_dir,
                "connector_dir": str(_connector(work_dir)),
                "shaped": "shaped",
            },
            "overlays": {one: stack.overlay(STACK_DIR, one) for one in needs.lmcache},
            "calibrators": calibrators,
            "controls": {name: device.control for name, device in devices.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """What a scenario needs of a rehearsal beyond its devices."""

    lmcache: list[str]
    model: dict[str, int] | None  # numbers of the tiny model; None: no engine is started
    plan: Plan | None  # whose arithmetic stands on that model
    chunk_bytes: int  # size of the files a calibration reads


def _needs(site: Site, rehearsal: Rehearsal, scenario: str, arms: Sequence[str]) -> _Needs:
    plan = site.scenarios.get(scenario)
    if plan is not None:
        every = [site.arms[name] for name in plan.every_arm]
        wanted = {arm.treatment.lmcache for arm in every}
        return _Needs(
            lmcache=[one for one in rehearsal.lmcache if one in wanted],
            model=rehearsal.model_of(scenario),
            plan=plan,
            chunk_bytes=plan.chunk_tokens * plan.bytes_per_token,
        )
    work = site.transfers[scenario]
    # A model takes a while to be made, and only arms that start engines need one.
    tools = {work.arm[name].tool for name in arms}
    return _Needs(
        lmcache=[],
        model=rehearsal.model_of(scenario) if ENGINE_TOOL in tools else None,
        plan=None,
        chunk_bytes=work.file_bytes,
    )


def _model(numbers: dict[str, int], python: Path) -> dict[str, Any]:
    # A folder for every set of numbers: scenarios with other models must not remake each other's.
    home = STACK_DIR / "-".join(["model", *(str(value) for value in numbers.values())])
    done = commands.run(model_argv([str(python)], home, numbers), timeout_s=MODEL_TIMEOUT_S)
    if not done.ok:
        raise SiteError(
            f"the tiny model could not be made: {done.error}",
            where="[rehearsal.model]",
            next_step="correct its numbers; `nox -s stack` rebuilds the environment it runs in",
        )
    facts: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    return facts


def model_argv(python: Sequence[str], home: Path, numbers: Mapping[str, int]) -> list[str]:
    """The command that makes a tiny model of these numbers in a directory."""
    options = [f"--{key.replace('_', '-')}={value}" for key, value in numbers.items()]
    script = Path(__file__).with_name("tiny_model.py")
    return [*python, "-W", "ignore", str(script), str(home), *options]


def _check_model(model: dict[str, Any], plan: Plan, site_name: str) -> None:
    """The plan's arithmetic stands on the model's KV width: they must not drift apart."""
    if model["bytes_per_token"] != plan.bytes_per_token:
        raise SiteError(
            f"the model has {model['bytes_per_token']} bytes of KV a token, the plan says "
            f"{plan.bytes_per_token}",
            where=site_name,
            next_step=f"set bytes_per_token = {model['bytes_per_token']} in the scenario",
        )


def _connector(work_dir: Path) -> Path:
    """A directory for PYTHONPATH that holds our CPU connector under an importable name."""
    directory = work_dir / "connector"
    directory.mkdir(exist_ok=True)
    source = Path(__file__).with_name("cpu_connector.py")
    (directory / CONNECTOR).write_bytes(source.read_bytes())
    return directory


def _devices(
    shapes: list[SiteShape],
    supervisor: Supervisor,
    work_dir: Path,
    built: contextlib.ExitStack,
    say: Callable[[str], None],
) -> dict[str, ShapedDevice]:
    devices = {}
    for wanted in shapes:
        shape = Shape(
            read_bandwidth_bytes_per_s=wanted.bandwidth_bytes_per_s,
            read_latency_ns=wanted.latency_ns,
            write_bandwidth_bytes_per_s=wanted.write_bandwidth_bytes_per_s,
            read_ahead_kib=wanted.read_ahead_kib,
            max_sectors_kib=wanted.max_sectors_kib,
        )
        say(f"shaped device {wanted.device}")
        device = built.enter_context(
            shaped_device(shape, supervisor, work_dir, wanted.device, wanted.image_bytes)
        )
        say(f"{wanted.device}: {device.level.name}, {device.note}")
        say(f"{wanted.device}: cannot show {device.level.cannot}")
        devices[wanted.device] = device
    return devices


def _target_ratio(shape: SiteShape) -> float | None:
    """Published ceiling over serial bandwidth, where a serial one was published."""
    return shape.ceiling_reference / shape.serial_reference if shape.serial_reference else None


def _block(device: ShapedDevice) -> str:
    """The kernel name of the device; of the disk below it where nothing is shaped."""
    return device.block_device or str(topology(device.kv_dir).get("device") or "")
