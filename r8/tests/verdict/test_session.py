"""What a judgement pools: blocks in pairs, runs that are alike, one level at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from r8.errors import UsageError
from r8.message import Check
from r8.model import KvRun, Outcome
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.verdict.told_session import (
    KEYS,
    STEADY,
    blocks,
    cluster_run,
    ids,
    judged,
    ratio_claim,
    session_of,
    value_claim,
)
from r8.verdict.session import blocks_of, keys_differ, open_session, relevant, unlike

if TYPE_CHECKING:
    from pathlib import Path

    from r8.model import Run


def kv(run: Run) -> KvRun:
    assert isinstance(run, KvRun)
    return run


def changed(run: Run, **expected: int) -> KvRun:
    """The run with another plan of its requests."""
    one = kv(run)
    return replace(one, expectation=replace(one.expectation, **expected))


@pytest.mark.parametrize(
    "key", ["sessions", "prompt_tokens", "output_tokens", "chunk_tokens", "chunk_bytes"]
)
def test_runs_of_another_workload_are_not_pooled(key: str) -> None:
    first, other = blocks(1)
    value = getattr(kv(first).expectation, key)
    check = unlike([first, changed(other, **{key: value + 1})], absolute=False)
    assert check is not None
    assert (check.quantity, check.limit, check.measured) == (key, value, value + 1)
    assert check.facts["run"] == first.run_id
    assert check.facts["other"] == other.run_id
    assert unlike([first, other], absolute=True) is None


@pytest.mark.parametrize(
    ("change", "quantity"),
    [
        ({"fallback_level": "directory"}, "fallback_level"),
        ({"concurrency": 8}, "concurrency"),
    ],
)
def test_runs_of_another_kind_of_device_or_load_are_not_pooled(
    change: dict[str, Any], quantity: str
) -> None:
    first, other = blocks(1)
    check = unlike([first, replace(other, **change)], absolute=False)
    assert check is not None
    assert check.quantity == quantity


def test_only_absolute_values_need_the_same_keys() -> None:
    first, other = blocks(1)
    elsewhere = replace(other, comparability={**KEYS, "model": "other"})
    assert unlike([first, elsewhere], absolute=False) is None
    check = unlike([first, elsewhere], absolute=True)
    assert check is not None
    assert (check.quantity, check.limit, check.measured) == ("model", "M", "other")


def test_a_value_of_one_arm_is_not_pooled_over_machines() -> None:
    runs = blocks(5)
    runs[-2] = replace(runs[-2], comparability={**KEYS, "model": "other"})
    session = session_of(runs, STEADY)
    claim = value_claim(source="rehearsal", comparability={})
    assert runs[-2].arm == claim.numerator_arm
    verdict = judged(session, claim)
    assert (verdict.outcome, ids(verdict)) == (Outcome.NOT_COMPARABLE, ["verdict-unlike"])


def test_each_engine_instance_may_have_the_same_load_on_machines_of_any_size() -> None:
    one = changed(blocks(1)[0], sessions=16)
    names = kv(one).instances
    two = changed(
        replace(one, instances=(*names, *(f"{name}-2" for name in names)), concurrency=32),
        sessions=32,
    )
    assert unlike([one, two], absolute=False, each=True) is None
    assert unlike([two, one], absolute=False, each=True) is None
    check = unlike([one, two], absolute=False)
    assert check is not None
    assert check.quantity == "sessions"
    busier = unlike([one, replace(two, concurrency=33)], absolute=False, each=True)
    assert busier is not None
    assert (busier.quantity, busier.measured) == ("concurrency / instance", 16.5)
    more = unlike([one, changed(two, sessions=33)], absolute=False, each=True)
    assert more is not None
    assert (more.quantity, more.measured) == ("sessions / instance", 16.5)


def sized(runs: list[Run]) -> list[Run]:
    """Runs whose patched arm has two engine instances, each under the load of the other arm's."""
    return [
        run
        if run.arm == "unpatched"
        else changed(replace(kv(run), instances=("a", "b"), concurrency=32), sessions=32)
        for run in (changed(replace(kv(one), instances=("a",)), sessions=16) for one in runs)
    ]


def test_arms_of_any_size_are_compared_at_their_own_levels_alone() -> None:
    ours = session_of(sized(blocks(5)), STEADY)
    named = [replace(one, campaign_id="r", run_id=one.run_id + "-r") for one in blocks(5)]
    theirs = session_of(sized(named), STEADY)
    own = ratio_claim(level="own", source="rehearsal")
    assert judged(ours, own).outcome is Outcome.REPRODUCED
    same = replace(own, kind="equivalence", low=1.0, looks=1)
    assert judged(ours, same, theirs).outcome is Outcome.REPRODUCED
    level = judged(ours, replace(own, level="c16"))
    assert (level.outcome, ids(level)) == (Outcome.NOT_MEASURED, ["verdict-no-arm"])


def test_a_key_that_a_run_lacks_is_unknown() -> None:
    (run, _) = blocks(1)
    assert keys_differ(value_claim(), [run]) is None
    check = keys_differ(value_claim(), [replace(run, comparability={"platform": "P"})])
    assert isinstance(check, Check)
    assert (check.quantity, check.measured, check.limit) == ("model", None, "M")


def gaps(arms: dict[int, list[str]]) -> tuple[list[int], list[object], list[object]]:
    """Arms by block, and what becomes of the blocks: whole ones, those left out, holes."""
    runs = [cluster_run(block, arm) for block, names in arms.items() for arm in names]
    whole, left, holes = blocks_of(ratio_claim(), runs)
    return (
        [one.block for one in whole],
        [(one.facts["block"], one.facts["arms"]) for one in left],
        [(one.facts["block"], one.facts["arms"]) for one in holes],
    )


BOTH = ["unpatched", "patched"]


@pytest.mark.parametrize(
    ("arms", "found"),
    [
        ({0: BOTH, 1: BOTH}, ([0, 1], [], [])),
        ({0: BOTH, 1: ["patched"]}, ([0], [(1, "unpatched")], [])),
        ({0: ["patched"], 1: BOTH}, ([1], [], [(0, "unpatched")])),
        ({1: BOTH}, ([1], [], [(0, "unpatched, patched")])),
        ({0: ["unpatched"]}, ([], [(0, "patched")], [])),
        (
            {0: BOTH, 1: ["unpatched"], 2: BOTH, 3: ["patched"]},
            ([0, 2], [(3, "unpatched")], [(1, "patched")]),
        ),
    ],
)
def test_a_gap_before_a_whole_block_is_a_hole(arms: dict[int, list[str]], found: object) -> None:
    assert gaps(arms) == found


def test_a_claim_of_one_arm_has_blocks_of_one_run() -> None:
    (block,), _, _ = blocks_of(value_claim(), blocks(1))
    assert [run.arm for run in block.runs] == ["unpatched"]
    (pair,), _, _ = blocks_of(ratio_claim(), blocks(1))
    assert [run.arm for run in pair.runs] == BOTH


def test_a_claim_of_own_levels_takes_each_arm_at_one_level() -> None:
    runs = blocks(1)
    own = ratio_claim(level="own")
    apart = [runs[0], replace(runs[1], concurrency=8)]
    assert relevant(own, apart) == apart
    with pytest.raises(UsageError, match="meets levels c8, c16"):
        relevant(own, [*runs, replace(runs[1], concurrency=8, run_id="x")])
    assert relevant(ratio_claim(level="any"), runs) == runs
    assert relevant(ratio_claim(level="c8"), apart) == apart[1:]
    # One name sorts before that of the runs, one behind.
    for name in ("another", "zz"):
        assert relevant(ratio_claim(scenario=name), runs) == []


def test_a_block_without_any_whole_one_is_not_measured() -> None:
    runs = [cluster_run(0, "unpatched"), cluster_run(1, "patched")]
    verdict = judged(session_of(runs, STEADY), ratio_claim())
    assert (verdict.outcome, verdict.n_blocks) == (Outcome.NOT_MEASURED, 0)
    assert ids(verdict) == ["verdict-gap", "verdict-gap"]


def test_one_arm_of_a_block_is_given_once(tmp_path: Path) -> None:
    one = judged_run(tmp_path / "a", SyntheticRun(run_id="first"))
    other = judged_run(tmp_path / "b", SyntheticRun(run_id="second"))
    with pytest.raises(UsageError, match="is given twice: first, second"):
        open_session([one, other])


def test_a_metric_is_asked_by_phase_and_statistic(tmp_path: Path) -> None:
    session = open_session([judged_run(tmp_path, SyntheticRun())])
    (run,) = session.runs
    found = session.value(run, "ttft", "p50")
    assert found.value is not None
    assert (found.unit, found.n, found.reason) == ("ns", 4, None)
    assert session.value(run, "ttft", "p50", phase="warm").value != found.value
    assert (
        session.value(run, "ttft").reason
        == f"rows_of_metric n={n_statistics(session, run)} metric=ttft"
    )
    absent = session.value(run, "nothing")
    assert (absent.value, absent.n) == (None, 0)
    assert absent.reason == "rows_of_metric n=0 metric=nothing"


def n_statistics(session: Any, run: Run) -> int:
    rows = session.rows(
        "SELECT count(*) FROM metrics "
        "WHERE run_id = $run AND metric = 'ttft' AND phase = 'measure'",
        {"run": run.run_id},
    )
    return int(rows[0][0])
