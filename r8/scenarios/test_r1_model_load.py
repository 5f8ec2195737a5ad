"""R1: what concurrent cold model loading costs from the array and from the baseline medium.

Published: eight accelerators load models at once, wall clock 16 % faster and each model 30 % faster
from the array; neither seconds nor the baseline are named. Each cell makes a model for every
loader (or takes the site's own), brings them to the device, drops the page cache, and lets all
loaders go at one barrier. R9 is the same scenario with another baseline and platform key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.scenarios.cells import certify, judge_all

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from r8.lab.campaign.campaign import Campaign
    from r8.lab.site.plan import Place
    from r8.scenarios.conftest import Session

SCENARIO = "r1-model-load"


def test_cell(
    place: Place, campaign: Campaign, session: Session, benchmark: BenchmarkFixture
) -> None:
    """Load once, read it back from disk, and let it earn its certificate."""
    certify(place, campaign, session, benchmark)


def test_verdicts(session: Session) -> None:
    """Judge every claim on what lies on disk now."""
    judge_all(session, SCENARIO)
