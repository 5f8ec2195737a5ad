"""Runs against a report: what is judged, what is refused by which key, what nobody can measure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from r8.claims.ledger import load_ledger
from r8.claims.reports import load_reports
from r8.cli import main as cli
from r8.errors import UsageError
from r8.evidence.reader import read_runs
from r8.message import Answer, Check
from r8.model import Basis, Outcome
from r8.report.diff import as_rows, table
from r8.tests.support.cluster_runs import R1, R2, ToldSession, cluster_run, r2_blocks, told
from r8.tests.support.findings import all_held
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.verdict.diff import DiffRow, against_report, against_runs
from r8.verdict.judge import exit_code
from r8.verdict.session import Session, open_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from r8.evidence.reader import Evidence

LEDGER, REPORTS = load_ledger(), load_reports()


def certified(evidences: Sequence[Evidence]) -> Session:
    """A fake certificate over real run directories: every finding held, so that numbers decide."""
    session = open_session(evidences)
    held = all_held(session.findings)
    return replace(session, findings=held)


def against(session: Session, report: str = "R2") -> dict[str, DiffRow]:
    return {one.name: one for one in against_report(session, LEDGER, REPORTS, report)}


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> list[Evidence]:
    return r2_blocks(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def rows(blocks: list[Evidence]) -> dict[str, DiffRow]:
    return against(certified(blocks))


def test_seconds_and_ratios_of_a_cluster_run_are_judged(rows: dict[str, DiffRow]) -> None:
    seconds = rows["r2.array.c8.ttft_p50"]
    assert seconds.outcome is Outcome.REPRODUCED
    assert seconds.measured == pytest.approx(7.53, rel=0.003)
    assert seconds.unit == "s"
    assert seconds.deviation == pytest.approx(0.0, abs=0.003)
    assert seconds.verdict is not None
    assert seconds.verdict.n_blocks == 5
    ratio = rows["r2.c8.ttft_change"]
    assert ratio.outcome is Outcome.REPRODUCED
    assert ratio.measured == pytest.approx(10.17 / 7.53, rel=0.003)
    assert ratio.published == "-26%"
    assert ratio.at_least == pytest.approx(1 / 0.74)
    assert "-26% (>= 1.351 x)" in table([ratio], "en", everything=False)


def test_the_interval_encloses_what_was_measured(rows: dict[str, DiffRow]) -> None:
    one = rows["r2.array.c8.ttft_p50"]
    assert one.low is not None
    assert one.high is not None
    assert one.measured is not None
    assert one.low < one.measured < one.high


def test_a_level_nobody_ran_is_not_measured(rows: dict[str, DiffRow]) -> None:
    assert rows["r2.array.c16.ttft_p50"].outcome is Outcome.NOT_MEASURED


def test_every_figure_of_the_report_has_a_row(rows: dict[str, DiffRow]) -> None:
    own = {one.figure_id for one in LEDGER.of("R2") if one.restates is None}
    assert rows.keys() == own
    assert rows["r2.session.kv"].why_not is not None
    assert rows["r2.session.kv"].outcome is Outcome.NOT_MEASURED


def r2(array_s: float = 7.53, **changes: Any) -> ToldSession:
    return told(R2, {"array": array_s, "local-nvme": 10.17}, **changes)


def test_a_slower_array_deviates_with_its_sign() -> None:
    rows = against(r2(9.0))
    one = rows["r2.array.c8.ttft_p50"]
    assert one.outcome is Outcome.DEVIATES
    assert one.deviation == pytest.approx(9.0 / 7.53 - 1, abs=0.003)
    assert rows["r2.c8.ttft_change"].outcome is Outcome.DEVIATES


def test_a_faster_array_deviates_in_seconds_and_reproduces_the_ratio() -> None:
    faster = against(r2(6.0))
    assert faster["r2.array.c8.ttft_p50"].outcome is Outcome.DEVIATES
    assert (faster["r2.array.c8.ttft_p50"].deviation or 0) < -0.2
    assert faster["r2.c8.ttft_change"].outcome is Outcome.REPRODUCED


@pytest.mark.parametrize("key", ["platform", "engine", "model", "array"])
def test_another_key_compares_ratios_and_is_named_for_seconds(key: str) -> None:
    published = REPORTS.scenarios[R2].comparability
    found = against(r2(comparability=dict(published) | {key: "mine"}))
    seconds = found["r2.array.c8.ttft_p50"]
    assert seconds.outcome is Outcome.NOT_COMPARABLE
    assert seconds.verdict is not None
    (why,) = seconds.reasons
    assert isinstance(why, Check)
    assert (why.quantity, why.limit, why.measured) == (key, published[key], "mine")
    assert found["r2.c8.ttft_change"].outcome is Outcome.REPRODUCED


@pytest.mark.parametrize("scenario", ["r1-parallel-read", "r2-cold-recovery"])
def test_a_rehearsal_is_not_comparable_and_the_key_is_named(tmp_path: Path, scenario: str) -> None:
    run = judged_run(tmp_path, SyntheticRun(scenario=scenario, arm="array", concurrency=8))
    found = list(against(open_session([run])).values())
    judged = [one for one in found if one.verdict is not None]
    text = table(found, "en", everything=True)
    assert {one.outcome for one in judged} == {Outcome.NOT_COMPARABLE}
    assert "is modelled, published numbers are measured" in " ".join(text.split())
    assert exit_code(one.verdict for one in judged if one.verdict is not None) == 5


def test_a_measured_run_of_a_rehearsal_names_its_fallback_level() -> None:
    found = against(r2(fallback_level="directory"))["r2.array.c8.ttft_p50"]
    assert found.outcome is Outcome.NOT_COMPARABLE
    text = table([found], "zh", everything=False)
    assert "fallback_level" in text
    assert "不可比" in text


def test_one_block_is_inconclusive() -> None:
    assert against(r2(blocks=1))["r2.array.c8.ttft_p50"].outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("answer", [Answer.REFUTED, Answer.UNKNOWN])
def test_an_uncertified_run_is_invalid(answer: Answer) -> None:
    assert against(r2(answer=answer))["r2.array.c8.ttft_p50"].outcome is Outcome.INVALID


def test_both_languages_show_the_same_numbers(rows: dict[str, DiffRow]) -> None:
    def numbers(text: str) -> list[str]:
        return sorted(re.findall(r"\d+\.\d+", text))

    found = [one for one in rows.values() if ".c8." in one.name]
    english, chinese = (table(found, language, everything=True) for language in ("en", "zh"))
    assert english != chinese
    assert numbers(english) == numbers(chinese)


def test_a_reason_is_told_in_the_chosen_language() -> None:
    text = table([against(r2())["r2.array.c8.ttft_p50"]], "zh", everything=False)
    assert "点检" in text
    assert "point check" not in text


def test_json_holds_unrounded_numbers_and_ids_and_no_sentence(rows: dict[str, DiffRow]) -> None:
    by_claim = {one["claim"]: one for one in as_rows(list(rows.values()))}
    one = by_claim["r2.array.c8.ttft_p50"]
    assert one["outcome"] == "REPRODUCED"
    assert one["n_blocks"] == 5
    assert one["measured"] == rows["r2.array.c8.ttft_p50"].measured
    assert [reason.get("id", reason.get("message")) for reason in one["reasons"]] == [
        *("verdict-value", "verdict-deviation", "verdict-point-check"),
        *("verdict-low-end", "verdict-high-end"),
    ]
    assert [one["id"] for one in by_claim["r2.session.kv"]["reasons"]] == ["unmeasured-cell"]


# ---------------------------------------------------------------- run against run


def outcomes(rows: Iterable[DiffRow], needle: str) -> set[Outcome]:
    return {one.outcome for one in rows if needle in one.name}


def test_a_repeated_campaign_is_equivalent() -> None:
    rows = against_runs(r2(campaign_id="cluster-2"), r2())
    assert outcomes(rows, "ttft") == {Outcome.REPRODUCED}
    assert any(" / " in one.name for one in rows)


def test_a_quotient_is_told_with_its_interval_and_its_distance_from_one() -> None:
    rows = against_runs(r2(9.0, campaign_id="cluster-2"), r2())
    (row,) = [one for one in rows if one.name == "r2-cold-recovery c8 array ttft p50"]
    assert row.measured == pytest.approx(9.0 / 7.53)
    assert row.deviation == pytest.approx(9.0 / 7.53 - 1)
    assert row.verdict is not None
    assert (row.low, row.high) == (row.verdict.low, row.verdict.high)
    assert (row.published, row.unit, row.at_least) == ("1", "", None)


def test_every_arm_both_have_and_every_ratio_of_two_arms_is_compared() -> None:
    rows = against_runs(r2(campaign_id="cluster-2"), r2())
    metrics = ["ttft p50", "ttft max", "output_throughput", "device_read_bandwidth busy"]
    fraction = "ceiling_fraction busy"
    cell = "r2-cold-recovery c8"
    assert {one.name for one in rows} == {
        *(f"{cell} {arm} {metric}" for arm in ("array", "local-nvme") for metric in metrics),
        *(f"{cell} {arm} {fraction}" for arm in ("array", "local-nvme")),
        *(f"{cell} array / local-nvme {metric}" for metric in metrics),
    }
    assert against_runs(r2(campaign_id="cluster-2", concurrency=16), r2()) == []


def test_a_ratio_is_of_two_arms_at_one_level() -> None:
    def both(campaign: str) -> Session:
        low, high = (r2(campaign_id=campaign, concurrency=level) for level in (8, 16))
        return replace(
            low,
            runs=low.runs + high.runs,
            findings=low.findings + high.findings,
            ttft_s={**low.ttft_s, **high.ttft_s},
        )

    names = [one.name for one in against_runs(both("cluster-2"), both("cluster-1"))]
    assert len(names) == len(set(names))
    assert len([one for one in names if " / " in one]) == 8


def test_runs_of_which_some_are_measured_may_leave_a_figure_unmeasured() -> None:
    session = r2()
    first = replace(session.runs[0], basis=Basis.MODELLED)
    found = against(replace(session, runs=(first, *session.runs[1:])))
    assert found["r2.array.c16.ttft_p50"].outcome is Outcome.NOT_MEASURED
    modelled = tuple(replace(one, basis=Basis.MODELLED) for one in session.runs)
    none = against(replace(session, runs=modelled))["r2.array.c16.ttft_p50"]
    assert none.outcome is Outcome.NOT_COMPARABLE
    (why,) = none.reasons
    assert isinstance(why, Check)
    assert (why.quantity, why.measured) == ("basis", "modelled")


def test_a_slower_campaign_deviates() -> None:
    rows = against_runs(r2(9.0, campaign_id="cluster-2"), r2())
    assert outcomes(rows, "c8 array ttft") == {Outcome.DEVIATES}
    assert outcomes(rows, "c8 local-nvme ttft") == {Outcome.REPRODUCED}
    assert outcomes(rows, "array / local-nvme ttft") == {Outcome.DEVIATES}


def test_other_keys_leave_only_ratios_to_compare() -> None:
    rows = against_runs(r2(campaign_id="cluster-2", comparability={"model": "other"}), r2())
    assert outcomes(rows, "c8 array ttft") == {Outcome.NOT_COMPARABLE}
    assert outcomes(rows, "array / local-nvme ttft") == {Outcome.REPRODUCED}
    assert "不可比" in table(rows, "zh", everything=False)


def test_a_campaign_is_not_its_own_reference() -> None:
    with pytest.raises(UsageError, match="is judged and a reference at once"):
        against_runs(r2(), r2())


def test_runs_with_nothing_in_common_compare_nothing() -> None:
    assert against_runs(r2(), told(R1, {"patched": 9.3}, campaign_id="cluster-2")) == []


# ---------------------------------------------------------------- the command


def test_the_command_judges_a_cluster_run_directory(
    blocks: list[Evidence], capsys: pytest.CaptureFixture[str]
) -> None:
    """End to end, certificate included: the exit code is the verdicts'."""
    root = blocks[0].path.parent
    code = cli.main(["diff", str(root), "--against", "R2", "--json"])
    document = json.loads(capsys.readouterr().out)
    by_claim = {one["claim"]: one for one in document["rows"]}
    assert document["exit_code"] == code
    assert by_claim["r2.array.c8.ttft_p50"]["outcome"] == "REPRODUCED", by_claim[
        "r2.array.c8.ttft_p50"
    ]["reasons"]
    assert by_claim["r2.c8.ttft_change"]["outcome"] == "REPRODUCED"
    # The made-up device is far slower than the array's, and the report says so.
    assert by_claim["r2.array.c8.disk_busy"]["outcome"] == "DEVIATES"
    assert code == 1


def test_what_is_no_run_is_one_line_and_exit_four(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("no run\n")
    for path in (note, tmp_path, tmp_path / "absent"):
        assert cli.main(["diff", str(path), "--against", "R2"]) == 4
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert "this is not a run" in err


def test_runs_are_held_against_several_others(
    blocks: list[Evidence], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = [cluster_run(tmp_path, R2, "array", block, campaign_id="other") for block in range(2)]
    words = [word for one in theirs for word in ("--against", str(one.path))]
    ours = [str(one.path) for one in blocks if one.run.arm == "array"]
    assert cli.main(["diff", *ours, *words, "--json"]) in {0, 1, 2, 3}
    document = json.loads(capsys.readouterr().out)
    assert document["rows"]
    assert cli.main(["diff", ours[0], "--against", "R2", "--against", str(theirs[0].path)]) == 4
    assert "neither a report" in capsys.readouterr().err


def test_an_unfinished_run_is_refused_as_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = tmp_path / "x.partial"
    partial.mkdir()
    assert cli.main(["diff", str(partial), "--against", "R2"]) == 3
    assert "never finalised" in capsys.readouterr().err


def test_against_nothing_known_is_one_line_and_exit_four(
    blocks: list[Evidence], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["diff", str(blocks[0].path), "--against", "R99"]) == 4
    err = capsys.readouterr().err
    assert "R99" in err
    assert err.count("\n") == 1


def test_a_run_named_twice_counts_once(blocks: list[Evidence]) -> None:
    assert len(read_runs([blocks[0].path, blocks[0].path])) == 1
    assert blocks[0].run.basis is Basis.MEASURED
