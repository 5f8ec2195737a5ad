"""What the prediction is made of, and that it follows the steps of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from r8.evidence.database import connect
from r8.evidence.finalise import finalise
from r8.evidence.reader import read_run
from r8.tests.support.metric_case import S, metric
from r8.tests.support.run_factory import MIB, SyntheticRun, build_partial

if TYPE_CHECKING:
    from pathlib import Path

HIT_BYTES = 4 * 4 * 2 * MIB  # 4 sessions of 1025 tokens: 4 chunks of 2 MiB each


@pytest.mark.parametrize(
    ("spec", "bandwidth"),
    [
        (SyntheticRun(arm="unpatched"), 24_000_000),
        (SyntheticRun(arm="patched"), 128_000_000),
        (SyntheticRun(arm="upstream-32"), 128_000_000),
        # No view knows a name: a site's own arms and scenarios are predicted by how they read.
        (SyntheticRun(arm="array-rdma", patch="patched"), 128_000_000),
        (SyntheticRun(arm="array-rdma", patch="unpatched"), 24_000_000),
        (SyntheticRun(scenario="r4-mine", arm="array-rdma", patch="patched"), 128_000_000),
    ],
    ids=lambda one: f"{one.scenario} {one.arm}" if isinstance(one, SyntheticRun) else str(one),
)
def test_the_prediction_is_warm_ttft_plus_bytes_by_bandwidth(
    tmp_path: Path, spec: SyntheticRun, bandwidth: int
) -> None:
    found = metric(tmp_path, spec, "predicted_ttft", "p50")
    assert found.value == pytest.approx(0.5 * S + HIT_BYTES / bandwidth * S, rel=1e-15)
    assert found.unit == "ns"


def burst_log(text: str, first: int) -> str:
    """The measured requests' lines in two steps: the first takes `first`, the second all others."""
    lines = text.splitlines(keepends=True)
    burst = [line for line in lines if "cmpl-measure-" in line]
    kinds = [[line for line in burst if word in line] for word in ("Reqid", "Retrieved")]
    steps = [
        lines_ for part in (slice(first), slice(first, None)) for lines_ in (k[part] for k in kinds)
    ]
    ordered = iter([line for step in steps for line in step])
    return "".join(next(ordered) if "cmpl-measure-" in line else line for line in lines)


@pytest.mark.parametrize(
    ("first", "p50_share", "max_share"),
    [(1, 1.0, 1.0), (3, 0.75, 1.0), (2, 0.5, 1.0), (4, 1.0, 1.0)],
)
def test_the_prediction_knows_how_many_requests_the_first_step_took(
    tmp_path: Path, first: int, p50_share: float, max_share: float
) -> None:
    # Of four requests the p50 is the second: it is answered with its step.
    partial = build_partial(tmp_path, SyntheticRun(arm="patched"))
    log = partial / "raw" / "server-a.log"
    log.write_text(burst_log(log.read_text(), first))
    with connect([read_run(finalise(partial, complete=True))]) as connection:
        found = dict(
            connection.execute(
                "SELECT metric || statistic, value FROM metrics WHERE metric IN "
                "('predicted_ttft', 'first_step_requests')"
            ).fetchall()
        )
    assert found["first_step_requests"] == first
    for statistic, share in (("p50", p50_share), ("max", max_share)):
        expected = 0.5 * S + share * HIT_BYTES / 128_000_000 * S
        assert found["predicted_ttft" + statistic] == pytest.approx(expected, rel=1e-15)


def test_a_request_without_a_lookup_line_leaves_its_step_unknown(tmp_path: Path) -> None:
    partial = build_partial(tmp_path, SyntheticRun(arm="patched"))
    log = partial / "raw" / "server-a.log"
    kept = [line for line in log.read_text().splitlines() if "cmpl-measure-0" not in line]
    log.write_text("\n".join(kept) + "\n")
    with connect([read_run(finalise(partial, complete=True))]) as connection:
        rows = connection.execute(
            "SELECT DISTINCT value, reason FROM metrics WHERE metric IN "
            "('predicted_ttft', 'first_step_requests')"
        ).fetchall()
    assert rows == [(None, "requests_without_lookup n=1 of=4")]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (SyntheticRun(arm="upstream-4"), "reader_unknown role=array"),
        (SyntheticRun(warm_ttft_s=None), 'no_values on="warm ttft"'),
        (SyntheticRun(ceiling_bytes_per_s=None), "not_calibrated name=ceiling"),
    ],
)
def test_no_prediction_without_its_parts(tmp_path: Path, spec: SyntheticRun, reason: str) -> None:
    found = metric(tmp_path, spec, "predicted_ttft", "p50")
    assert (found.value, found.reason) == (None, reason)
