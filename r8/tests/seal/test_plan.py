"""What a campaign set out to measure is what its runs say, cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from r8.errors import BundleError, EvidenceError
from r8.evidence.manifest import sha256_json
from r8.seal.plan import CELLS_MAX, missing_cells, plans_of, require_declared, unplanned_cells
from r8.tests.support.judged_run import Tables, judged_run, set_detail
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from pathlib import Path

    from r8.evidence.reader import Evidence

# As R2 plans: two tiers at two levels, recompute at one of them.
PLACES = ["b0-patched-c4", "b0-patched-c8", "b0-recompute-x-c4"]


def cell(
    directory: Path,
    arm: str,
    level: int,
    places: list[str] | None,
    declared: dict[str, Any] | None = None,
) -> Evidence:
    def plan(tables: Tables) -> None:
        facts: dict[str, Any] = {"arms": ["patched", "recompute-x"], "levels": [4, 8], "blocks": 1}
        facts |= {} if places is None else {"places": places}
        set_detail(tables, "run_begin", **facts)
        if declared is not None:
            tables["run"][0]["plan_sha256"] = sha256_json(facts | declared)

    name = f"c-b0-{arm}-c{level}"
    return judged_run(directory, SyntheticRun(run_id=name, arm=arm, concurrency=level), plan)


@pytest.fixture(name="three")
def _three(tmp_path: Path) -> list[Evidence]:
    cells = (("patched", 4), ("patched", 8), ("recompute-x", 4))
    return [cell(tmp_path, arm, level, PLACES) for arm, level in cells]


def test_an_arm_that_was_planned_at_one_level_only_lacks_no_other(three: list[Evidence]) -> None:
    (plan,) = plans_of(three)
    assert plan.cells == [(0, "patched", 4), (0, "patched", 8), (0, "recompute-x", 4)]
    assert (missing_cells(plan, three), unplanned_cells(plan, three)) == ([], [])


def test_a_planned_cell_that_was_left_out_is_named(three: list[Evidence]) -> None:
    (plan,) = plans_of(three[:2])
    assert missing_cells(plan, three[:2]) == ["b0-recompute-x-c4"]


def test_a_plan_without_names_is_every_arm_at_every_level(tmp_path: Path) -> None:
    runs = [cell(tmp_path, "patched", 4, None)]
    (plan,) = plans_of(runs)
    assert len(plan.cells) == 4
    assert len(missing_cells(plan, runs)) == 3


def test_a_plan_must_be_the_one_that_was_declared(tmp_path: Path) -> None:
    same = cell(tmp_path / "a", "patched", 4, PLACES, declared={})
    require_declared([same])
    other = cell(tmp_path / "b", "patched", 8, PLACES, declared={"blocks": 2})
    with pytest.raises(BundleError, match="seal-plan-changed run=c-b0-patched-c8"):
        require_declared([same, other])


def test_a_run_that_was_told_no_digest_has_declared_nothing(three: list[Evidence]) -> None:
    assert {one.run.plan_sha256 for one in three} == {None}
    require_declared(three)


def test_a_plan_that_names_no_cell_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="seal-plan-of-no-cell cell=b0-patched"):
        plans_of([cell(tmp_path, "patched", 4, ["b0-patched"])])


def _planned(directory: Path, **facts: Any) -> Evidence:
    def plan(tables: Tables) -> None:
        told = {"arms": ["patched"], "levels": [4], "blocks": 1}
        set_detail(tables, "run_begin", **(told | facts))

    return judged_run(directory, SyntheticRun(), plan)


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ({"blocks": 10**12}, f"it has {10**12} cells, and {CELLS_MAX} are the most"),
        ({"blocks": CELLS_MAX + 1}, f"{CELLS_MAX} are the most"),
        ({"blocks": -1}, "it has -1 cells"),
        ({"blocks": "many"}, "Expected `int`, got `str`"),
        ({"arms": "patched"}, "Expected `array`, got `str`"),
        ({"levels": [None]}, "Expected `int`, got `null`"),
        ({"source": "<b>"}, "Invalid enum value '<b>'"),
        ({"places": 4}, "Expected `array`, got `int`"),
    ],
)
def test_a_plan_of_another_form_or_size_is_refused(
    tmp_path: Path, facts: dict[str, Any], named: str
) -> None:
    with pytest.raises(EvidenceError) as caught:
        plans_of([_planned(tmp_path, **facts)])
    assert named in caught.value.what


def test_a_plan_may_have_the_most_cells(tmp_path: Path) -> None:
    (plan,) = plans_of([_planned(tmp_path, blocks=CELLS_MAX)])
    assert len(plan.cells) == CELLS_MAX
