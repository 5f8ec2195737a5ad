"""One printed GB is the same number of bytes for the judge, the diff and SQL: the ledger's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from r8.claims.ledger import load_ledger
from r8.claims.reader import load_claims
from r8.claims.reports import load_reports
from r8.evidence.database import add_views, connect
from r8.tests.support.cluster_runs import R1, cluster_spec
from r8.tests.support.findings import all_held
from r8.tests.support.judged_run import judged_run
from r8.units import BYTES_PER_GB
from r8.verdict.diff import DiffRow, against_report
from r8.verdict.judge import judge_session
from r8.verdict.session import open_session

if TYPE_CHECKING:
    from r8.evidence.reader import Evidence
    from r8.model import Claim, Verdict

LEDGER, REPORTS = load_ledger(), load_reports()
IOSTAT_GB = 1_024_000_000
BANDWIDTHS = ("r1.patch.bw.before", "r1.patch.bw.after")


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> list[Evidence]:
    root = tmp_path_factory.mktemp("r1")
    return [
        judged_run(root, cluster_spec(R1, arm, block, seconds, concurrency=16))
        for block in range(5)
        for arm, seconds in (("unpatched", 9.0), ("patched", 3.0))
    ]


@pytest.fixture(scope="module")
def pairs(blocks: list[Evidence]) -> dict[str, tuple[Verdict, DiffRow]]:
    """The judge's verdict and the diff's row of every R1 claim about an absolute bandwidth."""
    session = open_session(blocks)
    held = all_held(session.findings)
    session = replace(session, findings=held)
    verdicts = {one.claim.claim_id: one for one in judge_session(session, r1_claims())}
    rows = {one.name: one for one in against_report(session, LEDGER, REPORTS, "R1")}
    return {name: (verdicts[name], rows[name]) for name in BANDWIDTHS}


def r1_claims() -> list[Claim]:
    return [one for one in load_claims(R1) if one.claim_id in BANDWIDTHS]


@pytest.mark.parametrize("name", BANDWIDTHS)
def test_judge_and_diff_give_the_same_number_for_the_same_run(
    pairs: dict[str, tuple[Verdict, DiffRow]], blocks: list[Evidence], name: str
) -> None:
    verdict, row = pairs[name]
    assert verdict.estimate is not None
    assert row.deviation is not None
    assert row.measured == pytest.approx(verdict.estimate, rel=1e-12)
    assert row.outcome is verdict.outcome
    assert row.deviation == pytest.approx(verdict.estimate / verdict.claim.low - 1, rel=1e-12)
    arm = verdict.claim.numerator_arm
    with connect([one for one in blocks if one.run.arm == arm]) as connection:
        add_views(connection)
        query = "SELECT avg(value) FROM metrics WHERE metric = 'device_read_bandwidth' "
        (rate,) = connection.sql(query + "AND statistic = 'busy'").fetchall()[0]
        (shown,) = connection.sql(
            f"SELECT avg(measured) FROM figure_runs WHERE figure_id = '{name}'"  # noqa: S608
        ).fetchall()[0]
    assert verdict.estimate == pytest.approx(rate / IOSTAT_GB, rel=1e-3)
    assert shown == pytest.approx(verdict.estimate, rel=1e-3)


def test_a_decimal_gb_would_be_seen(pairs: dict[str, tuple[Verdict, DiffRow]]) -> None:
    """The check above is finer than the 2.4 % it is about."""
    verdict, row = pairs["r1.patch.bw.after"]
    assert verdict.estimate is not None
    assert row.measured != pytest.approx(verdict.estimate * IOSTAT_GB / BYTES_PER_GB, rel=1e-2)


def test_every_claim_carries_the_base_of_its_own_figure() -> None:
    claims = [one for one in load_claims() if one.unit == "GB/s" and one.figure_ids]
    assert {one.unit_base for one in claims} == {IOSTAT_GB, BYTES_PER_GB}
    for one in claims:
        figure = LEDGER.figures[one.figure_ids[0]]
        assert one.unit_base == figure.unit_base, one.claim_id
        # Reads were computed by one script from iostat; no script of the checkpoint writes is out.
        writes = figure.figure_id.startswith("r1.ckpt.")
        assert figure.unit_base == (BYTES_PER_GB if writes else IOSTAT_GB), one.claim_id
