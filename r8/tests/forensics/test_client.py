"""C10: the load client kept up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.message import Answer
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MS = 1_000_000


def client_row(tables: Tables) -> dict[str, int | None]:
    return next(row for row in tables["calibration"] if row["name"] == "client")


def test_c10_holds_for_a_prompt_client(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C10"]
    assert found.answer is Answer.HELD
    assert "largest send lag 1.000 ms <= 100.000 ms (5% of the TTFT p50)" in found.arithmetic


def test_c10_refutes_a_burst_sent_late(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(send_lag_s=0.2)))["C10"]
    assert found.answer is Answer.REFUTED
    assert "largest send lag 200.000 ms <= 100.000 ms" in found.arithmetic


def slow_clock(tables: Tables) -> None:
    client_row(tables)["ttft_error_p50_ns"] = 21 * MS


def outlier(tables: Tables) -> None:
    client_row(tables)["ttft_error_max_ns"] = 101 * MS


def late_in_calibration(tables: Tables) -> None:
    client_row(tables)["send_lag_p99_ns"] = 101 * MS


def small_calibration(tables: Tables) -> None:
    client_row(tables)["n"] = 3


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (slow_clock, "TTFT error p50 21.000 ms <= 20.000 ms"),
        (outlier, "TTFT error max 101.000 ms <= 100.000 ms"),
        (late_in_calibration, "send lag p99 101.000 ms <= 100.000 ms"),
        (small_calibration, "calibrated with 3 requests >= concurrency 4 [refuted]"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_c10_refutes_by_number(tmp_path: Path, edit: Callable[[Tables], None], says: str) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C10"]
    assert found.answer is Answer.REFUTED
    assert says in found.arithmetic


def no_error_known(tables: Tables) -> None:
    client_row(tables)["ttft_error_p50_ns"] = None


def no_schedule(tables: Tables) -> None:
    next(row for row in tables["requests"] if row["phase"] == "measure")["scheduled_ns"] = None


@pytest.mark.parametrize("edit", [no_error_known, no_schedule], ids=lambda f: f.__name__)
def test_c10_is_unknown_when_a_number_is_missing(
    tmp_path: Path, edit: Callable[[Tables], None]
) -> None:
    assert findings(judged_run(tmp_path, SyntheticRun(), edit))["C10"].answer is Answer.UNKNOWN


def test_c10_is_unknown_without_a_calibration(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(client_calibrated=False)))["C10"]
    assert found.answer is Answer.UNKNOWN
    assert "no null-server calibration of the client [unknown]" in found.arithmetic


def test_c10_is_unknown_when_every_request_failed(tmp_path: Path) -> None:
    assert findings(judged_run(tmp_path, SyntheticRun(failures=4)))["C10"].answer is Answer.UNKNOWN
