"""The reference runs of the checkout: enough of them, each certified, their bytes in agreement."""

from __future__ import annotations

import json
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from r8.cli.run_arguments import REFERENCE_ROOT
from r8.evidence.reader import find_runs, read_run
from r8.forensics.certificate import certify, connect_settled
from r8.forensics.gate import refusals
from r8.tests.qualify.clean_cells import TOLERANCE, look, print_distribution

if TYPE_CHECKING:
    from pathlib import Path

    from r8.tests.qualify.clean_cells import Seen

# Arms of each scenario, and the blocks a reference has of them at least.
SCENARIOS = {
    "r1-parallel-read": ({"unpatched", "patched"}, 6),
    "r2-cold-recovery": ({"array", "local-nvme", "recompute"}, 6),
    "r3-tp4x2": ({"pool", "fs-own", "fs-cross", "local-nvme", "recompute"}, 6),
    "r1-scaling": ({"gpu-1", "gpu-2"}, 5),
    "r1-model-load": ({"array", "local-nvme"}, 5),
    "r1-model-switch": ({"array", "local-nvme"}, 5),
    "r1-checkpoint": (
        {"array-full-each", "array-sharded", "local-full-each", "local-sharded"},
        5,
    ),
}
RUNS = find_runs(REFERENCE_ROOT)


def _facts(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((path / "run.json").read_text())
    return facts


def _loads_kv(path: Path) -> bool:
    facts = _facts(path)
    return facts["work"] is None and not facts["recompute"]  # written in schema 1


@cache
def _seen(path: Path) -> Seen:
    return look(read_run(path))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_has_enough_blocks_of_every_arm(scenario: str) -> None:
    arms, blocks_min = SCENARIOS[scenario]
    blocks: dict[str, set[tuple[str, int]]] = {}
    for path in RUNS:
        run = read_run(path).run
        if run.scenario == scenario:
            blocks.setdefault(run.arm, set()).add((run.campaign_id, run.block))
    assert set(blocks) >= arms
    assert {arm: len(each) for arm, each in blocks.items() if len(each) < blocks_min} == {}


@pytest.mark.parametrize("path", [one for one in RUNS if _loads_kv(one)], ids=lambda one: one.name)
def test_no_rule_refuses_a_reference_and_its_bytes_agree(path: Path) -> None:
    seen = _seen(path)
    assert seen.refused == ()
    assert abs(seen.device_to_engine - 1) <= TOLERANCE
    # An engine that has just started also reads its own code: a few MB, of which rule C4 has the
    # limit. Against the 0.2 GB of a small cell they are more than the tolerance.
    assert seen.process_to_device >= 1 - TOLERANCE


@pytest.mark.parametrize(
    "path", [one for one in RUNS if not _loads_kv(one)], ids=lambda one: one.name
)
def test_no_rule_refuses_a_reference_without_a_kv_tier(path: Path) -> None:
    evidence = read_run(path)
    with connect_settled([evidence]) as connection:
        assert refusals(certify(evidence.run, connection)) == ()


def test_the_bytes_of_all_references_agree_in_the_middle() -> None:
    cells = [_seen(path) for path in RUNS if _loads_kv(path)]
    print_distribution(cells)
    # One cell may be off by the rule's 2 %; what is off in the middle of them is the method. The
    # device holds nothing but KV; a process also reads code, so that its middle may lie above.
    assert median(cell.device_to_engine for cell in cells) == pytest.approx(1, abs=0.0001)
    assert 1 - 0.0001 <= median(cell.process_to_device for cell in cells) <= 1 + TOLERANCE
