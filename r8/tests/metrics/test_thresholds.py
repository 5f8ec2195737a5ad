"""Every number that a query compares with, just below and just above it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from r8.evidence.reader import read_run
from r8.metrics.measure import GoodputLimits, measure, pick
from r8.resources import query_names, query_text
from r8.tests.forensics.test_instances import values
from r8.tests.metrics.test_transfers import switching, value
from r8.tests.support.metric_case import CEILING, MB_SECTORS, S, metric, only, sample
from r8.tests.support.run_factory import ARMS, MIB, SyntheticRun, build_run
from r8.tests.support.run_factory_rows import MEASURE_BEGIN
from r8.tests.support.scaling_runs import scaling_run
from r8.tests.support.transfer_runs import change_work, loading_spec, work_run

if TYPE_CHECKING:
    from pathlib import Path

    from r8.tests.support.judged_run import Tables

FIVE_PER_CENT = 5 * MB_SECTORS  # sectors a second, of the ceiling
SPEC = SyntheticRun(ttft_s=(2.0,), read_s=2.0, ceiling_bytes_per_s=CEILING)


def by_the_second(*sectors: int) -> list[dict[str, Any]]:
    """Samples of the KV device a second apart, from the begin of the measured phase on."""
    rows, total = [sample(MEASURE_BEGIN, 0)], 0
    for number, moved in enumerate(sectors, start=1):
        total += moved
        rows.append(sample(MEASURE_BEGIN + number * S, total))
    return rows


@pytest.mark.parametrize(
    ("sectors", "busy"), [(FIVE_PER_CENT - 1, 1), (FIVE_PER_CENT + 1, 2), (FIVE_PER_CENT // 4, 1)]
)
def test_a_second_is_busy_above_five_per_cent_of_the_ceiling(
    tmp_path: Path, sectors: int, busy: int
) -> None:
    probes = only(*by_the_second(50 * MB_SECTORS, sectors, 0, 0))
    assert metric(tmp_path, SPEC, "ceiling_fraction", "busy", probes=probes).n == busy


@pytest.mark.parametrize(("shorter_ns", "whole"), [(100_000_000, 1), (100_000_001, 0)])
def test_a_window_of_nine_tenths_of_a_second_is_whole(
    tmp_path: Path, shorter_ns: int, whole: int
) -> None:
    rows = [
        sample(MEASURE_BEGIN, 0),
        sample(MEASURE_BEGIN + S - shorter_ns, 50 * MB_SECTORS),
        sample(MEASURE_BEGIN + 4 * S, 50 * MB_SECTORS),
    ]
    # The second window lasts three seconds and moves nothing.
    found = metric(tmp_path, SPEC, "device_read_bandwidth", "peak_1s", probes=only(*rows))
    assert found.n == 1 + whole
    assert (found.value or 0) > 0 if whole else found.value == 0


@pytest.mark.parametrize(("limit_ns", "good"), [(2 * S, 2), (2 * S - 1, 1)])
def test_goodput_allows_the_limit_itself(tmp_path: Path, limit_ns: int, good: int) -> None:
    evidence = read_run(build_run(tmp_path, SyntheticRun()))
    limits = GoodputLimits(ttft_ns=limit_ns, tpot_ns=S)
    found = pick(measure([evidence], limits), run_id=evidence.run.run_id, metric="goodput")
    assert found.value == good / 4.2


@pytest.mark.parametrize(("tpot_ns", "good"), [(50_000_000, 4), (49_999_999, 0)])
def test_goodput_allows_the_limit_of_a_token_itself(
    tmp_path: Path, tpot_ns: int, good: int
) -> None:
    evidence = read_run(build_run(tmp_path, SyntheticRun()))
    limits = GoodputLimits(ttft_ns=9 * S, tpot_ns=tpot_ns)
    found = pick(measure([evidence], limits), run_id=evidence.run.run_id, metric="goodput")
    assert found.value == good / 4.2


@pytest.mark.parametrize(
    ("longer_ns", "reason"), [(0, "no_time_passed"), (-1, "no_time_passed"), (1, None)]
)
def test_a_rate_needs_a_nanosecond(tmp_path: Path, longer_ns: int, reason: str | None) -> None:
    def instant(tables: Tables) -> None:
        for name in ("w0", "w1"):
            change_work(tables, name, begin_ns=MEASURE_BEGIN, end_ns=MEASURE_BEGIN + longer_ns)

    run = work_run(tmp_path / "work", loading_spec(), instant)
    assert value(run, "work_bandwidth").reason == reason

    def at_once(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        ends = ("first_content_ns", "last_content_ns", "done_ns")
        return [row | dict.fromkeys(ends, row["sent_ns"] + longer_ns) for row in rows]

    for name in ("output_throughput", "output_throughput_as_published"):
        found = metric(tmp_path / name, SyntheticRun(), name, requests=at_once)
        assert found.reason == reason


@pytest.mark.parametrize(("end_ns", "reason"), [(6 * S, None), (6 * S + 1, "loads_late n=1 of=2")])
def test_a_load_may_last_until_the_next_switch_is_due(
    tmp_path: Path, end_ns: int, reason: str | None
) -> None:
    def long_load(tables: Tables) -> None:
        change_work(tables, "w0", end_ns=MEASURE_BEGIN + 200_000_000 + end_ns)

    assert value(switching(tmp_path, long_load), "utilisation_measured").reason == reason


@pytest.mark.parametrize(
    ("mean_ns", "used", "reason"),
    [
        (6 * S, 0.0, None),
        (6 * S + 2, None, "loads_exceed_hour n=20 load_s=180.0"),
        (6_010_000_000, None, "loads_exceed_hour n=20 load_s=180.3"),
    ],
)
def test_loads_may_fill_the_hour(
    tmp_path: Path, mean_ns: int, used: float | None, reason: str | None
) -> None:
    """20 loads of 6 s, each modelling 30 times as long, are the hour."""

    def hour(tables: Tables) -> None:
        for name, late in (("w0", 0), ("w1", 6)):
            begin = MEASURE_BEGIN + 200_000_000 + late * S
            change_work(tables, name, begin_ns=begin, end_ns=begin + mean_ns)

    found = value(switching(tmp_path, hour), "utilisation_modelled", "n20")
    assert (found.value, found.reason) == (used, reason)


def test_one_switch_has_no_pace(tmp_path: Path) -> None:
    def alone(tables: Tables) -> None:
        tables["events"] = [
            row
            for row in tables["events"]
            if row["name"] != "work" or json.loads(row["detail"])["worker"] == "w0"
        ]

    assert value(switching(tmp_path, alone), "utilisation_measured").reason == "one_switch"


@pytest.mark.parametrize(
    ("ceiling", "predicted"),
    [(100_000_000, 1.788), (1_000_000_000, 2.0), (10_000_000, 1.0)],
)
def test_engines_side_by_side_are_predicted_up_to_the_ceiling(
    tmp_path: Path, ceiling: int, predicted: float
) -> None:
    """One engine alone reads 55.9 MB/s; a ceiling below that would be no ceiling."""
    runs = [scaling_run(tmp_path, n, read_s=0.25, ceiling_bytes_per_s=ceiling) for n in (1, 2)]
    found, _ = values(runs, "predicted_scaling_speedup", runs[1].run.run_id)
    assert found == pytest.approx(predicted, rel=0.01)


def test_a_read_of_the_patch_belongs_to_the_request_beside_it() -> None:
    """Before a sync read, after an async one: the request on its other side is none of its own."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE log_requests AS FROM (VALUES ('r', 'a', 1, 'populate'), "
        "('r', 'a', 3, 'measure'), ('r', 'a', 5, 'warm'), ('r', 'b', 2, 'control')) "
        "t(run_id, instance, line, phase)"
    )
    connection.execute(
        "CREATE TABLE engine_log AS FROM (VALUES ('r', 'a', 2, 'R8-PATCH read path=sync b=1'), "
        "('r', 'a', 4, 'R8-PATCH read path=async b=1')) t(run_id, instance, line, text) "
        "CROSS JOIN (VALUES ('patch_read', 1, 1, 0, 1)) "
        "u(kind, keys, segments, misses, read_bytes)"
    )
    (statement,) = [
        one.query
        for one in duckdb.extract_statements(query_text("engine_log"))
        if "TABLE patch_reads" in one.query
    ]
    connection.execute(statement)
    rows = connection.execute("SELECT line, phase FROM patch_reads ORDER BY line").fetchall()
    assert rows == [(2, "populate"), (4, "warm")]


@pytest.mark.parametrize(
    ("changes", "n"), [({}, 1), ({"read_bytes": 0}, 0), ({"elapsed_ns": 0}, 0)]
)
def test_a_calibration_that_moved_nothing_or_took_no_time_is_none(
    tmp_path: Path, changes: dict[str, int], n: int
) -> None:
    found = metric(
        tmp_path,
        SyntheticRun(),
        "ceiling_bandwidth",
        phase="calibration",
        calibration=lambda rows: [row | changes for row in rows],
    )
    assert (found.n, found.reason) == (n, None if n else "not_calibrated name=ceiling")


@pytest.mark.parametrize(
    ("serial", "bandwidth"), [(64_000_000 - 1, 128_000_000 - 2), (64_000_001, 128_000_000)]
)
def test_serial_readers_side_by_side_are_predicted_up_to_the_ceiling(
    tmp_path: Path, serial: int, bandwidth: int
) -> None:
    run = scaling_run(tmp_path, 2, read_s=0.25, serial_bytes_per_s=serial, patched=False)
    found = pick(measure([run]), run_id=run.run.run_id, metric="predicted_ttft", statistic="max")
    # Two engines of two sessions each: everything comes from one device.
    hit_bytes = 4 * 4 * 2 * MIB
    assert found.value == pytest.approx(0.1 * S + hit_bytes / bandwidth * S, rel=1e-15)


def test_no_query_knows_the_name_of_an_arm_or_of_a_scenario() -> None:
    """The kind is closed by role and treatment: a site names its arms as it likes."""
    scenarios = {"r1-parallel-read", "r1-scaling", "r1-model-load", "r1-model-switch"}
    scenarios |= {"r1-checkpoint", "r2-cold-recovery", "r3-tp4x2"}
    for name in query_names():
        code = re.sub(r"--[^\n]*", "", query_text(name))
        literals = set(re.findall(r"'([^']*)'", code))
        assert literals & (scenarios | set(ARMS)) == set(), name
