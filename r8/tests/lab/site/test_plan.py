from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from r8.errors import SiteError
from r8.lab.site.arms import Treatment
from r8.lab.site.load import load_site
from r8.lab.site.plan import (
    CONTROL_SESSION,
    PROBE_SESSION,
    REWARM_SESSION,
    Place,
    control_place,
    places,
    share,
    special_session,
    steps,
    williams_rows,
)

if TYPE_CHECKING:
    from r8.lab.site.arms import Arm

SITES = Path(__file__).resolve().parents[4] / "data" / "sites"
ARMS = ("a", "b", "c", "d")


def _follows(rows: list[tuple[str, ...]]) -> Counter[tuple[str, str]]:
    return Counter(pair for row in rows for pair in pairwise(row))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_every_arm_stands_everywhere_and_follows_every_other_equally_often(n: int) -> None:
    arms = tuple("abcdef"[:n])
    rows = williams_rows(arms)
    assert len(rows) == (n if n % 2 == 0 else 2 * n)
    for place in range(n):
        assert len(set(Counter(row[place] for row in rows).values())) == 1
    follows = _follows(rows)
    assert len(follows) == n * (n - 1)
    assert len(set(follows.values())) == 1


def test_a_block_holds_every_arm_once() -> None:
    plan = steps(ARMS, blocks=6, seed=1)
    for block in range(6):
        assert sorted(one.arm for one in plan if one.block == block) == list(ARMS)


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    assert steps(ARMS, 4, 1) == steps(ARMS, 4, 1)
    orders = {tuple(one.arm for one in steps(ARMS, 4, seed)) for seed in range(10)}
    assert len(orders) > 1


def test_whole_rows_are_balanced_and_the_rest_says_it_is_not() -> None:
    assert all(one.balanced for one in steps(("a", "b"), 4, 0))
    assert not any(one.balanced for one in steps(("a", "b"), 3, 0))


def test_one_arm_needs_no_design() -> None:
    assert [one.arm for one in steps(("a",), 3, 0)] == ["a", "a", "a"]


SITE = load_site(Path(__file__).resolve().parents[4] / "data" / "sites" / "rehearsal.toml").site


def cells_of(scenario: str, seed: int = 8, blocks: int = 3) -> tuple[Place, ...]:
    return places(SITE, scenario, SITE.scenarios[scenario].arms, blocks, seed)


def test_r2_has_the_seven_published_cells_and_reads_no_session_twice() -> None:
    block = [cell for cell in cells_of("r2-cold-recovery") if cell.block == 0]
    named = {(cell.arm, cell.concurrency) for cell in block}
    tiers = {(arm, level) for arm in ("array", "local-nvme") for level in (8, 16, 32)}
    assert named == tiers | {("recompute", 16)}
    for lifetime in {cell.lifetime for cell in block}:
        numbers = [n for cell in block if cell.lifetime == lifetime for n in share(cell, 0, 1)]
        assert len(numbers) == len(set(numbers)) == {"recompute": 16}.get(lifetime, 56)


def test_r3_has_nine_points_and_the_negative_result_on_four_lives() -> None:
    block = [cell for cell in cells_of("r3-tp4x2") if cell.block == 0]
    assert len(block) == 10
    assert len({cell.lifetime for cell in block}) == 4
    per_instance = {
        lifetime: {
            instance: {
                n for cell in block if cell.lifetime == lifetime for n in share(cell, instance, 2)
            }
            for instance in (0, 1)
        }
        for lifetime in ("pool", "fs", "local-nvme")
    }
    assert {lifetime: len(each[0]) for lifetime, each in per_instance.items()} == {
        "pool": 26,  # 24 as published, 2 for the negative result
        "fs": 40,
        "local-nvme": 24,
    }
    for each in per_instance.values():
        assert not each[0] & each[1]


def test_every_life_stands_at_every_place_and_its_cells_stay_together() -> None:
    cells = cells_of("r2-cold-recovery", blocks=6)
    assert all(cell.balanced for cell in cells)
    for block in range(6):
        lives = [cell.lifetime for cell in cells if cell.block == block]
        assert len([1 for a, b in pairwise(lives) if a != b]) == 2


def test_special_sessions_never_meet_measured_or_flushing_ones() -> None:
    uses = (PROBE_SESSION, REWARM_SESSION, CONTROL_SESSION)
    special = {
        special_session(base, cell=cell, instance=instance)
        for base in uses
        for cell in range(6)
        for instance in range(8)
    }
    assert len(special) == 3 * 6 * 8
    assert min(special) >= PROBE_SESSION


def test_a_level_the_instances_cannot_share_is_named() -> None:
    plan = msgspec.structs.replace(SITE.scenarios["r3-tp4x2"], concurrency=(15,), levels={})
    site = msgspec.structs.replace(SITE, scenarios={"r3-tp4x2": plan})
    with pytest.raises(SiteError, match="2 instances cannot share level 15 of arm pool"):
        places(site, "r3-tp4x2", ("pool",), 1, 0)


def test_the_cells_of_a_transfer_have_workers_of_their_own() -> None:
    cells = places(SITE, "r1-model-load", ("array", "array-engine"), 2, 8)
    assert {(cell.arm, cell.lifetime, cell.concurrency, cell.sessions) for cell in cells} == {
        ("array", "array", 2, 2),
        ("array-engine", "array-engine", 1, 1),
    }


def _direct(*names: str) -> dict[str, Arm]:
    """The arms, with those named reading past the page cache."""
    odirect = Treatment(patch="patched", extra_config={"use_odirect": True})
    return SITE.arms | {
        name: msgspec.structs.replace(SITE.arms[name], treatment=odirect) for name in names
    }


def test_the_controls_follow_the_last_cell_of_a_block_that_reads_kv_buffered() -> None:
    scenario, plan = "r2-cold-recovery", SITE.scenarios["r2-cold-recovery"]
    for seed in range(6):
        cells = cells_of(scenario, seed, 1)
        last = control_place(cells, SITE.arms, plan)
        assert last is not None
        after = cells[cells.index(last) + 1 :]
        assert {one.arm for one in after} <= {"recompute"}
    # O_DIRECT goes past what makes a read warm; where every arm does, its own rule says so.
    direct = _direct("array")
    cells = places(SITE, scenario, ("local-nvme", "array"), 1, 8)
    found = control_place(cells, direct, plan)
    assert found is not None
    assert found.arm == "local-nvme"
    only = [one for one in cells if one.arm == "array"]
    assert control_place(only, direct, plan) == only[-1]
    without = places(SITE, scenario, ("recompute",), 1, 8)
    assert control_place(without, SITE.arms, plan) is None


def test_r3_controls_follow_a_cell_that_is_judged_and_not_the_negative_result() -> None:
    plan = SITE.scenarios["r3-tp4x2"]
    for seed in range(12):
        cells = cells_of("r3-tp4x2", seed, 1)
        last = control_place(cells, SITE.arms, plan)
        assert last is not None
        assert last.arm in {"pool", "fs-cross", "local-nvme"}
        after = {one.arm for one in cells[cells.index(last) + 1 :]}
        assert after <= {"pool-cross", "recompute"}
