"""R2: what a cold recovery of 480B sessions costs from the array, a local drive, and by recompute.

Published: TTFT p50 at concurrency 8, 16, 32: array 7.53, 11.85, 26.35 s, local drive 10.17, 17.31,
35.73 s, recompute 149.48 s (at 16 only), eight MI308X. Each arm starts its engine once a block and
populates once; every level reads sessions of its own, each at most once, after a verified drop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.scenarios.cells import certify, judge_all

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from r8.lab.campaign.campaign import Campaign
    from r8.lab.site.plan import Place
    from r8.scenarios.conftest import Session

SCENARIO = "r2-cold-recovery"


def test_cell(
    place: Place, campaign: Campaign, session: Session, benchmark: BenchmarkFixture
) -> None:
    """Measure one cell, read it back, and let it earn its certificate."""
    certify(place, campaign, session, benchmark)


def test_verdicts(session: Session) -> None:
    """Judge every claim on what lies on disk now."""
    judge_all(session, SCENARIO)
