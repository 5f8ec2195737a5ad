"""Audit mode: the seed draws the cells, and a repeated cell is held against the sealed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from r8.errors import UsageError
from r8.message import Check, Message
from r8.report.words import render_reasons
from r8.tests.report.test_document import campaign
from r8.tests.support.judged_run import Tables, judged_run
from r8.tests.support.run_factory import MODULE_SHA256, SyntheticRun, synthetic_run
from r8.tests.support.transfer_runs import loading_spec, work_run
from r8.verdict.rerun import compare, drawn, planned

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
    return {one.name: (one.held, render_reasons(one.reasons)) for one in compare(sealed, repeated)}


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
        ("certificate", None, {"resident_share": 1.0}, "rule C3 in again-b0-patched-c4"),
        ("tokens", _other_token, {}, "3 of 4 outputs identical"),
        ("counts", None, {"output_tokens": 4}, "output_tokens of session 0: 5 sealed, 4 again"),
        ("time", None, {"ttft_s": (1.0, 2.3, 3.3, 4.4)}, "+15.00%, -10.00% to +10.00% allowed"),
        ("time", None, {"ttft_s": (1.0, 1.7, 2.7, 3.6)}, "-15.00%, -10.00% to +10.00% allowed"),
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
    assert render_reasons(tokens.reasons).startswith("3 of 4 outputs identical")


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
    assert render_reasons(tokens.reasons).startswith(
        "3 of 4 outputs identical; 75% repeat by themselves; "
    )


def test_a_run_is_repeated_with_its_own_plan_treatment_and_patch(tmp_path: Path) -> None:
    found = planned(synthetic_run(SyntheticRun()))
    assert {name: found[name] for name in ("scenario", "arm", "concurrency", "seed")} == {
        "scenario": "r1-parallel-read",
        "arm": "patched",
        "concurrency": 4,
        "seed": 7,
    }
    assert found["expected prompt_tokens"] == 1025
    assert found["treatment patch"] == "patched"
    assert found["patch module_sha256"] == MODULE_SHA256
    transfer = planned(work_run(tmp_path, loading_spec()).run)
    assert transfer.keys() == {"scenario", "arm", "seed", "concurrency", "total_bytes"}


def other_outputs(count: int) -> Callable[[Tables], None]:
    """Outputs of the first sessions changed, in the measured phase alone."""

    def edit(tables: Tables) -> None:
        for row in tables["requests"]:
            if row["phase"] == "measure" and row["session"] < count:
                row["output_text"], row["output_token_ids"] = "another text", None

    return edit


@pytest.mark.parametrize(("changed", "held"), [(2, True), (3, True), (4, False)])
def test_outputs_may_differ_as_often_as_one_honest_repetition_in_a_hundred(
    tmp_path: Path, changed: int, *, held: bool
) -> None:
    """Where 3 of 4 outputs repeat, 1 of 4 or fewer happens once in 20 times, 0 of 4 in 256."""

    def noisy(tables: Tables) -> None:
        for row in tables["requests"]:
            if row["phase"] == "populate" and row["session"] == 0:
                row["output_text"], row["output_token_ids"] = "another text", None

    def edit(tables: Tables) -> None:
        other_outputs(changed)(tables)
        for row in tables["requests"]:
            if row["phase"] == "populate" and row["session"] in {0, 1}:
                row["output_text"], row["output_token_ids"] = f"{row['session']} text", None

    sealed = judged_run(tmp_path, SyntheticRun(campaign_id="sealed"), noisy)
    repeated = judged_run(tmp_path, SyntheticRun(campaign_id="again"), edit)
    (tokens,) = [one for one in compare(sealed, repeated) if one.name == "tokens"]
    repeats = tokens.reasons[0]
    assert isinstance(repeats, Message)
    assert repeats.facts == {"same": 4 - changed, "of": 4, "floor_share": 0.75}
    assert tokens.held is held


@pytest.mark.parametrize(
    ("again_s", "held"), [(2.2, True), (2.2000001, False), (1.8, True), (1.7999999, False)]
)
def test_the_time_may_differ_by_a_tenth(tmp_path: Path, again_s: float, *, held: bool) -> None:
    sealed = judged_run(tmp_path, SyntheticRun(campaign_id="sealed", ttft_s=(2.0,) * 4))
    repeated = judged_run(tmp_path, SyntheticRun(campaign_id="again", ttft_s=(again_s,) * 4))
    (time,) = [one for one in compare(sealed, repeated) if one.name == "time"]
    assert time.held is held
    (check,) = time.reasons
    assert isinstance(check, Check)
    assert check.limit == (-0.1, 0.1)


def test_a_time_that_nobody_measured_is_said_with_its_reason(tmp_path: Path) -> None:
    other: dict[str, Any] = {"comparability": {"device": "another"}, "device_read_bytes": None}
    held, text = again(tmp_path, None, **other)["time"]
    assert not held
    assert text.startswith("no ceiling_fraction busy to compare [unknown]; ")


def test_requests_that_are_missing_are_counted(tmp_path: Path) -> None:
    def fewer(tables: Tables) -> None:
        tables["requests"] = [
            one for one in tables["requests"] if (one["phase"], one["session"]) != ("measure", 3)
        ]

    found = again(tmp_path, fewer)
    assert found["counts"] == (False, "4 sealed requests, 3 again")
    assert not found["tokens"][0]
    assert "3 of 4 sessions in both runs" in found["tokens"][1]


def test_another_machine_is_compared_by_the_share_of_its_ceiling(tmp_path: Path) -> None:
    held, text = again(tmp_path, comparability={"device": "another"}, ttft_s=(9.0,) * 4)["time"]
    assert text.startswith("ceiling_fraction busy")
    assert held
