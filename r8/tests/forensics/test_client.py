"""C10: the load client kept up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from r8.forensics.client import client_kept_up, released_together
from r8.message import Answer
from r8.tests.support.findings import said
from r8.tests.support.judged_run import Tables, findings, judged_run
from r8.tests.support.run_factory import SyntheticRun
from r8.tests.support.stub_case import (
    H,
    R,
    StubCase,
    answers_of,
    at_least,
    at_most,
    between,
    job_run,
    work_sums,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from r8.forensics.case import Case

MS = 1_000_000
TTFT = 100 * MS  # of which the send lag may be 5 ms, an error of the client 1 ms


def client(lag: int = 0, n: int = 4, own: tuple[int, int, int] = (0, 0, 0)) -> Case:
    """Four requests sent `lag` ns late by a client with these errors of its own."""
    answers: dict[str, list[Any]] = {"FROM request_times": [(4, 4, lag)]}
    answers["FROM calibration"] = [(n, *own)]
    return StubCase(metrics={"ttft p50": TTFT}, answers=answers)


@pytest.mark.parametrize(("lag", "answer"), at_most(5 * MS))
def test_c10_allows_a_send_lag_of_five_percent(lag: int, answer: Answer) -> None:
    assert answers_of(client_kept_up(client(lag)), "c10-send-lag") == [answer]


@pytest.mark.parametrize(("n", "answer"), at_least(4))
def test_c10_wants_a_calibration_of_the_offered_load(n: int, answer: Answer) -> None:
    assert answers_of(client_kept_up(client(n=n)), "c10-calibrated-requests") == [answer]


@pytest.mark.parametrize(
    ("place", "limit"), [(0, 5 * MS), (1, MS), (2, 5 * MS)], ids=["lag p99", "error p50", "max"]
)
def test_c10_allows_each_error_of_the_client_its_share_both_ways(place: int, limit: int) -> None:
    for size, answer in between(-limit, limit):
        own = tuple(size if at == place else 0 for at in range(3))
        checks = client_kept_up(client(own=own))  # type: ignore[arg-type]
        assert answers_of(checks, "c10-own-error")[place] is answer


def worker(name: str, lag: int, begin: int, end: int) -> tuple[object, ...]:
    return (name, "ok", None, begin, end, end - begin, lag, 500_000)


def job(*rows: tuple[object, ...], shared: int = 0, **work: object) -> Case:
    answers = {"work_sums": work_sums(shared_ns=shared), "FROM work": list(rows)}
    return StubCase(run=job_run(**work), answers=answers)


@pytest.mark.parametrize(("lag", "answer"), at_most(5 * MS))
def test_c10_allows_a_worker_five_percent_behind_the_barrier(lag: int, answer: Answer) -> None:
    case = job(worker("w0", 0, 0, TTFT), worker("w1", lag, 0, 2 * TTFT))
    assert answers_of(released_together(case), "c10-barrier-lag") == [answer]


@pytest.mark.parametrize(("lag", "answer"), [(-1, R), (0, H), (1, H)])
def test_c10_allows_no_worker_before_the_barrier(lag: int, answer: Answer) -> None:
    case = job(worker("w0", 0, 0, TTFT), worker("w1", lag, 0, TTFT))
    assert answers_of(released_together(case), "c10-early") == [answer]


@pytest.mark.parametrize(("shared", "answer"), at_least(TTFT // 2))
def test_c10_wants_engines_to_load_together_for_half_of_the_longest(
    shared: int, answer: Answer
) -> None:
    rows = [worker("w0", 0, 0, TTFT), worker("w1", 0, TTFT - shared, TTFT)]
    assert answers_of(
        released_together(job(*rows, shared=shared, tool="engine")), "c10-overlap"
    ) == [answer]
    # Loaders begin at the barrier itself, and engines that switch load one after the other.
    assert answers_of(released_together(job(*rows)), "c10-overlap") == []
    for tool in ("dd", "safetensors"):
        assert answers_of(released_together(job(*rows, tool=tool)), "c10-overlap") == []
    case = job(*rows, tool="engine", job="switch")
    assert answers_of(released_together(case), "c10-overlap") == []


def client_row(tables: Tables) -> dict[str, int | None]:
    return next(row for row in tables["calibration"] if row["name"] == "client")


def test_c10_holds_for_a_prompt_client(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun()))["C10"]
    assert found.answer is Answer.HELD
    assert "largest send lag 1.000 ms <= 100.000 ms (5% of the TTFT p50)" in said(found)


def test_c10_refutes_a_burst_sent_late(tmp_path: Path) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(send_lag_s=0.2)))["C10"]
    assert found.answer is Answer.REFUTED
    assert "largest send lag 200.000 ms <= 100.000 ms" in said(found)


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
        (slow_clock, "ttft_error_p50_ns 21.000 ms within -20.000 ms to 20.000 ms"),
        (outlier, "ttft_error_max_ns 101.000 ms within -100.000 ms to 100.000 ms"),
        (late_in_calibration, "send_lag_p99_ns 101.000 ms within -100.000 ms to 100.000 ms"),
        (small_calibration, "calibrated with 3 requests >= concurrency 4 [refuted]"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_c10_refutes_by_number(tmp_path: Path, edit: Callable[[Tables], None], says: str) -> None:
    found = findings(judged_run(tmp_path, SyntheticRun(), edit))["C10"]
    assert found.answer is Answer.REFUTED
    assert says in said(found)


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
    assert "no null-server calibration of the client [unknown]" in said(found)


def test_c10_is_unknown_when_every_request_failed(tmp_path: Path) -> None:
    assert findings(judged_run(tmp_path, SyntheticRun(failures=4)))["C10"].answer is Answer.UNKNOWN
