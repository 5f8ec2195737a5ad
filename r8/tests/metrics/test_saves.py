"""A save in numbers: its time, its prediction, and the section of the report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from r8.claims.reader import load_claims
from r8.forensics.certificate import connect_settled
from r8.model import Outcome
from r8.report.checkpoint import checkpoints
from r8.report.document import report
from r8.report.words import render_reasons, say
from r8.tests.support.checkpoint_runs import (
    SAVE,
    SCENARIO,
    TICK,
    S,
    SyntheticSave,
    Tables,
    change,
    save_run,
    worker_rows,
)
from r8.tests.support.judged_run import judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.verdict.judge import judge
from r8.verdict.session import open_session

if TYPE_CHECKING:
    from pathlib import Path

    from r8.evidence.reader import Evidence


def metric(evidence: Evidence, name: str, statistic: str = "") -> tuple[float | None, str | None]:
    with connect_settled([evidence]) as connection:
        row = connection.execute(
            "SELECT value, reason FROM metrics WHERE metric = $name AND statistic = $statistic "
            "AND phase = 'measure'",
            {"name": name, "statistic": statistic},
        ).fetchone()
    assert row is not None
    return row[0], row[1]


def test_a_save_is_measured_from_the_first_begin_to_the_last_end(tmp_path: Path) -> None:
    spec = SyntheticSave()
    evidence = save_run(tmp_path, spec)
    assert metric(evidence, "save_time") == (2.0 * S, None)
    assert metric(evidence, "snapshot_bytes") == (float(spec.payload), None)
    predicted = spec.file_bytes / 70_000_000 * S
    assert metric(evidence, "predicted_save_time")[0] == pytest.approx(predicted)
    assert metric(evidence, "save_over_predicted")[0] == pytest.approx(2.0 * S / predicted)
    assert metric(evidence, "write_amplification")[0] == pytest.approx(1.0, rel=1e-4)
    mean, _ = metric(evidence, "device_write_bandwidth", "mean")
    assert mean == pytest.approx(spec.file_bytes / 2.0, rel=1e-3)
    busy, _ = metric(evidence, "device_write_bandwidth", "busy")
    assert busy == pytest.approx(mean, rel=0.1)


@pytest.mark.parametrize(("late_ns", "extra"), [(0, 0), (1, 1), (-1, 1)])
def test_a_save_is_covered_by_the_nearest_samples_outside_of_it(
    tmp_path: Path, late_ns: int, extra: int
) -> None:
    spec = SyntheticSave()

    def shift(tables: Tables) -> None:
        # The samples lie half an interval beside the save: one now falls on each of its ends.
        for row in tables["probes"]:
            row["mono_ns"] += late_ns - TICK // 2

    evidence = save_run(tmp_path, spec, spoil=shift)
    with connect_settled([evidence]) as connection:
        found = connection.execute("SELECT n FROM device_activity WHERE moves = 'write'").fetchall()
    # A sample that came a nanosecond late, or early, leaves an interval at one end half outside.
    assert found == [((spec.end - SAVE) // TICK + extra,)]


def test_a_failed_rank_leaves_no_save_time_and_a_reason(tmp_path: Path) -> None:
    def fail(tables: Tables) -> None:
        change(worker_rows(tables, "measure")[1], outcome="failed", error="No space left")

    evidence = save_run(tmp_path, spoil=fail)
    assert metric(evidence, "save_time") == (None, "workers_failed n=1 of=4")
    assert metric(evidence, "device_write_bandwidth", "mean")[0] is None


def test_without_a_write_ceiling_there_is_no_prediction(tmp_path: Path) -> None:
    evidence = save_run(tmp_path, SyntheticSave(ceiling_bytes_per_s=None))
    value, reason = metric(evidence, "predicted_save_time")
    assert value is None
    assert reason == "not_calibrated name=write_ceiling"
    assert metric(evidence, "save_time")[0] is not None


def blocks(root: Path, local_s: float, count: int = 3) -> list[Evidence]:
    """Both arms of one layout; the local device takes 3.26 : 6.40 of the array."""
    return [
        save_run(
            root,
            SyntheticSave(arm=arm, block=block, save_s=seconds, ceiling_bytes_per_s=speed),
        )
        for block in range(count)
        for arm, seconds, speed in (
            ("array-full-each", 2.0 + block / 1000, 70_000_000),
            ("local-full-each", local_s + block / 1000, 35_656_250),
        )
    ]


@pytest.mark.parametrize(
    ("local_s", "outcome"), [(3.93, Outcome.REPRODUCED), (4.4, Outcome.DEVIATES)]
)
def test_the_prediction_is_judged_in_both_directions(
    tmp_path: Path, local_s: float, outcome: Outcome
) -> None:
    wanted = "rehearsal.checkpoint.full-each.prediction"
    claims = [one for one in load_claims(SCENARIO) if one.claim_id == wanted]
    (verdict,) = judge(blocks(tmp_path, local_s), claims)
    assert verdict.outcome is outcome, render_reasons(verdict.reasons)


def test_a_published_figure_is_not_judged_by_a_rehearsal(tmp_path: Path) -> None:
    claims = [one for one in load_claims(SCENARIO) if one.source == "R1"]
    assert len(claims) == 6
    outcomes = {one.outcome for one in judge(blocks(tmp_path, 3.93, 1), claims)}
    assert outcomes <= {Outcome.NOT_COMPARABLE, Outcome.NOT_MEASURED}


def test_the_report_sets_each_save_beside_its_prediction_in_both_languages(tmp_path: Path) -> None:
    runs = blocks(tmp_path, 3.93)
    text = report(runs, load_claims(SCENARIO))
    section = text.split("## Checkpoint writes")[1].split("\n## ")[0]
    assert "local-full-each / array-full-each" in section
    headers = [line for line in section.splitlines() if line.startswith(("| block", "| ratio"))]
    assert len(headers) == 2
    chinese = report(runs, load_claims(SCENARIO), language="zh")
    told = chinese.split(f"## {say('zh', 'title-checkpoints')}")[1].split("\n## ")[0]
    assert told.count("|---") == section.count("|---") > 1
    # The same numbers in both, and words of its own in each.
    assert re.findall(r"\d+\.\d+", told) == re.findall(r"\d+\.\d+", section)
    assert re.search("[\u4e00-\u9fff]", told.strip().split("\n\n")[0])


def test_a_report_of_other_runs_has_no_such_section(tmp_path: Path) -> None:
    session = open_session([judged_run(tmp_path, SyntheticRun())])
    assert checkpoints(session, "en") == ""
