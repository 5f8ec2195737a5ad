"""What a campaign stands on: a cluster as the site file says, or a rehearsal built here."""

from __future__ import annotations

import contextlib
import secrets
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from r8.errors import SiteError
from r8.lab.instruments.fio import FioCalibrator, fio_plan
from r8.lab.instruments.probes import Watched, topology
from r8.lab.machine import commands, remote
from r8.lab.machine.hosts import engine_words, through
from r8.lab.machine.supervisor import Supervisor
from r8.lab.rehearsal.build import rehearsal_testbed
from r8.lab.rehearsal.device import directory
from r8.lab.site.file import fill
from r8.lab.site.machines import DROP_CACHES
from r8.model import Device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from r8.lab.instruments.readers import Calibration
    from r8.lab.machine.remote import ClockOffset
    from r8.lab.rehearsal.control import Control
    from r8.lab.site.arms import Arm, Plan, TransferPlan
    from r8.lab.site.file import LoadedSite, Site
    from r8.lab.site.machines import Host

CLUSTER = "cluster"
# Block devices that no file of an engine lies on; a loop device is named when KV lies on it.
NO_MEDIUM = ("loop", "ram", "zram", "sr", "fd", "nbd")


class Calibrator(Protocol):
    """Measures what a device gives by itself."""

    def measure(self, *, first: bool) -> Calibration:
        """Before a block; `first` is the first time in this campaign, when a shape is tuned."""


@dataclass(slots=True, kw_only=True)
class Testbed:
    """Where KV lies, which device that is, and what fills the site's commands.

    Dictionaries are keyed by the name of a device of the site unless they say otherwise.
    """

    site: Site
    supervisor: Supervisor
    say: Callable[[str], None]  # shows one step of the present cell
    work_dir: Path
    fallback_level: str  # of the rehearsal, `cluster` elsewhere
    note: str
    kv_roots: dict[str, Path]  # where runs may make directories of their own
    block_names: dict[str, str]  # kernel names; "" where it has no block device
    drops: dict[str, tuple[str, ...]]  # empties the page cache of its host
    fillings: dict[str, str]  # of `{names}` in the site's commands
    overlays: dict[str, Path] = field(default_factory=dict)  # by LMCache version
    calibrators: dict[str, Calibrator] = field(default_factory=dict)
    calibrations: dict[tuple[str, int], Calibration] = field(default_factory=dict)  # and block
    controls: dict[str, Control | None] = field(default_factory=dict)  # of shaped devices
    offsets: dict[str, ClockOffset] = field(default_factory=dict)  # by host behind a prefix
    disks: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by host behind a prefix

    def host_of(self, device: str) -> Host:
        """The host that holds a device."""
        return self.site.host(self.site.device(device).host)

    def names(self, device: str) -> dict[str, str]:
        """What `{names}` in commands stand for."""
        return self.site.vars | self.fillings | {"device": device}

    def env(self, arm: Arm) -> dict[str, str]:
        """Environment beyond the site's own: which LMCache is imported, and our connector."""
        if not self.overlays or arm.kv == "none":
            return {}
        version = arm.treatment.lmcache
        if version not in self.overlays:
            known = ", ".join(sorted(self.overlays))
            raise SiteError(
                f"the rehearsal has no LMCache {version}",
                where=f"an arm on {arm.device}",
                next_step=f"use one of {known}, or add it to rehearsal.lmcache",
            )
        return {"PYTHONPATH": f"{self.overlays[version]}:{self.fillings['connector_dir']}"}

    def python(self, *words: str, host: str | None = None) -> list[str]:
        """The command that runs the engine's interpreter with these words, on a host."""
        names = self.site.vars | self.fillings
        python = fill(self.site.engine.python, names, where="engine.python")
        return engine_words(self.site, [*python, *words], host)

    def drop_commands(self, device: str, instances: Sequence[str] = ()) -> list[list[str]]:
        """The commands that empty the page caches of every host a read from `device` touches."""
        hosts = dict.fromkeys(self.site.hosts_of(instances))
        hosts.pop(self.site.device(device).host, None)
        others = [drop_words(self.site.host(name)) for name in hosts]
        return [list(self.drops[device]), *others]

    def watched(self, device: str, instances: Sequence[str] = ()) -> tuple[Watched, ...]:
        """What the probes watch, host by host: the device's host and every engine's."""
        names = dict.fromkeys((self.site.device(device).host, *self.site.hosts_of(instances)))
        return tuple(
            Watched(
                host=self.site.host(name),
                block_devices=self.block_devices(name),
                instances=tuple(one for one in instances if self.site.host_of(one) == name),
                offset=self.offsets.get(name),
            )
            for name in names
        )

    def other_block_devices(self, device: str) -> tuple[Device, ...]:
        """The other KV devices: they must stay silent."""
        named = self.block_names.items()
        found = {(self.site.device(one).host, name) for one, name in named if name}
        mine = (self.site.device(device).host, self.block_names[device])
        return tuple(Device(host=host, name=name) for host, name in sorted(found - {mine}))

    def block_devices(self, host: str) -> tuple[str, ...]:
        """KV devices of a host and every disk beside them: what is read elsewhere is told apart."""
        names = self.disks.get(host) or tuple(path.name for path in Path("/sys/block").iterdir())
        disks = {name for name in names if not name.startswith(NO_MEDIUM)}
        mine = {one.name for one in self.site.devices if one.host == host}
        kv = {block for name, block in self.block_names.items() if block and name in mine}
        return tuple(sorted(disks | kv))

    def facts(self, device: str) -> dict[str, Any]:
        """What this testbed is, for the record of a run."""
        control = self.controls.get(device)
        shape = None if control is None else asdict(control.shape())
        return {
            "fallback_level": self.fallback_level,
            "note": self.note,
            "device": device,
            "shape": shape,
        }

    def calibration(self, device: str, block: int) -> tuple[dict[str, Any], ...]:
        """Calibration rows of a device, measured anew before each block."""
        calibrator = self.calibrators.get(device)
        if calibrator is None:
            return ()
        if (device, block) not in self.calibrations:
            first = all(name != device for name, _ in self.calibrations)
            self.calibrations[device, block] = calibrator.measure(first=first)
        host = self.site.device(device).host
        rows = self.calibrations[device, block].rows(device)
        return tuple(row | {"host": host} for row in rows)


@contextlib.contextmanager
def prepare(
    loaded: LoadedSite,
    scenario: str,
    supervisor: Supervisor,
    say: Callable[[str], None],
    arms: Sequence[str] = (),
) -> Iterator[Testbed]:
    """Build the testbed for these arms; what was built is taken down again afterwards."""
    site = loaded.site
    home = Path(tempfile.gettempdir()) / f"r8-{secrets.token_hex(4)}"
    # Through the supervisor and not TemporaryDirectory: it goes away also when this process is
    # killed.
    with contextlib.ExitStack() as stack:
        work_dir = stack.enter_context(directory(supervisor, home))
        if site.rehearsal is None:
            built = _cluster(site, loaded.site.plan_of(scenario), supervisor, work_dir, say)
        else:
            built = stack.enter_context(
                rehearsal_testbed(site, site.rehearsal, scenario, arms, supervisor, work_dir, say)
            )
        yield Testbed(site=site, supervisor=supervisor, say=say, work_dir=work_dir, **built)


def imagined(site: Site) -> Testbed:
    """The testbed as a dry run prints it: nothing is built, resolved or measured."""
    fillings = {"python": sys.executable}
    versions: tuple[str, ...] = ()
    if site.rehearsal is not None:
        versions = site.rehearsal.lmcache
        fillings |= {"stack_python": "STACK/bin/python", "model_dir": "MODEL"}
        fillings |= {"connector_dir": "CONNECTOR"}
    names = {one.name: one for one in site.devices}
    return Testbed(
        site=site,
        supervisor=Supervisor(Path("WORK")),  # never entered
        say=lambda _: None,
        work_dir=Path("WORK"),
        fallback_level=CLUSTER if site.rehearsal is None else "not built",
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
    plan: Plan | TransferPlan | None,
    supervisor: Supervisor,
    work_dir: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """The site's own devices; their block devices are resolved unless the file names them."""
    offsets, disks = {}, {}
    for host in site.hosts:
        if host.exec_prefix:
            remote.install(host)
            offsets[host.name] = remote.clock_offset(host)
            listed = commands.run(through(host.exec_prefix, ["ls", "/sys/block"]))
            disks[host.name] = tuple(listed.output.split())
    drops = {one.name: tuple(drop_words(site.host(one.host))) for one in site.devices}
    return {
        "fallback_level": CLUSTER,
        "note": f"devices as {site.name} names them",
        "kv_roots": {one.name: Path(one.kv_dir) for one in site.devices},
        "block_names": {
            one.name: one.block_device
            or str(topology(Path(one.kv_dir), site.host(one.host))["device"] or "")
            for one in site.devices
        },
        "drops": drops,
        "calibrators": {
            name: FioCalibrator(
                plan=found, supervisor=supervisor, drop=drop, work_dir=work_dir, say=say
            )
            for name, drop in drops.items()
            if plan is not None and (found := fio_plan(site, plan, name)) is not None
        },
        "fillings": {"python": sys.executable},
        "offsets": offsets,
        "disks": disks,
    }
