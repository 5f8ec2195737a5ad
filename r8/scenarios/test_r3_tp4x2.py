"""R3: two engines side by side, each with a pool of its own or both on one shared pool.

Published: nine points at machine concurrency 16 and 32, percentiles pooled over both engines; over
`fs://` an engine reads what the other one stored, with LMCache's local disk backend it does not.
Whether a request hit is read from the lines the engine wrote about that very request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.evidence.reader import read_run
from r8.scenarios.cells import judge_all, measure, origins, require_certificate

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from r8.lab.campaign.campaign import Campaign
    from r8.lab.site.plan import Place
    from r8.scenarios.conftest import Session

SCENARIO = "r3-tp4x2"
# A published negative result: it is shown here, and takes part in no claim.
NEVER_SHARED = "pool-cross"
SHARED = "fs-cross"


def test_cell(
    place: Place, campaign: Campaign, session: Session, benchmark: BenchmarkFixture
) -> None:
    """Measure one cell; what it must show depends on whose sessions it reads."""
    path = measure(place, campaign, benchmark)
    found = origins(path)
    crossed = [row for row in found if row[1] != row[2]]
    if place.arm == NEVER_SHARED:
        session.negative_paths.append(path)
        assert len(crossed) == len(found) == place.concurrency
        assert [hits for *_, hits in found] == [0] * len(found), found
        return
    session.run_paths.append(path)
    require_certificate(path)
    if place.arm == SHARED:
        full = read_run(path).run.expectation.hit_tokens_per_session
        assert len(crossed) == len(found) == place.concurrency
        assert [hits for *_, hits in found] == [full] * len(found), found


def test_verdicts(session: Session) -> None:
    """Judge every claim on what lies on disk now."""
    judge_all(session, SCENARIO)
