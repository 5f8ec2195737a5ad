"""Audit mode: the seed draws the cells, and a repeated cell is held against the sealed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from r8.errors import UsageError
from r8.tests.report.test_document import campaign
from r8.tests.support.judged_run import Tables, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.verdict.rerun import compare, drawn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.evidence.reader import Evidence


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Evidence]:
    return campaign(tmp_path_factory.mktemp("runs"))


def test_a_seed_draws_the_same_cells_in_any_order_of_runs(runs: list[Evidence]) -> None:
    names = [one.run.run_id for one in drawn(runs, 5)]
    assert names == [one.run.run_id for one in drawn(list(reversed(runs)), 5)]
    assert {one.run.arm for one in drawn(runs, 5)} == {"patched", "unpatched"}


def test_another_seed_draws_other_cells(runs: list[Evidence]) -> None:
    choices = {tuple(one.run.run_id for one in drawn(runs, seed)) for seed in range(20)}
    assert len(choices) > 5


def test_a_bundle_without_a_complete_run_has_nothing_to_draw(tmp_path: Path) -> None:
    run = judged_run(tmp_path, SyntheticRun(complete=False))
    with pytest.raises(UsageError, match="no complete run"):
        drawn([run], 1)


def again(
    tmp_path: Path, edit: Callable[[Tables], None] | None = None, **fields: Any
) -> dict[str, tuple[bool, str]]:
    sealed = judged_run(tmp_path, SyntheticRun(campaign_id="sealed"))
    repeated = judged_run(tmp_path, SyntheticRun(campaign_id="again", **fields), edit)
    return {one.name: (one.held, one.text) for one in compare(sealed, repeated)}


def test_the_same_cell_measured_again_holds_every_question(tmp_path: Path) -> None:
    found = again(tmp_path)
    assert [name for name, (held, _) in found.items() if not held] == []
    assert set(found) == {"workload", "certificate", "tokens", "counts", "time"}


def _other_token(tables: Tables) -> None:
    row = next(row for row in tables["requests"] if row["phase"] == "measure")
    row["output_text"], row["output_token_ids"] = "another text", None


@pytest.mark.parametrize(
    ("question", "edit", "fields", "says"),
    [
        ("workload", None, {"seed": 99}, "seed: 7 sealed, 99 again"),
        ("workload", None, {"arm": "unpatched"}, "arm: patched sealed, unpatched again"),
        ("certificate", None, {"resident_share": 1.0}, "C3 refuted"),
        ("tokens", _other_token, {}, "3 of 4 outputs identical"),
        ("counts", None, {"output_tokens": 4}, "session 0: (1025, 5) sealed, (1025, 4) again"),
        ("time", None, {"ttft_s": (1.0, 2.3, 3.3, 4.4)}, "+15.00%, allowed +-10%"),
        ("time", None, {"ttft_s": (1.0, 1.7, 2.7, 3.6)}, "-15.00%, allowed +-10%"),
    ],
    ids=["seed", "arm", "not cold", "token", "counted tokens", "slower", "faster"],
)
def test_one_difference_fails_its_question(
    tmp_path: Path, question: str, edit: Any, fields: dict[str, Any], says: str
) -> None:
    held, text = again(tmp_path, edit, **fields)[question]
    assert not held
    assert says in text


@pytest.mark.parametrize("phases", [("measure",), ("populate", "measure")])
def test_an_output_changed_in_the_sealed_run_makes_no_room_for_itself(
    tmp_path: Path, phases: tuple[str, ...]
) -> None:
    def forge(tables: Tables) -> None:
        for row in tables["requests"]:
            if row["phase"] in phases and row["session"] == 0:
                row["output_text"], row["output_token_ids"] = "another text", None

    sealed = judged_run(tmp_path, SyntheticRun(campaign_id="sealed"), forge)
    repeated = judged_run(tmp_path, SyntheticRun(campaign_id="again"))
    (tokens,) = [one for one in compare(sealed, repeated) if one.name == "tokens"]
    assert not tokens.held
    assert tokens.text.startswith("3 of 4 outputs identical")


def test_an_engine_that_does_not_repeat_itself_is_given_its_own_noise(tmp_path: Path) -> None:
    def noisy(word: str) -> Callable[[Tables], None]:
        def edit(tables: Tables) -> None:
            for row in tables["requests"]:
                if row["session"] == 0 and row["phase"] in {"populate", "measure"}:
                    row["output_text"], row["output_token_ids"] = f"{word} {row['phase']}", None

        return edit

    sealed = judged_run(tmp_path, SyntheticRun(campaign_id="sealed"), noisy("one"))
    repeated = judged_run(tmp_path, SyntheticRun(campaign_id="again"), noisy("two"))
    (tokens,) = [one for one in compare(sealed, repeated) if one.name == "tokens"]
    assert tokens.held
    assert tokens.text == "3 of 4 outputs identical; what repeats by itself: 75%, 75%, 75%"


def test_another_machine_is_compared_by_the_share_of_its_ceiling(tmp_path: Path) -> None:
    held, text = again(tmp_path, comparability={"device": "another"}, ttft_s=(9.0,) * 4)["time"]
    assert text.startswith("ceiling_fraction busy")
    assert held
