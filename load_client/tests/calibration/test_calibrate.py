from __future__ import annotations

import importlib
import itertools
import json
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from load_client.calibration.limit import EXACT_P50_NS, EXACT_P95_NS, find_limit
from load_client.calibration.measure import (
    CalibrationBurst,
    CalibrationResult,
    _compare,
    _what_failed,
    calibrate,
    inverted_cdf,
)
from load_client.cli import main
from load_client.errors import EXIT_USAGE, ClientError

from ..support.null_servers import null_server
from ..support.runs import plan, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MS = 1_000_000
QUICK = CalibrationBurst(
    concurrency=4, request_bytes=3_000, ttft_ns=30 * MS, chunks=4, interval_ns=5 * MS
)


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([5], 0.5, 5), ([1, 2], 0.5, 1), ([3, 1, 2], 0.5, 2), ([1, 2, 3, 4], 0.75, 3),
        (list(range(1, 101)), 0.99, 99), (list(range(1, 17)), 0.99, 16), ([1, 2, 3], 1.0, 3),
    ],
)  # fmt: skip
def test_a_percentile_is_the_smallest_value_with_enough_at_or_below(
    values: list[int], q: float, expected: int
) -> None:
    assert inverted_cdf(values, q) == expected


def test_no_percentile_is_made_of_nothing() -> None:
    with pytest.raises(ValueError, match="no quantile"):
        inverted_cdf([], 0.5)


def test_calibration_appends_one_row_with_the_columns_of_the_run_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "calibration.jsonl"
    words = "calibrate --concurrency 4 --request-bytes 3000 --ttft-ms 30 --chunks 4 --interval-ms 5"
    assert main([*words.split(), "--out", str(out)]) == 0
    (row,) = (json.loads(line) for line in out.read_text().splitlines())
    schema = importlib.import_module("r8.schema")
    # Whoever keeps the row knows the run and the host.
    columns = schema.TABLES["calibration"].columns
    wanted = [c.name for c in columns if c.name not in {"run_id", "host"}]
    assert list(row) == wanted
    assert (row["name"], row["n"], row["block_bytes"], row["queue_depth"]) == ("client", 4, 3000, 4)
    # Loose: this says the truth and the client speak of the same instants, not how good it is.
    assert row["ttft_error_p50_ns"] < 20 * MS
    assert json.loads(capsys.readouterr().out)["stamps"] == ["kernel"]


def _rows(late_ns: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    requests: list[dict[str, Any]] = [
        {
            "request_id": str(i), "scheduled_ns": 0, "sent_ns": i * MS, "done_ns": 999 * MS,
            "connected_ns": 0,
            "first_content_ns": 100 * MS + (late_ns if i == 3 else 0), "stamp": "kernel",
        }
        for i in range(4)
    ]  # fmt: skip
    truth = {str(i): {"first_byte_ns": i * MS, "writes_ns": [100 * MS, 120 * MS]} for i in range(4)}
    chunks = [
        {"request_id": str(i), "kind": kind, "arrival_ns": at * MS}
        for i in range(4)
        for kind, at in (("empty", 99), ("content", 100), ("content", 121))
    ]
    return requests, chunks, truth


def test_a_client_that_is_late_is_told_so() -> None:
    for late_ns in (0, 7 * MS, -7 * MS):
        requests, chunks, truth = _rows(late_ns)
        found = _compare(QUICK, requests, chunks, truth, 0.0)
        assert found.row["ttft_error_max_ns"] == abs(late_ns)
        assert found.row["ttft_error_p50_ns"] == 0
        assert found.row["send_lag_p99_ns"] == 3 * MS
        assert found.detail["chunk_lag_max_ns"] == MS
        assert found.detail["send_skew_ns"] == 3 * MS


def test_missing_truth_is_an_error_and_no_row() -> None:
    requests, chunks, truth = _rows(0)
    with pytest.raises(ClientError, match="did not serve 1 of 4 requests"):
        _compare(QUICK, requests, chunks, {key: truth[key] for key in "012"}, 0.0)
    truth["2"]["first_byte_ns"] = None
    with pytest.raises(ClientError, match="no kernel stamp of 1 of 4 requests"):
        _compare(QUICK, requests, chunks, truth, 0.0)


def test_streams_that_do_not_come_back_are_counted_with_a_reason_and_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine so busy that the null server answers after the limit."""
    monkeypatch.setattr("load_client.calibration.measure._SPARE_S", -0.4)
    out = tmp_path / "calibration.jsonl"
    words = "calibrate --concurrency 4 --request-bytes 3000 --chunks 4 --interval-ms 5"
    assert main([*words.split(), "--out", str(out)]) == EXIT_USAGE
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("load_client: calibration failed: 4 of 4 streams failed (4 timeout), ")
    assert "first reason: no [DONE] in time, before any response byte: limit 0.12 s" in said
    assert not out.exists()


def test_failed_streams_are_told_from_those_never_sent() -> None:
    rows: list[dict[str, Any]] = [
        {"outcome": "ok", "error": None},
        {"outcome": "cut", "error": "gone"},
    ]
    assert _what_failed(2, rows) == "1 of 2 streams failed (1 cut), first reason: gone"
    assert _what_failed(4, rows[:1]) == "3 of 4 streams failed (3 not sent)"


def test_a_null_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def mute(*_: object) -> subprocess.Popen[str]:
        words = ["sleep", "60"]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr("load_client.calibration.null_process.start_module", mute)
    monkeypatch.setattr("load_client.calibration.null_process._SILENCE_S", 0.05)
    with pytest.raises(ClientError, match=r"said nothing within 0\.05 s"):
        calibrate(QUICK)


def test_truth_is_whole_when_a_signal_stops_the_null_server_inside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")  # Python then leaves what a write did not take
    with null_server(ttft_ms=1, chunks=2000, interval_ms=0) as server:
        summary, said = run(plan(server.url, output_tokens=2000), tmp_path)
        assert summary.all_ok, said
        server.stop()
        time.sleep(0.5)  # more than a pipe holds is on its way
        for number in (signal.SIGSTOP, signal.SIGCONT):
            server.process.send_signal(number)
            time.sleep(0.1)
        truth = server.answer()
    assert [len(one["writes_ns"]) for one in truth] == [2000] * 4


def test_a_body_smaller_than_a_request_can_be_is_refused() -> None:
    with pytest.raises(ClientError, match="at least"):
        calibrate(CalibrationBurst(concurrency=1, request_bytes=10))


def test_cpus_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ClientError, match="cannot run on CPUs"):
        calibrate(CalibrationBurst(concurrency=1, request_bytes=500, server_cpus=[4000]))


def test_calibration_over_tls_names_its_tool_and_its_stamps() -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    found = calibrate(replace(QUICK, tls=True))
    assert found.row["tool"] == "null-server-tls"
    assert found.detail["stamps"] == ["kernel-tls"]
    assert found.row["ttft_error_p50_ns"] < 20 * MS


def test_what_connecting_inside_the_burst_costs_is_measured() -> None:
    inside = calibrate(replace(QUICK, connect="inside"))
    assert inside.detail["connect_max_ns"] >= inside.detail["connect_p50_ns"] > 0
    assert inside.row["send_lag_p99_ns"] >= inside.detail["connect_max_ns"]
    assert calibrate(QUICK).detail["connect_p50_ns"] is None


def test_tls_and_connecting_inside_are_not_calibrated_together() -> None:
    with pytest.raises(ClientError, match="cannot stamp"):
        calibrate(replace(QUICK, tls=True, connect="inside"))


def _at(exact_up_to: int, *, spoiled: int = 0) -> Callable[[CalibrationBurst], CalibrationResult]:
    """A fake client: late beyond a concurrency, and in its first `spoiled` bursts."""
    calls = itertools.count()

    def measure(asked: CalibrationBurst) -> CalibrationResult:
        late = asked.concurrency > exact_up_to or next(calls) < spoiled
        return CalibrationResult(
            row={"name": "client", "n": asked.concurrency, "ttft_error_p50_ns": 9_000},
            detail={"ttft_error_p95_ns": MS if late else 20_000},
        )

    return measure


def test_the_limit_is_the_first_concurrency_that_is_late_in_every_try() -> None:
    found = find_limit(QUICK, 64, _at(16, spoiled=2))
    assert (found.exact_up_to, found.inexact_at) == (16, 32)
    assert found.reason == "TTFT error p95 is 1.000 ms, above 0.250 ms"
    assert {row["name"] for row in found.rows} == {"client-limit"}
    none = find_limit(QUICK, 16, _at(16))
    assert (none.exact_up_to, none.inexact_at) == (16, None)


@pytest.mark.parametrize(
    ("p50_ns", "p95_ns", "exact"),
    [
        (EXACT_P50_NS, EXACT_P95_NS, True),
        (EXACT_P50_NS + 1, EXACT_P95_NS, False),
        (EXACT_P50_NS, EXACT_P95_NS + 1, False),
    ],
)
def test_errors_may_be_as_large_as_the_limit_says(p50_ns: int, p95_ns: int, *, exact: bool) -> None:
    def measure(_asked: CalibrationBurst) -> CalibrationResult:
        return CalibrationResult(
            row={"ttft_error_p50_ns": p50_ns}, detail={"ttft_error_p95_ns": p95_ns}
        )

    assert (find_limit(QUICK, QUICK.concurrency, measure).inexact_at is None) is exact


def test_a_concurrency_that_cannot_be_measured_is_the_limit_too() -> None:
    def refuses(_asked: CalibrationBurst) -> CalibrationResult:
        raise ClientError("no sockets left", where="here", next_step="raise ulimit -n")

    found = find_limit(QUICK, 64, refuses)
    assert (found.exact_up_to, found.inexact_at, found.reason) == (None, 4, "no sockets left")
