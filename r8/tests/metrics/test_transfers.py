"""Metrics of loading and switching runs: formulas by hand, and reasons where there is no number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from r8.evidence.database import connect
from r8.metrics.measure import measure, pick
from r8.metrics.utilisation import CURVE, utilisation
from r8.report import transfer as report_work
from r8.report.document import report
from r8.tests.support.transfer_runs import change_work, loading_spec, work_run
from r8.verdict.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.evidence.reader import Evidence
    from r8.model import Measurement
    from r8.tests.support.judged_run import Tables

S = 1_000_000_000
TOTAL = 33_554_432  # four sessions of four chunks of 2 MiB


def value(run: Evidence, metric: str, statistic: str = "") -> Measurement:
    return pick(measure([run]), run_id=run.run.run_id, metric=metric, statistic=statistic)


def switching(root: Path, edit: Callable[[Tables], None] | None = None, **how: Any) -> Evidence:
    spec = loading_spec(scenario="r1-model-switch", arm=how.pop("arm", "array"))
    return work_run(root, spec, edit, job="switch", time_scale=30.0, load_s=2.0, **how)


def test_the_wall_clock_is_from_the_first_begin_to_the_last_end(tmp_path: Path) -> None:
    run = work_run(tmp_path, loading_spec())
    assert value(run, "work_wall").value == pytest.approx(4 * S)
    assert value(run, "work_time", "mean").value == pytest.approx(4 * S)
    assert value(run, "work_bytes").value == TOTAL
    assert value(run, "predicted_work_wall").value == pytest.approx(TOTAL / 128e6 * S)
    expected = 4 * 128e6 / TOTAL
    assert value(run, "wall_over_predicted").value == pytest.approx(expected)


def test_one_failed_worker_leaves_no_wall_clock(tmp_path: Path) -> None:
    def fail(tables: Tables) -> None:
        change_work(tables, "w1", outcome="ended", end_ns=None)

    found = value(work_run(tmp_path, loading_spec(), fail), "work_wall")
    assert (found.value, found.reason) == (None, "workers_failed n=1 of=2")


def test_what_was_served_is_set_beside_the_model(tmp_path: Path) -> None:
    run = switching(tmp_path)
    # Two switches of 6 s, 2 s of load each, begun a millisecond after their instant.
    assert value(run, "utilisation_measured").value == pytest.approx((2 * 3.999) / 11.999)
    assert value(run, "utilisation_modelled", "pace").value == pytest.approx(1 - 2 / 6)
    assert value(run, "utilisation_modelled", "n20").value == pytest.approx(1 - 20 * 60 / 3600)
    assert value(run, "utilisation_over_modelled", "pace").value == pytest.approx(1, abs=0.001)
    predicted = value(run, "predicted_utilisation", "n20").value
    assert predicted is not None
    assert predicted == pytest.approx(1 - 20 * 30 * TOTAL / 2 / 128e6 / 3600)
    over = value(run, "utilisation_over_predicted", "n20").value
    assert over == pytest.approx((2 * 3.999) / 11.999 / predicted)


def test_switches_that_nobody_served_have_no_utilisation_and_say_so(tmp_path: Path) -> None:
    def nothing(tables: Tables) -> None:
        tables["events"] = [row for row in tables["events"] if row["name"] != "work"]

    run = switching(tmp_path, nothing)
    for name, statistic in (("utilisation_measured", ""), ("work_time", "mean")):
        found = value(run, name, statistic)
        assert (found.value, found.n, found.reason) == (None, 0, "no_work")


def test_the_view_is_the_function_at_every_number_of_switches(tmp_path: Path) -> None:
    with connect([switching(tmp_path)]) as connection:
        rows = connection.execute(
            "SELECT n_per_hour, load_s, utilisation, reason FROM utilisation ORDER BY 1"
        ).fetchall()
    assert [row[0] for row in rows] == list(CURVE)
    for n, load_s, used, reason in rows:
        if n * load_s <= 3600:
            assert (used, reason) == (pytest.approx(utilisation(n, load_s)), None)


def test_loads_longer_than_the_hour_have_no_utilisation_and_say_so(tmp_path: Path) -> None:
    def slow(tables: Tables) -> None:
        change_work(tables, "w0", end_ns=10**15)

    with connect([switching(tmp_path, slow)]) as connection:
        (row,) = connection.execute(
            "SELECT utilisation, reason FROM utilisation WHERE n_per_hour = 60"
        ).fetchall()
    assert row[0] is None
    assert row[1].startswith("loads_exceed_hour n=60 load_s=")


def test_a_load_that_outlasts_its_period_is_refused_not_cut(tmp_path: Path) -> None:
    found = value(switching(tmp_path, period_s=1.5), "utilisation_measured")
    assert found.value is None
    assert str(found.reason).startswith("loads_late n=")


def test_the_report_prints_measurement_and_prediction_in_both_readings(tmp_path: Path) -> None:
    array = work_run(tmp_path, loading_spec())
    local = work_run(tmp_path, loading_spec(arm="local-nvme", order=1, read_s=5.0))
    text = report([array, local], [])
    assert "## Concurrent model loading" in text
    # 4 s against 5 s: a fifth of the time saved, a quarter faster.
    assert "| 20.0 %" in text
    assert "| 25.0 %" in text
    assert "predicted_ttft" not in text


def test_the_report_draws_the_curve_and_names_what_is_more_than_an_hour(tmp_path: Path) -> None:
    text = report([switching(tmp_path)], [])
    assert "**basis modelled**" in text
    assert "| 20 " in text
    assert "> 3600 s of loads" not in text


def test_what_is_more_than_the_hour_whatever_the_interval_is_said_once() -> None:
    loads = Interval(estimate=96.0, low=95.0, high=97.0, alpha=0.05, n=3)
    assert report_work._point(40, 96.0, loads, "en") == "> 3600 s of loads"
    assert report_work._point(20, 96.0, loads, "en") == "46.7 % [46.1 %, 47.2 %]"
    # At 3600 / 37.5 = 96 s an hour is just filled: one end has room left.
    near = Interval(estimate=97.4, low=97.2, high=98.0, alpha=0.05, n=3)
    assert (
        report_work._point(37, 97.4, near, "en") == "> 3600 s of loads [> 3600 s of loads, 0.1 %]"
    )
