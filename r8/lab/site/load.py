"""Reading a site file, and telling everything that is wrong with it at once."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from r8.errors import SiteError, SiteFileError
from r8.lab.site.arms import ENGINE_TOOL
from r8.lab.site.file import SITE_SCHEMA, LoadedSite, Site
from r8.lab.site.fitting import Fitting, PlacedFault, Where, nearest
from r8.lab.site.machines import Engine
from r8.lab.site.plan import lifetimes_of, places
from r8.lab.site.values import Fault
from r8.sensitive import secrets_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Keys of schema 1, by table: what to write instead.
_RENAMED = {
    ("schema",): f"write schema = {SITE_SCHEMA}; the other lines say which keys have new names",
    ("works",): "rename [works.NAME] to [transfers.NAME]; each of its arms needs a role",
    ("arms", "patch"): "move it: treatment = { patch = ... }",
    ("arms", "lmcache"): "move it: treatment = { lmcache = ... }",
    ("arms", "extra_config"): "move it: treatment = { extra_config = ... }",
    ("arms", "env"): "move it: treatment = { env = ... }",
    ("arms", "kv"): 'leave it out: the role says it ("none": recompute, "fs": shared)',
    ("arms", "life"): "rename it to engine_lifetime",
    ("arms", "reads"): 'for "other" write sessions_of = "neighbour"; `reads` is now how its reader '
    'reads, "serial" or "parallel"',
}
_HEADER = re.compile(r"\s*\[(\[?)([\w.-]+)\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"\s*([\w-]+)\s*=")


def load_site(path: Path) -> LoadedSite:
    """Read and check a site file.

    Raises:
        SiteError: it cannot be read, or is not TOML.
        SiteFileError: with every fault of it.

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
        text = raw.decode()
        tables = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SiteError(
            f"the site file is not TOML: {error}", where=str(path), next_step="mend that line"
        ) from error
    site, faults = _read(tables)
    if faults:
        raise SiteFileError(_lines(faults, tables, text), where=str(path))
    return LoadedSite(path=path, text=text, sha256=hashlib.sha256(raw).hexdigest(), site=site)


def _read(tables: Mapping[str, Any]) -> tuple[Site, list[PlacedFault]]:
    """The file as a record, and all its faults; what does not fit is left out of the record."""
    fitting = Fitting(renamed=_RENAMED)
    blanks: dict[str, Any] = dict.fromkeys(("schema", "name", "basis", "comparability"))
    engine = tables.get("engine")
    host = str(engine.get("host", "")) if isinstance(engine, dict) else ""
    blanks |= {"hosts": (), "devices": (), "engine": Engine(host=host, python=(), command=("",))}
    site = fitting.file(tables, Site, blanks)
    for where, name, table in fitting.names:
        known = _defined(tables, table)
        if name not in known:
            what = f"names '{name}', which is not defined in this file"
            fitting.add(where, what, nearest(name, known))
    for across in (_engines, _lifetimes, _levels, _ports, _folders):
        for fault in across(site):
            fitting.add(tuple(fault.where.split(".")), fault.what, fault.next_step)
    for where, kind in _secrets(tables, ()):
        step = "export it where R8 is started and leave it out here; in a command name the variable"
        fitting.add(where, f"holds a secret ({kind}), and every run keeps a copy of the file", step)
    return site, fitting.faults


def _secrets(value: Any, where: Where) -> Iterator[tuple[Where, str]]:
    """Place and kind of every secret: in a text, under its name, or as words of a command."""
    if isinstance(value, dict):
        for key, one in value.items():
            named = f"{key}={one}" if isinstance(one, str) else ""
            found = next(secrets_in(named), None)
            yield from [((*where, key), found[1])] if found else _secrets(one, (*where, key))
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        yield from ((where, kind) for _, kind in secrets_in(" ".join(value)))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _secrets(one, (*where, number))


def _defined(tables: Mapping[str, Any], table: str) -> set[str]:
    """The names a table of the file defines, whether or not its entries fit."""
    if table == "scenarios":
        # Those of schema 1's [works] as well: that their table has another name is told once.
        return {name for kind in (table, "transfers", "works") for name in tables.get(kind, {})}
    found = tables.get(table, {})
    return {one.get("name", "") if isinstance(one, dict) else one for one in found}


# ---------------------------------------------------------------- what tables say together


def _engines(site: Site) -> Iterator[Fault]:
    """Faults: what [engine] lacks for the scenarios, and a scenario of both kinds."""
    for name in sorted(site.scenarios.keys() & site.transfers.keys()):
        step = "give one of them another name"
        yield Fault(f"transfers.{name}", "is a scenario of both kinds, under [scenarios] too", step)
    if site.scenarios and not site.engine.command:
        what = "is missing: a scenario of [scenarios] starts engines"
        yield Fault("engine.command", what, "give the command that starts one, as a list of words")
    for name, arm in site.arms.items():
        version = arm.treatment.lmcache
        if site.rehearsal and arm.kv != "none" and version not in site.rehearsal.lmcache:
            what = f"is {version}, which [rehearsal] does not install"
            known = ", ".join(site.rehearsal.lmcache)
            step = f"write one of {known}, or add it to rehearsal.lmcache"
            yield Fault(f"arms.{name}.treatment.lmcache", what, step)


def _lifetimes(site: Site) -> Iterator[Fault]:
    """Arms of one engine lifetime run on one engine: what it is started with must not differ."""
    for lifetime, members in lifetimes_of(list(site.arms), site.arms).items():
        for key in ("device", "treatment", "instances"):
            if len({repr(getattr(site.arms[name], key)) for name in members}) > 1:
                what = f"share the engine lifetime {lifetime} and differ in {key}"
                step = "give them the same, or lifetimes of their own"
                yield Fault("arms", f"{', '.join(members)} {what}", step)


def _levels(site: Site) -> Iterator[Fault]:
    """Levels that the instances cannot share evenly."""
    for scenario, plan in site.scenarios.items():
        for arm in plan.every_arm:
            if arm in site.arms:
                try:
                    places(site, scenario, (arm,), 1, 0)
                except SiteError as error:
                    yield Fault(f"scenarios.{scenario}.concurrency", error.what, error.next_step)


def _ports(site: Site) -> Iterator[Fault]:
    """Engines that run at once on one host need ports of their own."""
    instances = {one.name: one for one in site.instances}
    groups: dict[str, Sequence[str]] = {
        f"scenarios.{name}, arm {arm}": plan.on(site.arms[arm]).instances
        for name, plan in site.scenarios.items()
        for arm in plan.every_arm
        if arm in site.arms
    }
    for name, plan in site.transfers.items():
        for arm in plan.every_arm:
            own = plan.arm.get(arm)  # one without a table is told by another check
            if own is not None and plan.job == "load" and own.tool == ENGINE_TOOL:
                at_once = list(instances)[: max(plan.levels_of(arm))]
                groups[f"transfers.{name}, arm {arm}"] = at_once
    told = set()
    for users, names in groups.items():
        taken: dict[tuple[str, int], str] = {}
        for one in (instances[name] for name in names if name in instances):
            host = one.host or site.engine.host
            other = taken.setdefault((host, one.port), one.name)
            if other != one.name and (other, one.name) not in told:
                told.add((other, one.name))
                what = f"{other} and {one.name} both use port {one.port} on {host} ({users})"
                yield Fault("instances", what, "give each a port of its own")


def _folders(site: Site) -> Iterator[Fault]:
    """Directories of devices: one a device; a shaped device's is filled in later."""
    named = Counter(
        (one.host, str(PurePosixPath(one.kv_dir)))  # one directory, however it ends
        for one in site.devices
        if "{" not in one.kv_dir
    )
    for (host, folder), count in named.items():
        if count > 1:
            what = f"{count} devices have the kv_dir {folder} on {host}"
            step = "give each its own: what one reads must be told from what the other does"
            yield Fault("devices", what, step)


# ---------------------------------------------------------------- how faults are told


def _lines(faults: Sequence[PlacedFault], tables: Mapping[str, Any], text: str) -> list[str]:
    """One line a fault: the line of the file, the key, what is wrong, what to write.

    The same fault of one key in several entries of a table takes one line as well.
    """
    numbers = _numbers(text)
    alike: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for fault in faults:
        above = [fault.where[:size] for size in range(len(fault.where), 0, -1)]
        number = next((numbers[one] for one in above if one in numbers), 1)
        shown = ".".join(_names(fault.where, tables))
        same = (str(fault.where[0]), str(fault.where[-1]), fault.what, fault.next_step)
        alike.setdefault(same, []).append((number, shown))
    told = []
    for (top, key, what, step), places_ in alike.items():
        found = sorted(set(places_))
        shown = found[0][1] if len(found) == 1 else f"{top}.*.{key}"
        at = ", ".join(str(number) for number, _ in found)
        told.append((found[0][0], f"line {at}: {shown} {what} -> {step}"))
    return [line for _, line in sorted(told)]


def _names(where: Where, tables: Any) -> Iterator[str]:
    """A fault's keys, with entries of lists by their names."""
    for place, key in enumerate(where):
        inside = isinstance(tables, list | dict) and (not isinstance(tables, dict) or key in tables)
        tables = tables[key] if inside else None
        named = isinstance(key, int) and isinstance(tables, dict) and "name" in tables
        if named or isinstance(key, str) or place + 1 < len(where):
            yield str(tables["name"]) if named else str(key)


def _numbers(text: str) -> dict[Where, int]:
    """The line of each table and key; keys inside braces stand on the line of their table."""
    found: dict[Where, int] = {}
    at: Where = ()
    entries: Counter[Where] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.fullmatch(line):
            at = tuple(header[2].split("."))
            if header[1]:
                entries[at] += 1
                at = (*at, entries[at] - 1)
            for size in range(1, len(at) + 1):
                found.setdefault(at[:size], number)
        elif key := _KEY.match(line):
            found.setdefault((*at, key[1]), number)
    return found
