"""R1: checkpoint writes: every rank saves a whole snapshot, or its share of one, and flushes it.

Published: 8 ranks, 65.6 GB a snapshot, 178 s -> 94 s (1.9x), sustained 3.26 -> 6.40 GB/s. The text
leaves open whether every rank wrote a whole snapshot or its share: both are arms. A save counts if
the device had every byte before its time ended, and when it was read back, cold, by its hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.scenarios.cells import certify, judge_all

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from r8.lab.campaign.campaign import Campaign
    from r8.lab.site.plan import Place
    from r8.scenarios.conftest import Session

SCENARIO = "r1-checkpoint"


def test_cell(
    place: Place,
    campaign: Campaign,
    session: Session,
    benchmark: BenchmarkFixture,
) -> None:
    """Measure one cell; its save must be durable, and read back."""
    certify(place, campaign, session, benchmark)


def test_verdicts(session: Session) -> None:
    """Judge every claim on what lies on disk now."""
    judge_all(session, SCENARIO)
