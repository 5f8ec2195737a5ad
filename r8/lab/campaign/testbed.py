"""The ground a campaign stands on: a cluster as the site file says, or a rehearsal built here."""

from __future__ import annotations

import contextlib
import secrets
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from r8.errors import SiteError
from r8.lab.campaign.calibration import DeviceCalibrator, fio_words
from r8.lab.instruments import probes as instruments
from r8.lab.instruments.probes import Watched
from r8.lab.machine import commands, remote
from r8.lab.machine.hosts import engine_words, through
from r8.lab.rehearsal import build
from r8.lab.rehearsal.device import directory
from r8.lab.site.file import DROP_CACHES, fill
from r8.units import s_from_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from r8.lab.machine.remote import ClockOffset
    from r8.lab.machine.supervisor import Supervisor
    from r8.lab.rehearsal.calibrate import Calibration
    from r8.lab.rehearsal.control import Control
    from r8.lab.site.file import Arm, Host, LoadedSite, Plan, Site
    from r8.lab.site.transfer import WorkArm, WorkPlan

CLUSTER_RUNG = "cluster"
# Block devices that no file of an engine lies on; a loop device is named when KV lies on it.
NO_MEDIUM = ("loop", "ram", "zram", "sr", "fd", "nbd")


class Calibrator(Protocol):
    """Measures what a device gives by itself."""

    def first(self) -> Calibration:
        """Before the first block; a shape is turned here."""

    def again(self) -> Calibration:
        """Before a later block: nothing is turned."""


@dataclass(slots=True, kw_only=True)
class Testbed:
    """Where KV lies, which device that is, and what fills the site's commands."""

    site: Site
    work_dir: Path
    rung: str
    note: str
    kv_roots: dict[str, Path]
    block_names: dict[str, str]  # by device of the site; "" where it has no block device
    drops: dict[str, tuple[str, ...]]
    fillings: dict[str, str]
    overlays: dict[str, Path] = field(default_factory=dict)  # by LMCache version
    calibrators: dict[str, Calibrator] = field(default_factory=dict)  # by device
    calibrations: dict[tuple[str, int], Calibration] = field(default_factory=dict)
    controls: dict[str, Control | None] = field(default_factory=dict)  # of shaped devices
    offsets: dict[str, ClockOffset] = field(default_factory=dict)  # of hosts behind a prefix
    disks: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by host behind a prefix

    def names(self, arm: Arm | WorkArm) -> dict[str, str]:
        """What `{names}` in commands stand for."""
        return self.site.vars | self.fillings | {"device": arm.device}

    def env(self, arm: Arm) -> dict[str, str]:
        """Environment beyond the site's own: which LMCache tree is imported, and our connector."""
        if not self.overlays or arm.kv == "none":
            return {}
        if arm.lmcache not in self.overlays:
            known = ", ".join(sorted(self.overlays))
            raise SiteError(
                f"the rehearsal has no LMCache {arm.lmcache}",
                where=f"an arm on {arm.device}",
                next_step=f"use one of {known}, or add it to rehearsal.lmcache",
            )
        return {"PYTHONPATH": f"{self.overlays[arm.lmcache]}:{self.fillings['connector_dir']}"}

    def python(self, host: str | None = None) -> list[str]:
        """The interpreter that runs LMCache, with the way to it on a host."""
        return self.python_running(host=host)

    def python_running(self, *words: str, host: str | None = None) -> list[str]:
        """The command that runs the interpreter with these words."""
        python = fill(
            self.site.engine.python, self.site.vars | self.fillings, where="engine.python"
        )
        return engine_words(self.site, [*python, *words], host)

    def drop_commands(self, arm: Arm | WorkArm, instances: Sequence[str]) -> list[list[str]]:
        """The commands that empty the page caches of every host this arm's reads touch."""
        here = list(self.drops[arm.device])
        return [here, *self._other_drops(arm, instances)]

    def _other_drops(self, arm: Arm | WorkArm, instances: Sequence[str]) -> list[list[str]]:
        holder = self.site.device(arm.device).host
        hosts = [name for name in self.site.hosts_of(instances) if name != holder]
        return [drop_words(self.site.host(name)) for name in hosts]

    def watched(self, arm: Arm | WorkArm, instances: Sequence[str]) -> tuple[Watched, ...]:
        """What the probes watch, host by host: the holder of the KV device and every engine's."""
        names = dict.fromkeys((self.site.device(arm.device).host, *self.site.hosts_of(instances)))
        return tuple(
            Watched(
                host=self.site.host(name),
                block_devices=self.block_devices(name),
                instances=tuple(one for one in instances if self.site.host_of(one) == name),
                offset=self.offsets.get(name),
            )
            for name in names
        )

    def kv_root(self, device: str) -> Path:
        """The directory runs may make their own directories in."""
        return self.kv_roots[device]

    def block_device(self, device: str) -> str:
        """Kernel name of the device."""
        return self.block_names[device]

    def other_block_devices(self, device: str) -> tuple[str, ...]:
        """Kernel names of the other KV devices: they must stay silent."""
        mine = self.block_names[device]
        return tuple(sorted({name for name in self.block_names.values() if name not in {mine, ""}}))

    def block_devices(self, host: str) -> tuple[str, ...]:
        """KV devices of a host and every disk beside them: what is read elsewhere is told apart."""
        names = self.disks.get(host) or tuple(path.name for path in Path("/sys/block").iterdir())
        disks = {name for name in names if not name.startswith(NO_MEDIUM)}
        mine = {one.name for one in self.site.devices if one.host == host}
        kv = {block for name, block in self.block_names.items() if block and name in mine}
        return tuple(sorted(disks | kv))

    def latency_s(self, device: str) -> float | None:
        """Latency a request that the device is shaped to; None where it is not shaped."""
        control = self.controls.get(device)
        return None if control is None else s_from_ns(control.shape().read_latency_ns)

    def facts(self, arm: Arm | WorkArm) -> dict[str, Any]:
        """What this ground is, for the record of a run."""
        control = self.controls.get(arm.device)
        shape = None if control is None else asdict(control.shape())
        return {"rung": self.rung, "note": self.note, "device": arm.device, "shape": shape}

    def calibration(self, arm: Arm | WorkArm, block: int) -> tuple[dict[str, Any], ...]:
        """Calibration rows of the arm's device, measured anew before each block."""
        calibrator = self.calibrators.get(arm.device)
        if calibrator is None:
            return ()
        if (arm.device, block) not in self.calibrations:
            seen = any(device == arm.device for device, _ in self.calibrations)
            found = calibrator.again() if seen else calibrator.first()
            self.calibrations[arm.device, block] = found
        found = self.calibrations[arm.device, block]
        return tuple(dict(row) for row in found.rows(arm.device))


@contextlib.contextmanager
def prepare(
    loaded: LoadedSite,
    scenario: str,
    supervisor: Supervisor,
    say: Callable[[str], None],
    arms: Sequence[str] = (),
) -> Iterator[Testbed]:
    """Make the ground; what was built is taken down again afterwards."""
    site = loaded.site
    home = Path(tempfile.gettempdir()) / f"r8-{secrets.token_hex(4)}"
    # Through the supervisor and not TemporaryDirectory: it goes away also when this process is
    # killed.
    with directory(supervisor, home) as work_dir:
        if site.rehearsal is None:
            plan = site.scenarios.get(scenario) or site.works[scenario]
            yield _cluster(site, plan, supervisor, work_dir, say)
            return
        with build.rehearsal_ground(site, scenario, supervisor, work_dir, say, arms) as built:
            yield Testbed(site=site, work_dir=work_dir, **built)


def imagined(site: Site) -> Testbed:
    """The ground as a dry run prints it: nothing is built, resolved or measured."""
    fillings = {"python": sys.executable}
    versions: tuple[str, ...] = ()
    if site.rehearsal is not None:
        versions = site.rehearsal.lmcache
        fillings |= {"stack_python": "STACK/bin/python", "model_dir": "MODEL"}
        fillings |= {"connector_dir": "CONNECTOR"}
    names = {one.name: one for one in site.devices}
    return Testbed(
        site=site,
        work_dir=Path("WORK"),
        rung=CLUSTER_RUNG if site.rehearsal is None else "not built",
        note="a dry run",
        kv_roots={
            name: Path(one.kv_dir.format(shaped=f"/SHAPED/{name}")) for name, one in names.items()
        },
        block_names={name: one.block_device or f"DEVICE_OF_{name}" for name, one in names.items()},
        drops={name: tuple(drop_words(site.host(one.host))) for name, one in names.items()},
        fillings=fillings,
        overlays={version: Path(f"LMCACHE-{version}") for version in versions},
        disks={one.name: ("DISKS",) for one in site.hosts if one.exec_prefix},
    )


def drop_words(host: Host) -> list[str]:
    """The command that empties a host's page cache, through its prefix."""
    return through(host.exec_prefix, host.drop_caches or DROP_CACHES)


def _cluster(
    site: Site,
    plan: Plan | WorkPlan,
    supervisor: Supervisor,
    work_dir: Path,
    say: Callable[[str], None],
) -> Testbed:
    """The site's own devices; their block devices are resolved unless the file names them."""
    offsets, disks = {}, {}
    for host in site.hosts:
        if host.exec_prefix:
            remote.install(host)
            offsets[host.name] = remote.clock_offset(host)
            listed = commands.run(through(host.exec_prefix, ["ls", "/sys/block"]))
            disks[host.name] = tuple(listed.output.split())
    kv_roots = {device.name: Path(device.kv_dir) for device in site.devices}
    names = {
        device.name: device.block_device
        or str(instruments.topology(Path(device.kv_dir), site.host(device.host))["device"] or "")
        for device in site.devices
    }
    drops = {device.name: tuple(drop_words(site.host(device.host))) for device in site.devices}
    calibrators: dict[str, Calibrator] = {
        name: DeviceCalibrator(
            words=words, supervisor=supervisor, drop=drops[name], work_dir=work_dir, say=say
        )
        for name in names
        if (words := fio_words(site, plan, name)) is not None
    }
    return Testbed(
        site=site,
        work_dir=work_dir,
        rung=CLUSTER_RUNG,
        note=f"devices as {site.name} names them",
        kv_roots=kv_roots,
        block_names=names,
        drops=drops,
        calibrators=calibrators,
        fillings={"python": sys.executable},
        offsets=offsets,
        disks=disks,
    )
