"""Every command a campaign would run, in order. Nothing is run, opened or asked.

All are typed on this machine: what runs on another stands behind that host's own prefix. The words
come from the very functions that run them; what only a running machine can say (a pid, a device
behind a mount) stands there in capitals.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from r8.lab.campaign.campaign import kind_of
from r8.lab.instruments.fio import fio_plan
from r8.lab.instruments.readers import CEILING, SERIAL
from r8.lab.machine import remote
from r8.lab.machine.commands import typed
from r8.lab.preflight.preflight import scenario_on
from r8.lab.testbed import imagined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from r8.lab.preflight.scenario import Scenario
    from r8.lab.site.file import LoadedSite
    from r8.lab.site.matrix import Matrix
    from r8.lab.site.plan import Place
    from r8.lab.testbed import Testbed


def dry_run(
    loaded: LoadedSite, matrix: Matrix, places: Sequence[Place], runs_root: Path
) -> Iterator[str]:
    """Lines to print: comments, and `here$ command`."""
    kind_of(loaded.site, matrix.scenario).require(loaded, matrix)
    scenario, testbed = scenario_on(loaded, matrix.scenario), imagined(loaded.site)
    yield f"# campaign {matrix.campaign_id}: {matrix.blocks} blocks, {len(places)} cells"
    yield f"# site {loaded.site.name} ({loaded.path}), seed {matrix.seed}; nothing is run"
    yield from _hosts(testbed)
    measured: set[tuple[str, int]] = set()
    arms = loaded.site.arms_of(matrix.scenario)
    for (number, _), group in groupby(places, key=lambda place: (place.block, place.lifetime)):
        ids = {place: f"{matrix.campaign_id}-{place.name}" for place in group}
        device = arms[next(iter(ids)).arm].device
        if scenario.calibrated and (device, number) not in measured:
            measured.add((device, number))
            yield from _calibration(scenario, testbed, device, number)
        block = [place for place in places if place.block == number]
        yield from scenario.commands(testbed, ids, block, runs_root / matrix.scenario)
    yield from scenario.ending()


def _hosts(testbed: Testbed) -> Iterator[str]:
    """What is done once on hosts behind a prefix."""
    for host in testbed.site.hosts:
        if host.exec_prefix:
            yield ""
            yield f"# host {host.name}: the probes are copied there, clocks are compared"
            yield typed(remote.install_argv(host), "< probes.tar")
            yield typed(remote.clock_argv(host))


def _calibration(scenario: Scenario, testbed: Testbed, device: str, block: int) -> Iterator[str]:
    """Reading a device without an engine, once before each block."""
    yield ""
    if testbed.site.rehearsal is not None:
        yield f"# block {block}: the shaped device {device} is read; first its latency is tuned"
        return
    planned = fio_plan(testbed.site, scenario.plan, device, "TOKEN")
    if planned is None:
        yield f"# block {block}: device {device} is not read by fio (fio.read_bytes = 0)"
        return
    longest_s = planned.device.fio.longest_s
    yield f"# block {block}: fio reads {device}, at most {longest_s} s"
    yield typed(planned.folder.words("make"))
    for kind in (CEILING, SERIAL):
        yield typed(planned.argv(kind, write=True))
    for kind in (CEILING, SERIAL):
        yield typed(testbed.drops[device])
        yield typed(planned.argv(kind, write=False))
    yield typed(planned.folder.words("remove"))
