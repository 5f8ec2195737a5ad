"""Building the rehearsal's ground: engine environment, tiny model, shaped devices, calibration."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import SiteError
from r8.lab import commands, instruments
from r8.lab.rehearsal import stack as engine_stack
from r8.lab.rehearsal.calibrate import calibrate
from r8.lab.rehearsal.ladder import shaped_device
from r8.lab.rehearsal.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.lab.keeper import Keeper
    from r8.lab.rehearsal.ladder import ShapedDevice
    from r8.lab.site import Plan, Site
    from r8.lab.site import Shape as SiteShape

CHECKOUT = Path(__file__).resolve().parents[3]
# Beside nox's own environments, so that `git clean` and a newcomer find it in one place.
STACK_DIR = CHECKOUT / ".nox" / "r8-stack"
MODEL_TIMEOUT_S = 300.0
CONNECTOR = "r8_cpu_connector.py"


@contextlib.contextmanager
def rehearsal_ground(
    site: Site, scenario: str, keeper: Keeper, work_dir: Path, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """The fields of a Ground, ready to measure on.

    Raises:
        SiteError: the environment, the model or the devices could not be made.

    """
    rehearsal = site.rehearsal
    if rehearsal is None:
        raise SiteError(
            "no [rehearsal] table", where=site.name, next_step="use data/sites/rehearsal.toml"
        )
    plan = site.scenarios[scenario]
    arms = [site.arms[name] for name in dict.fromkeys((*plan.arms, *plan.other_arms))]
    versions = [one for one in rehearsal.lmcache if one in {arm.lmcache for arm in arms}]
    say("engine environment")
    engine_stack.ensure(STACK_DIR, versions)
    python = engine_stack.stack_python(STACK_DIR)
    say("tiny model")
    model = _model(rehearsal.model_of(scenario), python)
    _check_model(model, plan, site.name)
    with contextlib.ExitStack() as stack:
        shapes = rehearsal.shapes_of(scenario)
        devices = _devices(shapes, keeper, work_dir, stack, say)
        calibrations = {
            shape.device: _calibrate(devices[shape.device], plan, shape, work_dir, say)
            for shape in shapes
        }
        yield {
            "rung": ", ".join(sorted({device.rung.name for device in devices.values()})),
            "note": "; ".join(f"{name}: {device.note}" for name, device in devices.items()),
            "kv_roots": {name: device.kv_dir for name, device in devices.items()},
            "block_names": {name: _block(device) for name, device in devices.items()},
            "drops": {
                name: site.host(site.device(name).host).drop_caches or device.drop_command
                for name, device in devices.items()
            },
            "fillings": {
                "stack_python": str(python),
                "model_dir": str(model["path"]),
                "connector_dir": str(_connector(work_dir)),
                "shaped": "shaped",
            },
            "overlays": {one: engine_stack.overlay(STACK_DIR, one) for one in versions},
            "calibrations": calibrations,
            "controls": {name: device.control for name, device in devices.items()},
        }


def _model(numbers: dict[str, int], python: Path) -> dict[str, Any]:
    options = [f"--{key.replace('_', '-')}={value}" for key, value in numbers.items()]
    script = Path(__file__).with_name("tiny_model.py")
    # A folder for every set of numbers: scenarios with other models must not remake each other's.
    home = STACK_DIR / "-".join(["model", *(str(value) for value in numbers.values())])
    done = commands.run(
        [str(python), "-W", "ignore", str(script), str(home), *options],
        timeout_s=MODEL_TIMEOUT_S,
    )
    if not done.ok:
        raise SiteError(
            f"the tiny model could not be made: {done.error}",
            where="[rehearsal.model]",
            next_step="mend its numbers; `nox -s stack` rebuilds the environment it runs in",
        )
    facts: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    return facts


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
    keeper: Keeper,
    work_dir: Path,
    stack: contextlib.ExitStack,
    say: Callable[[str], None],
) -> dict[str, ShapedDevice]:
    devices = {}
    for wanted in shapes:
        shape = Shape(
            read_bandwidth_bytes_per_s=wanted.bandwidth_bytes_per_s,
            read_latency_ns=wanted.latency_ns,
            read_ahead_kib=wanted.read_ahead_kib,
            max_sectors_kib=wanted.max_sectors_kib,
        )
        say(f"shaped device {wanted.device}")
        device = stack.enter_context(
            shaped_device(shape, keeper, work_dir, wanted.device, wanted.image_bytes)
        )
        say(f"{wanted.device}: rung {device.rung.name}, {device.note}")
        if device.rung.cannot:
            say(f"{wanted.device}: cannot show {device.rung.cannot}")
        devices[wanted.device] = device
    return devices


def _calibrate(
    device: ShapedDevice,
    plan: Plan,
    shape: SiteShape,
    work_dir: Path,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Calibration rows; the latency is turned only where a serial bandwidth was published."""
    turned = shape.serial_reference is not None
    say(f"calibrating {device.name}" + (" against its published ratio" if turned else ""))
    raw = work_dir / "calibration" / device.name
    raw.mkdir(parents=True)
    found = calibrate(
        device,
        plan.chunk_tokens * plan.bytes_per_token,
        shape.ceiling_reference / shape.serial_reference if shape.serial_reference else None,
        raw,
    )
    say(f"{device.name}: ceiling : serial = {found.ratio:.2f}, {found.note}")
    if found.within is False:
        raise SiteError(
            f"ceiling : serial came to {found.ratio:.3f}, {found.note}",
            where=f"shaped device {device.name}",
            next_step="run again on a quieter machine, or change latency_ns in the site file",
        )
    return [dict(row) for row in found.rows(device.name)]


def _block(device: ShapedDevice) -> str:
    """The kernel name of the device; of the disk below it on the unshaped rung."""
    if device.block_device is not None:
        return device.block_device
    found = instruments.topology(device.kv_dir)
    return os.fspath(found.get("device") or "")
