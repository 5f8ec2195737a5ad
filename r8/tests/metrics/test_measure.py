"""Request metrics and the rules all metrics share; devices and bytes are in test_metrics_bytes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import duckdb
import pytest

from r8.errors import MetricError
from r8.evidence.database import add_views, connect
from r8.evidence.reader import read_run, read_runs
from r8.metrics.measure import GoodputLimits, measure, pick
from r8.model import Basis
from r8.tests.support.metric_case import S, metric
from r8.tests.support.run_factory import Row, SyntheticRun, build_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_ttft_is_first_content_less_sent_and_its_median_an_observed_value(tmp_path: Path) -> None:
    spec = SyntheticRun(ttft_s=(4.0, 1.0, 3.0, 2.0))
    p50 = metric(tmp_path, spec, "ttft", "p50")
    assert (p50.value, p50.unit, p50.n) == (2.0 * S, "ns", 4)
    assert p50.estimator == "inverted CDF"
    assert p50.basis is Basis.MODELLED


def test_the_maximum_is_called_maximum(tmp_path: Path) -> None:
    largest = metric(tmp_path, SyntheticRun(), "ttft", "max")
    assert (largest.value, largest.estimator) == (4.0 * S, "maximum")


def test_warm_requests_are_a_phase_of_their_own(tmp_path: Path) -> None:
    spec = SyntheticRun(warm_ttft_s=(0.4, 0.5, 0.6, 0.7))
    assert metric(tmp_path, spec, "ttft", "p50", "warm").value == 0.5 * S


def test_a_phase_without_requests_has_no_value_and_says_so(tmp_path: Path) -> None:
    missing = metric(tmp_path, SyntheticRun(warm_ttft_s=None), "ttft", "p50", "warm")
    assert (missing.value, missing.n, missing.reason) == (None, 0, "no_values")


@pytest.mark.parametrize(
    ("failures", "p50", "largest"),
    [(0, 2.0 * S, 4.0 * S), (1, 2.0 * S, math.inf), (3, math.inf, math.inf)],
)
def test_a_failed_request_counts_as_infinite(
    tmp_path: Path, failures: int, p50: float, largest: float
) -> None:
    evidence = read_run(build_run(tmp_path, SyntheticRun(failures=failures)))
    found = measure([evidence])
    for name in ("ttft", "e2e"):
        infinite = pick(found, run_id=evidence.run.run_id, metric=name, statistic="max")
        assert infinite.value == (largest if failures else infinite.value)
    assert pick(found, run_id=evidence.run.run_id, metric="ttft", statistic="max").value == largest
    middle = pick(found, run_id=evidence.run.run_id, metric="ttft", statistic="p50")
    assert (middle.value, middle.n) == (p50, 4)
    failed = pick(found, run_id=evidence.run.run_id, metric="n_failed")
    assert (failed.value, failed.n) == (failures, 4)


@pytest.mark.parametrize(
    ("n", "statistic", "value"),
    [
        (1, "p50", 1.0),
        (9, "p90", None),
        (10, "p90", 9.0),
        (99, "p99", None),
        (100, "p99", 99.0),
        (100, "p90", 90.0),
    ],
)
def test_a_percentile_is_refused_where_n_cannot_support_it(
    tmp_path: Path, n: int, statistic: str, value: float | None
) -> None:
    spec = SyntheticRun(ttft_s=tuple(float(i) for i in range(1, n + 1)), warm_ttft_s=None)
    found = metric(tmp_path, spec, "ttft", statistic)
    assert found.n == n
    assert found.value == (None if value is None else value * S)
    if value is None:
        assert found.reason == f"too_few_values statistic={statistic} needs={n + 1} n={n}"


def test_duckdb_quantile_disc_is_the_inverted_cdf() -> None:
    connection = duckdb.connect()
    query = "SELECT quantile_disc(CAST(i * 7919 % $n + 1 AS DOUBLE), {}) FROM range($n) t(i)"
    for share in ("0.5", "0.9", "0.99"):
        for n in [*range(1, 250), 459, 1000, 1001, 9999, 10_000]:
            # 1..n in an order of its own (7919 is prime and divides no n here): the k-th is k.
            rows = connection.execute(query.format(share), {"n": n}).fetchall()
            assert rows == [(math.ceil(Fraction(share) * n),)], (share, n)


def test_tpot_counts_tokens_by_the_servers_usage_and_not_by_chunks(tmp_path: Path) -> None:
    # Five content chunks over 4 x 50 ms, but the server says 11 tokens: 200 ms / 10.
    def more_tokens(rows: list[Row]) -> list[Row]:
        return [{**row, "output_tokens": 11} for row in rows]

    found = metric(tmp_path, SyntheticRun(), "tpot", "p50", requests=more_tokens)
    assert (found.value, found.unit) == (0.020 * S, "ns")


def test_tpot_of_one_token_is_undefined_rather_than_skipped(tmp_path: Path) -> None:
    def one_short(rows: list[Row]) -> list[Row]:
        return [
            {**row, "output_tokens": 1} if row["request_id"] == "measure-2" else row for row in rows
        ]

    found = metric(tmp_path, SyntheticRun(), "tpot", "p50", requests=one_short)
    assert (found.value, found.reason) == (None, "values_undefined n=1 of=4")


def test_a_reader_sees_tokens_at_the_inverse_of_tpot_and_none_of_a_failure(tmp_path: Path) -> None:
    found = metric(tmp_path / "a", SyntheticRun(), "output_tokens_per_s", "p50")
    assert (found.value, found.unit) == (20.0, "tokens/s")
    failed = metric(tmp_path / "b", SyntheticRun(failures=2), "output_tokens_per_s", "p50")
    assert failed.value == 0.0


def test_itl_pools_gaps_between_content_and_sees_no_other_events(tmp_path: Path) -> None:
    def with_role_and_reasoning(rows: list[Row]) -> list[Row]:
        out: list[Row] = []
        for row in rows:
            if row["seq"] == 0:  # an empty role event long before the first content
                role = {**row, "arrival_ns": row["arrival_ns"] - S // 2, "kind": "role"}
                out += [role, {**row, "seq": 1, "kind": "reasoning"}]
            else:
                out.append({**row, "seq": row["seq"] + 1})
        return out

    found = metric(tmp_path, SyntheticRun(), "itl", "p50", chunks=with_role_and_reasoning)
    assert (found.value, found.n) == (0.05 * S, 4 * 4)


def _packed(tokens: int | None) -> Callable[[list[Row]], list[Row]]:
    """Every third event of an answer carries so many tokens."""
    return lambda rows: [{**row, "tokens": 1 if row["seq"] % 3 else tokens} for row in rows]


@pytest.mark.parametrize(
    ("tokens", "n", "p50"),
    [(None, 16, 0.05 * S), (1, 16, 0.05 * S), (2, 24, 0.05 * S), (3, 32, 0.0), (1024, 8200, 0.0)],
)
def test_tokens_of_one_event_arrived_together(
    tmp_path: Path, tokens: int | None, n: int, p50: float
) -> None:
    """Four answers of five events; the first and the fourth of each are packed."""
    found = metric(tmp_path, SyntheticRun(), "itl", "p50", chunks=_packed(tokens))
    assert (found.n, found.value) == (n, p50)


@pytest.mark.parametrize("tokens", [1025, 1 << 62])
def test_itl_is_not_known_of_an_event_that_carries_more_tokens_than_any(
    tmp_path: Path, tokens: int
) -> None:
    found = metric(tmp_path, SyntheticRun(), "itl", "p50", chunks=_packed(tokens))
    assert (found.value, found.reason) == (None, "values_undefined n=8 of=24")


def test_tpot_counts_tokens_and_no_events(tmp_path: Path) -> None:
    one = metric(tmp_path / "a", SyntheticRun(), "tpot", "p50")
    other = metric(tmp_path / "b", SyntheticRun(), "tpot", "p50", chunks=_packed(3))
    assert one.value == other.value == 0.05 * S


def test_itl_of_a_failed_request_is_one_infinite_gap(tmp_path: Path) -> None:
    found = metric(tmp_path, SyntheticRun(failures=1), "itl", "p50")
    assert (found.value, found.n) == (0.05 * S, 3 * 4 + 1)


def test_e2e_ends_with_the_last_content(tmp_path: Path) -> None:
    found = metric(tmp_path, SyntheticRun(), "e2e", "max")
    assert found.value == (4.0 + 4 * 0.05) * S


def test_output_throughput_is_usage_tokens_over_first_sent_to_last_content(tmp_path: Path) -> None:
    found = metric(tmp_path, SyntheticRun(), "output_throughput")
    assert (found.value, found.unit, found.n) == (20 / 4.2, "tokens/s", 4)


def test_throughput_counts_no_tokens_of_a_failed_request(tmp_path: Path) -> None:
    found = metric(tmp_path, SyntheticRun(failures=1), "output_throughput")
    assert (found.value, found.n) == (15 / 3.2, 3)
    none = metric(tmp_path / "none", SyntheticRun(failures=4), "output_throughput")
    assert (none.value, none.reason) == (None, "no_request_finished")


def test_goodput_needs_limits_and_counts_requests_within_both(tmp_path: Path) -> None:
    evidence = read_run(build_run(tmp_path, SyntheticRun()))
    run_id = evidence.run.run_id
    without = pick(measure([evidence]), run_id=run_id, metric="goodput")
    assert (without.value, without.reason) == (None, "no_limits_stated")
    limits = GoodputLimits(ttft_ns=2 * S, tpot_ns=S)
    assert pick(measure([evidence], limits), run_id=run_id, metric="goodput").value == 2 / 4.2
    strict = GoodputLimits(ttft_ns=2 * S, tpot_ns=S // 100)
    assert pick(measure([evidence], strict), run_id=run_id, metric="goodput").value == 0.0


def test_an_ok_request_without_its_instants_is_never_dropped(tmp_path: Path) -> None:
    def lost(rows: list[Row]) -> list[Row]:
        return [
            {**row, "first_content_ns": None} if row["request_id"] == "measure-0" else row
            for row in rows
        ]

    found = metric(tmp_path, SyntheticRun(), "ttft", "p50", requests=lost)
    assert (found.value, found.reason) == (None, "values_undefined n=1 of=4")


def test_every_measurement_without_a_value_has_a_reason_and_the_others_have_none(
    tmp_path: Path,
) -> None:
    paths = [build_run(tmp_path, SyntheticRun(block=b, arm=a)) for b in (0, 1) for a in ARMS]
    paths.append(build_run(tmp_path, EMPTY))
    found = measure(read_runs(paths))
    assert {one.run_id for one in found} == {path.name for path in paths}
    assert [one for one in found if (one.value is None) != (one.reason is not None)] == []
    keys = [(one.run_id, one.phase, one.metric, one.statistic) for one in found]
    assert len(keys) == len(set(keys))
    assert keys == sorted(keys)


ARMS = ("unpatched", "patched", "upstream-4")
EMPTY = SyntheticRun(
    block=2,
    ttft_s=(1.0,),
    failures=1,
    warm_ttft_s=None,
    device_read_bytes=None,
    process_read_bytes=None,
    other_kv_devices=(),
    ceiling_bytes_per_s=None,
    serial_bytes_per_s=None,
    patch_mode=None,
)


def test_arms_are_compared_by_the_logarithm_of_their_ratio_within_a_block(tmp_path: Path) -> None:
    fast = SyntheticRun(arm="patched", ttft_s=(1.0, 1.0))
    slow = SyntheticRun(arm="unpatched", ttft_s=(4.0, 4.0))
    other_block = SyntheticRun(arm="unpatched", block=1, ttft_s=(4.0, 4.0))
    evidences = read_runs(build_run(tmp_path, spec) for spec in (fast, slow, other_block))
    with connect(evidences) as connection:
        add_views(connection)
        rows = connection.execute(
            "SELECT numerator_arm, denominator_arm, block, ln_ratio FROM arm_ratio "
            "WHERE metric = 'ttft' AND statistic = 'p50' AND phase = 'measure' ORDER BY ALL"
        ).fetchall()
    assert rows == [
        ("patched", "unpatched", 0, math.log(0.25)),
        ("unpatched", "patched", 0, math.log(4.0)),
    ]


def test_a_ratio_with_an_infinite_side_has_no_logarithm(tmp_path: Path) -> None:
    specs = SyntheticRun(arm="patched"), SyntheticRun(arm="unpatched", failures=4)
    with connect(read_runs(build_run(tmp_path, spec) for spec in specs)) as connection:
        add_views(connection)
        rows = connection.execute(
            "SELECT DISTINCT ln_ratio FROM arm_ratio WHERE metric = 'ttft' AND phase = 'measure'"
        ).fetchall()
    assert rows == [(None,)]


def test_an_instance_has_the_median_and_the_last_of_its_requests(tmp_path: Path) -> None:
    with connect([read_run(build_run(tmp_path, SyntheticRun()))]) as connection:
        rows = connection.execute(
            "SELECT n, n_failed, ttft_p50_ns, ttft_max_ns FROM instance_reads"
        ).fetchall()
    assert rows == [(4, 0, 2.0 * S, 4.0 * S)]


def test_metrics_of_no_runs_and_of_unknown_names_are_errors(tmp_path: Path) -> None:
    with pytest.raises(MetricError, match="no runs"):
        measure([])
    evidence = read_run(build_run(tmp_path, SyntheticRun()))
    with pytest.raises(MetricError, match="no metric latency"):
        pick(measure([evidence]), run_id=evidence.run.run_id, metric="latency")
