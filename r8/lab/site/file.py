"""The site file: where everything lives, and the site's own commands for acting on it.

A site file is TOML; an unknown key is an error, never ignored. Commands are lists of words, which
may hold `{names}`, filled from `[vars]`, from the instance and from the run. R8 stores no
password, and runs nothing that is not written there.
"""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from r8.errors import SiteError
from r8.lab.site.checks import faults, named_fault
from r8.lab.site.numbers import Count, Estimate, Levels, Names, Natural, Port, Seconds
from r8.lab.site.rehearsal import Rehearsal
from r8.lab.site.stress import Stress
from r8.lab.site.transfer import WorkPlan, work_names

if TYPE_CHECKING:
    from collections.abc import Sequence

SITE_SCHEMA = 1
DROP_CACHES = ("sh", "-c", "sync && echo 3 > /proc/sys/vm/drop_caches")


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine, and how commands get to it: no prefix here, `ssh node0` elsewhere."""

    name: str
    exec_prefix: tuple[str, ...] = ()
    # Empties the page cache; None: through /proc/sys/vm/drop_caches, or as the rehearsal can.
    drop_caches: tuple[str, ...] | None = None
    # Behind a prefix the probes are copied here and run by this Python (3.11, with psutil).
    python: tuple[str, ...] = ("python3",)
    instruments_dir: str = "/tmp/r8-instruments"  # noqa: S108 - on the other host; a site may move it


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A medium that may hold KV: `kv_dir` must be an existing directory R8 may write into."""

    name: str
    host: str
    kv_dir: str
    block_device: str | None = None  # kernel name; None: resolved from kv_dir
    link_bytes_per_s: Count | None = None  # declared ceiling of the slowest link to it
    nics: tuple[str, ...] = ()  # interfaces of the engine's host that carry its bytes
    fio: Stress = Stress()  # how it is measured where it is not shaped


class Engine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an inference engine is started, where, and how it is looked into."""

    host: str
    command: tuple[str, ...]
    python: tuple[str, ...]  # the interpreter that runs LMCache, without the exec prefix
    exec_prefix: tuple[str, ...] = ()  # for example: docker exec -i vllm
    kv_args: tuple[str, ...] = ()  # added to the command of every arm that has a KV tier
    env: dict[str, str] = {}
    kv_env: dict[Literal["disk", "fs"], dict[str, str]] = {}  # added by the arm's kind of tier
    unset_env: tuple[str, ...] = ()
    ready_path: str = "/health"
    ready_timeout_s: Seconds = 600.0
    stop_grace_s: Estimate = 30.0
    # Prints the host pid whose tree holds the engine; None: the process that was started. A
    # container's runtime starts it elsewhere, so behind `exec_prefix` it must be given.
    root_pid: tuple[str, ...] | None = None


class Instance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One engine process group: a port, and what only this instance is told."""

    name: str
    port: Port
    base_url: str = "http://127.0.0.1:{port}"
    host: str | None = None  # None: the engine's
    env: dict[str, str] = {}
    vars: dict[str, str] = {}  # fill the engine's command for this instance only


class Arm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs between arms: the device, the LMCache, its patch, and settings."""

    device: str
    patch: Literal["patched", "unpatched"]
    lmcache: str | None = None  # version of an overlay; None: what the engine has installed
    extra_config: dict[str, int | float | str | bool] = {}
    env: dict[str, str] = {}
    # LocalDiskBackend, a shared pool behind fs://, or an engine without any KV tier.
    kv: Literal["disk", "fs", "none"] = "disk"
    # Arms of one life share engine start and populate; None: a life of its own.
    life: str | None = None
    # Whose sessions an instance measures: those it populated, or those of the next instance.
    reads: Literal["own", "other"] = "own"
    file_header_bytes: Natural = 0  # what the tier writes before the KV bytes of each file
    instances: tuple[str, ...] = ()  # of the plan's; empty: all of them


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much load one scenario puts on this site."""

    arms: Names
    other_arms: tuple[str, ...] = ()  # run too with `--arms all`
    instances: Names
    concurrency: Levels  # of the machine: all instances together
    prompt_tokens: Count
    output_tokens: Count
    flush_sessions: Natural
    chunk_tokens: Count
    bytes_per_token: Count
    cpu_tier_bytes: Count
    vocab: tuple[int, int]
    model_name: str
    sessions: Count | None = None  # measured in a cell; None: one burst, as many as the level
    levels: dict[str, Levels] = {}  # of arms that are not run at every level
    ranks: Count = 1  # files a chunk is spread over: one a tensor-parallel rank
    env: dict[str, str] = {}  # settings of the engine that this scenario changes
    cell_estimate_s: Estimate = 120.0  # for the ETA, until cells have been finished
    start_estimate_s: Estimate = 60.0  # engine start, populate and flush of one arm
    blocks: Count = 5
    populate_concurrency: Count = 1
    endpoint: Literal["completions", "chat"] = "completions"
    request_timeout_s: Seconds = 1800.0
    extra_config: dict[str, int | float | str | bool] = {}


class Site(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole site file."""

    schema: int
    name: str
    basis: Literal["measured", "modelled"]
    comparability: dict[str, str]
    hosts: tuple[Host, ...]
    devices: tuple[Device, ...]
    engine: Engine
    instances: tuple[Instance, ...]
    arms: dict[str, Arm]
    scenarios: dict[str, Plan]
    vars: dict[str, str] = {}
    rehearsal: Rehearsal | None = None
    works: dict[str, WorkPlan] = {}  # scenarios without a KV engine

    def plan_of(self, scenario: str) -> Plan | WorkPlan | None:
        """The plan of a scenario of either kind; None when the file has none."""
        return self.scenarios.get(scenario) or self.works.get(scenario)

    def device(self, name: str) -> Device:
        """The device of that name."""
        return next(device for device in self.devices if device.name == name)

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


def load_site(path: Path) -> LoadedSite:
    """Read and check a site file.

    Raises:
        SiteError: it cannot be read, holds an unknown or missing key, or names something undefined.

    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SiteError(
            f"the site file cannot be read: {error.strerror}",
            where=str(path),
            next_step="give an existing file with --site, or copy one from data/sites/",
        ) from error
    try:
        tables = tomllib.loads(raw.decode())
        site = msgspec.convert(tables, Site)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SiteError(
            f"the site file is not TOML: {error}", where=str(path), next_step="mend that line"
        ) from error
    except msgspec.ValidationError as error:
        raise SiteError(
            named_fault(tables, str(error), {"arms": Arm, "scenarios": Plan, "works": WorkPlan}),
            where=str(path),
            next_step="compare with data/sites/rehearsal.toml; r8/lab/site/file.py lists every key",
        ) from error
    _check_names(site, path)
    return LoadedSite(
        path=path, text=raw.decode(), sha256=hashlib.sha256(raw).hexdigest(), site=site
    )


def _check_names(site: Site, path: Path) -> None:
    """Refuse a file whose tables name hosts, devices, instances or arms that are not there."""
    if site.schema != SITE_SCHEMA:
        raise SiteError(
            f"site schema {site.schema}, this R8 reads {SITE_SCHEMA}",
            where=str(path),
            next_step=f"set schema = {SITE_SCHEMA} and check the keys against data/sites/",
        )
    hosts = {host.name for host in site.hosts}
    devices = {device.name for device in site.devices}
    instances = {instance.name for instance in site.instances}
    wanted = [("engine.host", site.engine.host, hosts)]
    wanted += [(f"device {device.name}: host", device.host, hosts) for device in site.devices]
    wanted += [
        (f"instance {one.name}: host", one.host or site.engine.host, hosts)
        for one in site.instances
    ]
    wanted += [(f"arms.{name}.device", arm.device, devices) for name, arm in site.arms.items()]
    wanted += [
        (f"arms.{name}.instances", one, instances)
        for name, arm in site.arms.items()
        for one in arm.instances
    ]
    for name, plan in site.scenarios.items():
        arms = (*plan.arms, *plan.other_arms)
        wanted += [(f"scenarios.{name}.levels", arm, set(arms)) for arm in plan.levels]
        wanted += [(f"scenarios.{name}.arms", arm, set(site.arms)) for arm in arms]
        wanted += [(f"scenarios.{name}.instances", one, instances) for one in plan.instances]
    if site.rehearsal:
        wanted += [("rehearsal.shapes", shape.device, devices) for shape in site.rehearsal.shapes]
        wanted += [
            ("rehearsal.models", name, {*site.scenarios, *site.works})
            for name in site.rehearsal.models
        ]
    wanted += work_names(site.works, devices)
    for where, name, known in wanted:
        if name not in known:
            raise SiteError(
                f"{where} names '{name}', which the file does not define",
                where=str(path),
                next_step=f"use one of: {', '.join(sorted(known)) or 'none defined yet'}",
            )
    for what, next_step in faults(site):
        raise SiteError(what, where=str(path), next_step=next_step)


def fill(words: tuple[str, ...], names: dict[str, str], *, where: str) -> list[str]:
    """Fill `{names}` in a command's words.

    Raises:
        SiteError: a word uses a name nobody defined.

    """
    return [fill_one(word, names, where=where) for word in words]


def fill_one(word: str, names: dict[str, str], *, where: str) -> str:
    """Fill `{names}` in one word; `{{` and `}}` stand for themselves."""
    try:
        return word.format_map(names)
    except (KeyError, IndexError, ValueError) as error:
        raise SiteError(
            f"'{word}' uses a name that is not defined: {error}",
            where=where,
            next_step=f"define it under [vars], or use one of: {', '.join(sorted(names))}",
        ) from error
