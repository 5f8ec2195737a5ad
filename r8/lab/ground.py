"""The ground a campaign stands on: a cluster as the site file says, or a rehearsal built here."""

from __future__ import annotations

import contextlib
import secrets
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.errors import SiteError
from r8.lab import instruments
from r8.lab.rehearsal import build
from r8.lab.rehearsal.device import directory
from r8.lab.site import DROP_CACHES, fill
from r8.units import s_from_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from r8.lab.keeper import Keeper
    from r8.lab.rehearsal.build import Calibrator
    from r8.lab.rehearsal.calibrate import Calibration
    from r8.lab.rehearsal.control import Control
    from r8.lab.site import Arm, LoadedSite, Site

CLUSTER_RUNG = "cluster"
# Block devices that no file of an engine lies on; a loop device is named when KV lies on it.
NO_MEDIUM = ("loop", "ram", "zram", "sr", "fd", "nbd")


@dataclass(slots=True, kw_only=True)
class Ground:
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
    calibrators: dict[str, Calibrator] = field(default_factory=dict)  # of shaped devices
    calibrations: dict[tuple[str, int], Calibration] = field(default_factory=dict)
    controls: dict[str, Control | None] = field(default_factory=dict)  # of shaped devices

    def names(self, arm: Arm) -> dict[str, str]:
        """What `{names}` in commands stand for."""
        return self.site.vars | self.fillings | {"device": arm.device}

    def env(self, arm: Arm) -> dict[str, str]:
        """Environment beyond the site's own: which LMCache tree is imported, and our connector."""
        if not self.overlays:
            return {}
        if arm.lmcache not in self.overlays:
            known = ", ".join(sorted(self.overlays))
            raise SiteError(
                f"the rehearsal has no LMCache {arm.lmcache}",
                where=f"an arm on {arm.device}",
                next_step=f"use one of {known}, or add it to rehearsal.lmcache",
            )
        return {"PYTHONPATH": f"{self.overlays[arm.lmcache]}:{self.fillings['connector_dir']}"}

    def python(self) -> list[str]:
        """The interpreter that runs LMCache, with the way to it."""
        engine = self.site.engine
        words = fill(engine.python, self.site.vars | self.fillings, where="engine.python")
        return [*self.site.host(engine.host).exec_prefix, *engine.exec_prefix, *words]

    def drop_command(self, arm: Arm) -> list[str]:
        """The command that empties the page cache before this arm reads."""
        return list(self.drops[arm.device])

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

    def block_devices(self) -> tuple[str, ...]:
        """Every KV device and every disk beside them: what is read elsewhere is told apart."""
        disks = {
            path.name
            for path in Path("/sys/block").iterdir()
            if not path.name.startswith(NO_MEDIUM)
        }
        return tuple(sorted(disks | {name for name in self.block_names.values() if name}))

    def latency_s(self, device: str) -> float | None:
        """Latency a request that the device is shaped to; None where it is not shaped."""
        control = self.controls.get(device)
        return None if control is None else s_from_ns(control.shape().read_latency_ns)

    def facts(self, arm: Arm) -> dict[str, Any]:
        """What this ground is, for the record of a run."""
        control = self.controls.get(arm.device)
        shape = None if control is None else asdict(control.shape())
        return {"rung": self.rung, "note": self.note, "device": arm.device, "shape": shape}

    def calibration(self, arm: Arm, block: int) -> tuple[dict[str, Any], ...]:
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
    loaded: LoadedSite, scenario: str, keeper: Keeper, say: Callable[[str], None]
) -> Iterator[Ground]:
    """Make the ground; what was built is taken down again afterwards."""
    site = loaded.site
    home = Path(tempfile.gettempdir()) / f"r8-{secrets.token_hex(4)}"
    # Through the keeper and not TemporaryDirectory: it goes away also when this process is killed.
    with directory(keeper, home) as work_dir:
        if site.rehearsal is None:
            yield _cluster(site, work_dir)
            return
        plan = site.scenarios[scenario]
        with build.rehearsal_ground(site, plan, keeper, work_dir, say) as built:
            yield Ground(site=site, work_dir=work_dir, **built)


def _cluster(site: Site, work_dir: Path) -> Ground:
    """The site's own devices; their block devices are resolved unless the file names them."""
    kv_roots = {device.name: Path(device.kv_dir) for device in site.devices}
    names = {
        device.name: device.block_device
        or str(instruments.topology(Path(device.kv_dir))["device"] or "")
        for device in site.devices
    }
    return Ground(
        site=site,
        work_dir=work_dir,
        rung=CLUSTER_RUNG,
        note=f"devices as {site.name} names them",
        kv_roots=kv_roots,
        block_names=names,
        drops={
            device.name: site.host(device.host).drop_caches or DROP_CACHES
            for device in site.devices
        },
        fillings={"python": sys.executable},
    )
