"""R1: KV tiering across GPUs: engines that read cold sessions of their own from one device at once.

Published is the question and no reading of it. Every engine gets the same load; one engine is set
against several, their aggregate read bandwidth against what the device itself gives, and the rates
of the engines against each other. What the device and one engine predict stands beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.scenarios.cells import certify, judge_all

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from r8.lab.campaign.campaign import Campaign
    from r8.lab.site.plan import Place
    from r8.scenarios.conftest import Session

SCENARIO = "r1-scaling"


def test_cell(
    place: Place, campaign: Campaign, session: Session, benchmark: BenchmarkFixture
) -> None:
    """Measure one cell; its bytes must balance for every engine and in sum."""
    certify(place, campaign, session, benchmark)


def test_verdicts(session: Session) -> None:
    """Judge every claim on what lies on disk now."""
    judge_all(session, SCENARIO)
