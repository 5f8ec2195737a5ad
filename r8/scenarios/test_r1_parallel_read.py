"""R1: the worth of the parallel-read patch in a cold recovery of 16 sessions.

Published: TTFT 37.97 s -> 9.30 s (4.1x), read bandwidth 0.98 -> 5.23 GB/s, one MI308X, Qwen2.5-32B.
Each cell starts an engine on the same LMCache, unpatched or patched, fills the device, drops every
cache it can prove dropped, and reads 16 sessions at once. Then everything is read back from disk
and judged by the code an auditor runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8 import claims, forensics_gate, report_tables, verdict
from r8.evidence import read_run
from r8.scenarios.ending import write_report

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from r8.lab.campaign import Campaign
    from r8.lab.plan import Place
    from r8.scenarios.conftest import Session

SCENARIO = "r1-parallel-read"


def test_cell(
    place: Place, campaign: Campaign, session: Session, benchmark: BenchmarkFixture
) -> None:
    """Measure one cell, read it back, and let it earn its certificate."""
    # Once: a second round would read what the first one warmed. The time shown is the whole cell's.
    path = benchmark.pedantic(campaign.run, args=(place,), rounds=1, iterations=1)
    session.run_paths.append(path)
    refused = forensics_gate.not_held(read_run(path))
    assert not refused, "\n".join(f"{one.rule_id}: {one.arithmetic}" for one in refused)


def test_verdicts(session: Session) -> None:
    """Judge every claim on what lies on disk now."""
    runs = [read_run(path) for path in session.run_paths]
    verdicts = verdict.judge(runs, claims.load_claims(SCENARIO))
    print(report_tables.summary(runs, verdicts))
    print(f"\nreport: {write_report(session, runs, SCENARIO)}")
    session.exit_code = verdict.exit_code(verdicts)
    session.outcome = verdict.headline(verdicts)
    assert session.exit_code in session.accepted, session.outcome
