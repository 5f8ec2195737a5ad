"""What a site file must not say twice, nor at odds with itself; asked when it is read.

Two of one name, and commands go to the first of them; two engines on one port, and the second one
never answers; one level twice, and two runs bear one name.
"""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

import msgspec

from r8.lab.site.plan import levels_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from r8.lab.site.file import Site
    from r8.lab.site.transfer import WorkPlan

T = TypeVar("T")
# A fault: what is wrong, and what to do about it.
Fault = tuple[str, str]

# The numbers each job takes beyond its plan: a name that is not here would be read by nobody.
SETTINGS = {
    "load": {"engine_memory_bytes"},
    "switch": {"engine_memory_bytes", "period_s"},
    "checkpoint": {"ceiling_bytes", "tensor_bytes"},
}
_HALF_BYTES = 2


def named_fault(raw: Mapping[str, object], error: str, kinds: Mapping[str, type]) -> str:
    """What does not fit, with the table it stands in: of several, the reader says `[...]`."""
    for table, kind in kinds.items():
        members = raw.get(table)
        for name, one in members.items() if isinstance(members, dict) else ():
            try:
                msgspec.convert(one, kind)
            except msgspec.ValidationError as own:
                return f"{table}.{name}: {own}"
    return error


def faults(site: Site) -> Iterator[Fault]:
    """Every fault of a file whose names are known to be defined."""
    if site.engine.exec_prefix and site.engine.root_pid is None:
        what = "engine.exec_prefix without engine.root_pid: another process would pass for it"
        yield what, "give the command that prints the engine's pid on its host, as nvidia.toml does"
    for where, names in _lists(site):
        for name in _twice(names):
            yield f"{where} names '{name}' twice", "name each once"
    yield from _ports(site)
    yield from _places(site)
    for name, plan in site.scenarios.items():
        first, end = plan.vocab
        if not 0 <= first < end:
            what = f"scenarios.{name}.vocab runs from {first} to {end}"
            yield what, "give the first token id and the one after the last, e.g. [1000, 100000]"
    for name, work in site.works.items():
        yield from _work(name, work)


def _twice(names: Iterable[T]) -> list[T]:
    return [name for name, count in Counter(names).items() if count > 1]


def _lists(site: Site) -> Iterator[tuple[str, Sequence[object]]]:
    yield "hosts", [one.name for one in site.hosts]
    yield "devices", [one.name for one in site.devices]
    yield "instances", [one.name for one in site.instances]
    yield from ((f"arms.{name}.instances", arm.instances) for name, arm in site.arms.items())
    yield from (
        (f"scenarios.{name}.instances", plan.instances) for name, plan in site.scenarios.items()
    )
    for table, plans in (("scenarios", site.scenarios), ("works", site.works)):
        for name, plan in plans.items():
            yield f"{table}.{name}.arms", (*plan.arms, *plan.other_arms)
            yield f"{table}.{name}.concurrency", plan.concurrency
            for arm, levels in plan.levels.items():
                yield f"{table}.{name}.levels.{arm}", levels


def _ports(site: Site) -> Iterator[Fault]:
    """Engines that run at once on one host need ports of their own."""
    groups = {
        f"scenarios.{name}, arm {arm}": plan_for(plan, site.arms[arm]).instances
        for name, plan in site.scenarios.items()
        for arm in (*plan.arms, *plan.other_arms)
    }
    for name, plan in site.works.items():
        for arm in (*plan.arms, *plan.other_arms):
            if plan.job == "load" and plan.arm[arm].tool == "engine":
                at_once = site.instances[: max(levels_of(plan, arm))]
                groups[f"works.{name}, arm {arm}"] = tuple(one.name for one in at_once)
    for where, names in groups.items():
        used = [(site.host_of(one), site.instance(one).port) for one in names]
        for host, port in _twice(used):
            one, other = [n for n, at in zip(names, used, strict=True) if at == (host, port)][:2]
            yield (
                f"instances {one} and {other} both use port {port} on {host} ({where})",
                "give each a port of its own",
            )


def _places(site: Site) -> Iterator[Fault]:
    """Directories of devices: absolute, and one a device; a shaped one is filled in later."""
    named = [
        (one.name, one.host, str(PurePosixPath(one.kv_dir)))  # one directory, however it ends
        for one in site.devices
        if "{" not in one.kv_dir
    ]
    for name, _, folder in named:
        if not PurePosixPath(folder).is_absolute():
            yield f"device {name}: kv_dir '{folder}' is not absolute", "begin it with /"
    for (host, folder), count in Counter((host, folder) for _, host, folder in named).items():
        if count > 1:
            what = f"{count} devices have the kv_dir {folder} on {host}"
            yield what, "give each its own: what one reads must be told from what the other does"


def _work(name: str, plan: WorkPlan) -> Iterator[Fault]:
    where = f"works.{name}"
    try:
        plan.accelerator.format(worker=0)
    except (KeyError, IndexError, ValueError) as error:
        what = f"{where}.accelerator '{plan.accelerator}' uses a name that is not defined: {error}"
        yield what, "only {worker} is filled in, e.g. cuda:{worker}"
    for arm, one in plan.arm.items():
        if one.files_dir is not None and not PurePosixPath(one.files_dir).is_absolute():
            what = f"{where}.arm.{arm}.files_dir '{one.files_dir}' is not absolute"
            yield what, "begin it with /"
        yield from _settings(f"{where}.arm.{arm}", plan, plan.settings | one.settings)


def _settings(where: str, plan: WorkPlan, settings: dict[str, float]) -> Iterator[Fault]:
    known = SETTINGS[plan.job]
    for key, value in settings.items():
        if key not in known:
            yield (
                f"{where}.settings names '{key}', which job {plan.job} does not read",
                (f"use one of: {', '.join(sorted(known))}"),
            )
        elif value <= 0:
            yield f"{where}.settings.{key} = {value:g} is not above 0", f"give {key} a size"
    if plan.job == "switch" and "period_s" not in settings:
        yield (
            f"{where} has no settings.period_s",
            ("give the seconds between two switches here, e.g. period_s = 180.0"),
        )
    tensor = settings.get("tensor_bytes", _HALF_BYTES)
    if tensor > 0 and tensor % _HALF_BYTES:
        yield (
            f"{where}.settings.tensor_bytes = {tensor:g} is not a number of half-precision weights",
            ("give an even number of bytes"),
        )
