"""R1: what switching models costs, as a model of measured loads and as a run that switches.

Published: at 20 switches an hour the effective utilisation rises from 46.7 to 62.8 %, modelled from
load times that were measured and not published: U = 1 - n * t_load / 3600. Each cell loads one
model after another, cold, at a compressed time scale, and serves with each until the next is due;
what was served is set beside what the model says of the same loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.scenarios.cells import certify, judge_all

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from r8.lab.campaign.campaign import Campaign
    from r8.lab.site.plan import Place
    from r8.scenarios.conftest import Session

SCENARIO = "r1-model-switch"


def test_cell(
    place: Place, campaign: Campaign, session: Session, benchmark: BenchmarkFixture
) -> None:
    """Switch through all models, read it back from disk, and let it earn its certificate."""
    certify(place, campaign, session, benchmark)


def test_verdicts(session: Session) -> None:
    """Judge every claim on what lies on disk now."""
    judge_all(session, SCENARIO)
