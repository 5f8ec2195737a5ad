"""Several engines on one device: what is computed, what refuses it, and what is judged."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.claims.reader import load_claims
from r8.forensics.certificate import connect_settled
from r8.forensics.instances import every_instance_read_its_own
from r8.message import Answer
from r8.model import Outcome
from r8.report.document import report
from r8.report.scaling import scaling
from r8.report.words import render_reasons, say
from r8.tests.support.findings import meant, said
from r8.tests.support.judged_run import findings, judged_run
from r8.tests.support.run_factory import MIB, SyntheticRun
from r8.tests.support.scaling_runs import SCENARIO, Tables, scaling_run
from r8.tests.support.stub_case import KV_RUN, H, StubCase, U, answers_of, between, exactly
from r8.verdict.judge import judge
from r8.verdict.session import open_session

if TYPE_CHECKING:
    from pathlib import Path

    from r8.evidence.reader import Evidence
    from r8.message import Check

# 2 MiB chunks, 4 a session, 2 sessions an engine: 16 MiB an engine, 128 MB/s of ceiling.
ONE_S, TWO_S = 0.25, 0.2625


def pair(root: Path, two_s: float = TWO_S, blocks: int = 1) -> list[Evidence]:
    """One engine at half the ceiling's rate against two, in each block."""
    return [
        scaling_run(root, engines, read_s=seconds * (1 + block / 1000), block=block)
        for block in range(blocks)
        for engines, seconds in ((1, ONE_S), (2, two_s))
    ]


def values(runs: list[Evidence], metric: str, run_id: str) -> tuple[float | None, str | None]:
    with connect_settled(runs) as connection:
        row = connection.execute(
            "SELECT value, reason FROM metrics WHERE metric = $metric AND run_id = $run "
            "AND phase = 'measure'",
            {"metric": metric, "run": run_id},
        ).fetchone()
    assert row is not None
    return row[0], row[1]


ROUND = 1_000_000


def shared(
    asked: int = 2,
    hits: int | None = ROUND,
    process: int = ROUND,
    device: int | None = 2 * ROUND,
    trees: int = 2,
) -> list[Check]:
    """S1 of two engines, planned to hit 1 MB each by two requests; the first one as told."""
    expectation = replace(KV_RUN.expectation, chunk_bytes=ROUND // 8)
    run = replace(KV_RUN, scenario=SCENARIO, instances=("a", "b"), expectation=expectation)
    assert expectation.hit_bytes == 2 * ROUND
    case = StubCase(
        run=run,
        metrics={"device_read_bytes": device, "engine_hit_bytes": (hits or 0) + ROUND},
        answers={
            "instance_reads": [("a", asked, hits, process), ("b", 2, ROUND, ROUND)],
            "count(DISTINCT device)": [(2, trees)],
        },
    )
    return list(every_instance_read_its_own(case))


@pytest.mark.parametrize(("asked", "answer"), exactly(2))
def test_s1_wants_exactly_the_share_of_requests(asked: int, answer: Answer) -> None:
    assert answers_of(shared(asked=asked), "s1-requests")[0] is answer


@pytest.mark.parametrize(("hits", "answer"), exactly(ROUND))
def test_s1_wants_exactly_the_share_of_hits(hits: int, answer: Answer) -> None:
    assert answers_of(shared(hits=hits), "s1-hits")[0] is answer


@pytest.mark.parametrize(("process", "answer"), between(980_000, ROUND + 32 * MIB))
def test_s1_allows_the_process_two_percent_less_and_32_mib_more(
    process: int, answer: Answer
) -> None:
    assert answers_of(shared(process=process), "s1-process")[0] is answer


@pytest.mark.parametrize(("device", "answer"), between(1_960_000, 2_040_000))
def test_s1_allows_the_sum_two_percent_of_the_device(device: int, answer: Answer) -> None:
    assert answers_of(shared(device=device), "s1-sum") == [answer]


def test_s1_wants_every_part_of_the_sum() -> None:
    assert answers_of(shared(), "s1-sum-unknown") == []
    assert answers_of(shared(device=None), "s1-sum-unknown") == [U]
    assert answers_of(shared(hits=None), "s1-sum-unknown") == [U]


def test_s1_has_no_subject_where_one_engine_scales() -> None:
    for scenario, names in ((SCENARIO, ("a",)), ("another", ("a", "b"))):
        run = replace(KV_RUN, scenario=scenario, instances=names)
        checks = every_instance_read_its_own(StubCase(run=run))
        assert answers_of(checks, "s1-one-engine") == [Answer.NOT_APPLICABLE]


def test_s1_knows_nothing_of_two_engines_in_one_process_tree() -> None:
    assert answers_of(shared(), "s1-told-apart") == [H]
    assert answers_of(shared(trees=1), "s1-told-apart") == [U]


def test_two_engines_are_set_against_one_and_against_the_ceiling(tmp_path: Path) -> None:
    runs = pair(tmp_path)
    two = runs[1].run.run_id
    speedup, _ = values(runs, "scaling_speedup", two)
    predicted, _ = values(runs, "predicted_scaling_speedup", two)
    efficiency, _ = values(runs, "scaling_efficiency", two)
    of_predicted, _ = values(runs, "scaling_of_predicted", two)
    assert speedup == pytest.approx(2 * ONE_S / TWO_S, rel=0.3)  # samples of a tenth of a second
    assert predicted is not None
    assert predicted <= 2
    assert efficiency == pytest.approx((speedup or 0) / 2)
    assert of_predicted == pytest.approx((speedup or 0) / predicted)
    assert values(runs, "scaling_speedup", runs[0].run.run_id) == (1.0, None)


def test_without_the_run_of_one_engine_there_is_no_speedup_and_a_reason(tmp_path: Path) -> None:
    alone = scaling_run(tmp_path, 2, read_s=TWO_S, block=1)
    runs = [*pair(tmp_path), alone]
    assert values(runs, "scaling_speedup", alone.run.run_id) == (None, "no_run_of_one_instance")


def test_equal_engines_are_fair_and_a_starved_one_shows(tmp_path: Path) -> None:
    def starve(tables: Tables) -> None:
        for row in tables["requests"]:
            if row["phase"] == "measure" and row["instance"] == "b":
                late = row["first_content_ns"] - row["sent_ns"]
                row["first_content_ns"] += 9 * late

    fair = scaling_run(tmp_path, 2, read_s=TWO_S, run_id="fair")
    starved = scaling_run(tmp_path, 2, read_s=TWO_S, run_id="starved", spoil=starve)
    assert values([fair], "fairness", "fair")[0] == pytest.approx(1.0)
    # Rates 10 : 1, so (11)^2 / (2 * 101).
    assert values([starved], "fairness", "starved")[0] == pytest.approx(121 / 202, rel=1e-6)


def test_one_engine_has_no_fairness(tmp_path: Path) -> None:
    run = scaling_run(tmp_path, 1, read_s=ONE_S)
    assert values([run], "fairness", run.run.run_id) == (None, "one_instance")


def test_s1_holds_when_every_engine_read_its_share(tmp_path: Path) -> None:
    found = findings(scaling_run(tmp_path, 2, read_s=TWO_S))["S1"]
    assert found.answer is Answer.HELD, said(found)
    assert "2 engines in 2 process trees" in said(found)
    assert "instances hit 16777216 + 16777216 bytes = 32 MiB" in said(found)


def test_s1_refutes_an_engine_that_read_what_another_one_hit(tmp_path: Path) -> None:
    """The sum is right, so C4 is content: the shares are not."""

    def shift(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["probe"] == "process":
                done = row["value"] - 7_000_000
                row["value"] = 7_000_000 + (2 * done if row["device"].startswith("a") else 0)

    found = findings(scaling_run(tmp_path, 2, read_s=TWO_S, spoil=shift, chunk_bytes=16 << 20))
    assert found["C4"].answer is Answer.HELD, said(found["C4"])
    assert found["S1"].answer is Answer.REFUTED
    assert "b: process read 0 B" in said(found["S1"])


def test_s1_refutes_engines_under_unequal_load(tmp_path: Path) -> None:
    def move(tables: Tables) -> None:
        measured = [row for row in tables["requests"] if row["phase"] == "measure"]
        next(row for row in measured if row["instance"] == "b")["instance"] = "a"

    found = findings(scaling_run(tmp_path, 2, read_s=TWO_S, spoil=move))["S1"]
    assert found.answer is Answer.REFUTED
    assert "a: 3 requests = 2 planned" in said(found)


def test_s1_cannot_tell_engines_of_one_process_tree_apart(tmp_path: Path) -> None:
    def same(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["probe"] == "process":
                row["device"] = f"{row['device'][0]}:100:5000"

    found = findings(scaling_run(tmp_path, 2, read_s=TWO_S, spoil=same))["S1"]
    assert found.answer is Answer.UNKNOWN
    assert "root_pid" in meant(found)


def test_a_process_tree_named_twice_is_counted_once(tmp_path: Path) -> None:
    def same(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["probe"] == "process":
                row["value"] = 7_000_000 + 2 * (row["value"] - 7_000_000)
                row["device"] = f"{row['device'][0]}:100:5000"

    run = scaling_run(tmp_path, 2, read_s=TWO_S, spoil=same)
    assert values([run], "process_read_bytes", run.run.run_id)[0] == run.run.expected_bytes


def test_of_a_process_tree_named_twice_the_fuller_reading_counts(tmp_path: Path) -> None:
    def halved(tables: Tables) -> None:
        for row in tables["probes"]:
            if row["probe"] == "process":
                twice = 2 if row["device"].startswith("a") else 1
                row["value"] = 7_000_000 + twice * (row["value"] - 7_000_000)
                row["device"] = f"{row['device'][0]}:100:5000"

    run = scaling_run(tmp_path, 2, read_s=TWO_S, spoil=halved)
    assert values([run], "process_read_bytes", run.run.run_id)[0] == run.run.expected_bytes


def test_s1_has_no_subject_where_one_engine_runs(tmp_path: Path) -> None:
    assert findings(judged_run(tmp_path, SyntheticRun()))["S1"].answer is Answer.NOT_APPLICABLE


def test_arms_at_levels_of_their_own_are_judged_by_the_load_of_one_engine(tmp_path: Path) -> None:
    runs = pair(tmp_path, blocks=3)
    claims = [one for one in load_claims(SCENARIO) if one.source == "rehearsal"]
    verdicts = {one.claim.claim_id: one for one in judge(runs, claims)}
    # What these made-up runs cannot hold is the certificate; they were comparable and paired.
    for one in verdicts.values():
        assert one.outcome not in {Outcome.NOT_COMPARABLE, Outcome.NOT_MEASURED}, render_reasons(
            one.reasons
        )
        assert one.n_blocks == 3


def test_arms_whose_engines_were_loaded_differently_are_not_comparable(tmp_path: Path) -> None:
    runs = [
        scaling_run(tmp_path, 1, read_s=ONE_S),
        scaling_run(tmp_path, 2, read_s=TWO_S, prompt_tokens=1281),
    ]
    claims = [one for one in load_claims(SCENARIO) if one.denominator_arm == "gpu-1"]
    (first, *_) = judge(runs, claims)
    assert first.outcome is Outcome.NOT_COMPARABLE
    assert "prompt_tokens" in render_reasons(first.reasons)


def test_the_report_shows_prediction_and_every_engine_in_both_languages(tmp_path: Path) -> None:
    runs = pair(tmp_path)
    text = report(runs, load_claims(SCENARIO))
    assert "## Engines on one device" in text
    section = text.split("## Engines on one device")[1].split("\n## ")[0]
    headers = [line for line in section.splitlines() if line.startswith("| block")]
    assert len(headers) == 2
    chinese = report(runs, load_claims(SCENARIO), language="zh")
    told = chinese.split(f"## {say('zh', 'title-scaling')}")[1].split("\n## ")[0]
    assert told.count("|---") == section.count("|---") > 1
    # The same numbers in both, and words of its own in each.
    assert re.findall(r"\d+\.\d+", told) == re.findall(r"\d+\.\d+", section)
    assert re.search("[\u4e00-\u9fff]", told.strip().split("\n\n")[0])


def test_a_run_of_another_scenario_has_no_such_section(tmp_path: Path) -> None:
    assert scaling(open_session([judged_run(tmp_path, SyntheticRun())]), "en") == ""
