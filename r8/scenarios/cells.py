"""What the tests of every scenario do with a cell, and with all of them at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8 import claims, forensics_gate, report_tables, verdict
from r8.database import connect
from r8.evidence import read_run
from r8.runs_verbs import references
from r8.scenarios.ending import write_report

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

    from r8.lab.campaign import Campaign
    from r8.lab.plan import Place
    from r8.scenarios.conftest import Session


def measure(place: Place, campaign: Campaign, benchmark: BenchmarkFixture) -> Path:
    """Run one cell once: a second round would read what the first one warmed.

    The time the benchmark shows is the whole cell's, engine start and populate included.
    """
    path: Path = benchmark.pedantic(campaign.run, args=(place,), rounds=1, iterations=1)
    return path


def require_certificate(path: Path) -> None:
    """Read a run back from disk and let it earn its certificate."""
    refused = forensics_gate.not_held(read_run(path))
    assert not refused, "\n".join(f"{one.rule_id}: {one.arithmetic}" for one in refused)


def origins(path: Path) -> list[tuple[str, str, str | None, int | None]]:
    """Request, instance it was measured on, instance that populated it, tokens it hit."""
    with connect([read_run(path)]) as connection:
        rows: list[tuple[str, str, str | None, int | None]] = connection.execute(
            "SELECT request_id, measured_on, populated_on, hit_tokens FROM request_origin "
            "ORDER BY request_id"
        ).fetchall()
    return rows


def judge_all(session: Session, scenario: str) -> None:
    """Judge every claim on what lies on disk now; the session keeps outcome and exit code."""
    runs = [read_run(path) for path in session.run_paths]
    verdicts = verdict.judge(runs, claims.load_claims(scenario), references=references(None, runs))
    print(report_tables.summary(runs, verdicts))
    print(f"\nreport: {write_report(session, runs, scenario)}")
    session.exit_code = verdict.exit_code(verdicts)
    session.outcome = verdict.headline(verdicts)
    assert session.exit_code in session.accepted, session.outcome
