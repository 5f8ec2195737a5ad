"""The site file: where everything lives, and the site's own commands for acting on it.

A site file is TOML, and every table of it is a record with its own rules: machines, arms and
scenarios, and the whole of them here. Commands are lists of words, which may hold `{names}`,
filled from `[vars]`, from the instance and from the run. R8 stores no password, and runs nothing
that is not written there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from r8.errors import SiteError
from r8.lab.site.arms import Arm, Plan, TransferArm, TransferPlan
from r8.lab.site.machines import Device, Engine, Host, Instance, Rehearsal
from r8.lab.site.values import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SITE_SCHEMA = 2


class Site(Table, frozen=True, kw_only=True):
    """A whole site file."""

    schema: Annotated[int, Meta(ge=SITE_SCHEMA, le=SITE_SCHEMA, description=f"{SITE_SCHEMA}")]
    name: str
    basis: Literal["measured", "modelled"]
    comparability: dict[str, str]
    hosts: tuple[Host, ...]
    devices: tuple[Device, ...]
    engine: Engine
    instances: tuple[Instance, ...] = ()
    arms: dict[str, Arm] = {}
    scenarios: dict[str, Plan] = {}  # with a KV engine
    transfers: dict[str, TransferPlan] = {}  # without one
    vars: dict[str, str] = {}
    rehearsal: Rehearsal | None = None

    def plan_of(self, scenario: str) -> Plan | TransferPlan | None:
        """The plan of a scenario of either kind; None when the file has none."""
        return self.scenarios.get(scenario) or self.transfers.get(scenario)

    def arms_of(self, scenario: str) -> Mapping[str, Arm | TransferArm]:
        """Every arm that may be asked for by name in a scenario of either kind."""
        transfer = self.transfers.get(scenario)
        return self.arms if transfer is None else transfer.arm

    def device(self, name: str) -> Device:
        """The device of that name."""
        return next(device for device in self.devices if device.name == name)

    @property
    def here(self) -> str:
        """The name of the host R8 runs on: the first that is reached without a prefix."""
        return next((one.name for one in self.hosts if not one.exec_prefix), "here")

    def host(self, name: str) -> Host:
        """The host of that name."""
        return next(host for host in self.hosts if host.name == name)

    def host_of(self, instance: str) -> str:
        """The name of the host an instance runs on."""
        return self.instance(instance).host or self.engine.host

    def hosts_of(self, instances: Sequence[str]) -> list[str]:
        """The names of the hosts of several instances, each once."""
        return list(dict.fromkeys(self.host_of(name) for name in instances))

    def instance(self, name: str) -> Instance:
        """The instance of that name."""
        return next(instance for instance in self.instances if instance.name == name)


class LoadedSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site file as read: its content, its bytes for the record, and their digest."""

    path: Path
    text: str
    sha256: str
    site: Site


def fill(words: Sequence[str], names: Mapping[str, str], *, where: str) -> list[str]:
    """Fill `{names}` in a command's words.

    Raises:
        SiteError: a word uses a name nobody defined.

    """
    return [fill_one(word, names, where=where) for word in words]


def fill_one(word: str, names: Mapping[str, str], *, where: str) -> str:
    """Fill `{names}` in one word; `{{` and `}}` stand for themselves."""
    try:
        return word.format_map(names)
    except (KeyError, IndexError, ValueError) as error:
        raise SiteError(
            f"'{word}' uses a name that is not defined: {error}",
            where=where,
            next_step=f"define it under [vars], or use one of: {', '.join(sorted(names))}",
        ) from error
