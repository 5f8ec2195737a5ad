"""Bandwidth of the KV device and the calibrations it is held against, computed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.tests.support.metric_case import CEILING, MB_SECTORS, S, metric, only, sample
from r8.tests.support.run_factory import Row, SyntheticRun
from r8.tests.support.run_factory_rows import MEASURE_BEGIN, measure_end

if TYPE_CHECKING:
    from pathlib import Path


# One sample a second, its window ending with it: 0, 40, 60, 1, 0 and 30 MB a second; the ceiling is
# 100 MB/s, so the window of 1 MB/s is below 5 % of it.
STEPS_MB = (0, 40, 60, 1, 0, 30)


def steps() -> list[Row]:
    total, rows = 0, [sample(MEASURE_BEGIN, 0)]
    for number, megabytes in enumerate(STEPS_MB, start=1):
        total += megabytes * MB_SECTORS
        rows.append(sample(MEASURE_BEGIN + number * S, total))
    return rows


@pytest.mark.parametrize(
    ("statistic", "megabytes_per_s", "n"),
    [
        ("mean", 131 / 5, 6),  # from the second interval to the last
        ("busy", (40 + 60 + 30) / 3, 3),
        ("peak_1s", 60, 6),
    ],
)
def test_bandwidth_is_taken_of_whole_sample_intervals(
    tmp_path: Path, statistic: str, megabytes_per_s: float, n: int
) -> None:
    spec = SyntheticRun(ttft_s=(5.0,), ceiling_bytes_per_s=CEILING)
    name = "device_read_bandwidth"
    found = metric(tmp_path, spec, name, statistic, probes=only(*steps()))
    assert found.value == pytest.approx(megabytes_per_s * MB_SECTORS * 512, rel=1e-15)
    assert (found.unit, found.n) == ("bytes/s", n)


def test_a_window_shorter_than_a_second_is_no_peak(tmp_path: Path) -> None:
    fast_end = [sample(MEASURE_BEGIN + 6 * S + S // 10, 10**6)]
    spec = SyntheticRun(ttft_s=(5.35,), ceiling_bytes_per_s=CEILING)
    samples = [*steps()[:-1], sample(MEASURE_BEGIN + 6 * S, 131 * MB_SECTORS), *fast_end]
    found = metric(tmp_path, spec, "device_read_bandwidth", "peak_1s", probes=only(*samples))
    assert found.value == 60 * MB_SECTORS * 512


def test_the_fraction_of_the_ceiling_is_bandwidth_by_the_best_ceiling(tmp_path: Path) -> None:
    spec = SyntheticRun(ttft_s=(5.0,), ceiling_bytes_per_s=CEILING)
    found = metric(tmp_path, spec, "ceiling_fraction", "busy", probes=only(*steps()))
    assert found.value == pytest.approx(130 / 3 * MB_SECTORS * 512 / CEILING, rel=1e-15)


def test_without_a_ceiling_there_is_no_busy_window_and_no_fraction(tmp_path: Path) -> None:
    spec = SyntheticRun(ceiling_bytes_per_s=None)
    for name in ("ceiling_fraction", "device_read_bandwidth"):
        found = metric(tmp_path / name, spec, name, "busy")
        assert (found.value, found.reason) == (None, "not_calibrated name=ceiling")


def test_the_ceiling_is_the_best_of_its_rows_and_serial_pools_them(tmp_path: Path) -> None:
    def slower_too(rows: list[Row]) -> list[Row]:
        slower = [{**row, "read_bytes": 10**6, "elapsed_ns": 5 * S} for row in rows]
        return rows + [row for row in slower if row["name"] != "client"]

    spec = SyntheticRun(ceiling_bytes_per_s=10**6, serial_bytes_per_s=10**6)
    ceiling = metric(
        tmp_path / "c", spec, "ceiling_bandwidth", phase="calibration", calibration=slower_too
    )
    serial = metric(
        tmp_path / "s", spec, "serial_bandwidth", phase="calibration", calibration=slower_too
    )
    assert (ceiling.value, ceiling.n) == (1e6, 2)
    assert (serial.value, serial.n) == (6e6 / 10, 2)


def test_a_reading_that_moved_nothing_is_no_calibration(tmp_path: Path) -> None:
    def empty_too(rows: list[Row]) -> list[Row]:
        return rows + [{**row, "read_bytes": 0} for row in rows]

    found = metric(
        tmp_path, SyntheticRun(), "ceiling_bandwidth", phase="calibration", calibration=empty_too
    )
    assert (found.value, found.n) == (128e6, 1)


def test_calibrations_of_two_devices_are_not_mixed(tmp_path: Path) -> None:
    def another_device(rows: list[Row]) -> list[Row]:
        return rows + [{**row, "device": "md0"} for row in rows]

    found = metric(
        tmp_path,
        SyntheticRun(),
        "ceiling_bandwidth",
        phase="calibration",
        calibration=another_device,
    )
    assert (found.value, found.reason) == (None, "several_devices_calibrated n=2")


@pytest.mark.parametrize("statistic", ["mean", "busy", "peak_1s"])
def test_a_device_that_was_not_sampled_has_no_bandwidth_of_no_window(
    tmp_path: Path, statistic: str
) -> None:
    found = metric(
        tmp_path,
        SyntheticRun(),
        "device_read_bandwidth",
        statistic,
        probes=only(sample(measure_end(SyntheticRun()), 1)),
    )
    assert (found.value, found.n, found.reason) == (None, 0, "no_sample_before")
