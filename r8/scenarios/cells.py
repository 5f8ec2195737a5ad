"""What the tests of every scenario do with a cell, and with all of them at the end."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from r8 import console
from r8.claims.reader import load_claims
from r8.cli import rounds as rounds_verbs
from r8.cli.run_arguments import REFERENCE_ROOT, references
from r8.errors import EvidenceError
from r8.evidence.database import connect
from r8.evidence.reader import read_run
from r8.forensics import gate as forensics_gate
from r8.lab.campaign.reference import record, weight
from r8.lab.site.arms import Arm
from r8.lab.site.matrix import cell_states, find_matrix
from r8.model import KvRun, Outcome
from r8.report import terminal
from r8.report.document import report
from r8.report.words import render_reasons
from r8.roles import CONTRACTS
from r8.verdict import judge as verdict
from r8.verdict.rounds import compare_rounds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest
    from pytest_benchmark.fixture import BenchmarkFixture

    from r8.evidence.reader import Evidence
    from r8.lab.campaign.campaign import Campaign
    from r8.lab.site.plan import Place
    from r8.scenarios.conftest import Session


def test_cell(
    place: Place, campaign: Campaign, session: Session, benchmark: BenchmarkFixture
) -> None:
    """Measure one cell once, read it back from disk, and hold it to what its role promises.

    A second round would read what the first one warmed. The time the benchmark shows is the whole
    cell's, engine start and populate included.
    """
    path: Path = benchmark.pedantic(campaign.run, args=(place,), rounds=1, iterations=1)
    arm = campaign.arm(place)
    if CONTRACTS[arm.role].judged:
        session.run_paths.append(path)
        require_certificate(path)
    else:
        session.negative_paths.append(path)
    if isinstance(arm, Arm) and arm.sessions_of == "neighbour":
        require_crossed(path, hits=CONTRACTS[arm.role].judged)


def test_verdicts(session: Session, request: pytest.FixtureRequest) -> None:
    """Judge every claim on what lies on disk now."""
    judge_all(session, request.module.SCENARIO.name)


def require_certificate(path: Path) -> None:
    """Read a run back from disk and let it earn its certificate."""
    refused = forensics_gate.not_held(read_run(path))
    assert not refused, "\n".join(map(str, refused))


def require_crossed(path: Path, *, hits: bool) -> None:
    """Every request asked one engine for what its neighbour stored, and hit all of it or nothing.

    Whether a request hit is read from the lines the engine wrote about that very request.
    """
    evidence = read_run(path)
    with connect([evidence]) as connection:
        rows = connection.execute(
            "SELECT measured_on, populated_on, hit_tokens FROM request_origin ORDER BY request_id"
        ).fetchall()
    run = evidence.run
    assert isinstance(run, KvRun)
    full = run.expectation.hit_tokens_per_session if hits else 0
    assert len(rows) == run.concurrency
    assert all(one != other and found == full for one, other, found in rows), rows


def judge_all(session: Session, scenario: str) -> None:
    """Judge every claim on what lies on disk now; the session keeps outcome and exit code."""
    if not session.run_paths:
        raise EvidenceError(
            "no cell was measured, so there is nothing to judge",
            where=scenario,
            next_step="correct what the cells' own lines say, then go on with `--resume last`",
        )
    runs = [read_run(path) for path in session.run_paths]
    _compare_rounds(runs)
    # The report beside the runs and the screen judge one and the same way.
    claims, reference = load_claims(scenario), references(None, runs)
    verdicts = verdict.judge(runs, claims, references=reference)
    console.page(terminal.summary(runs, verdicts))
    path = session.run_paths[0].parent / f"{runs[0].run.campaign_id}.md"
    path.write_text(report(runs, claims, references=reference))
    console.page(f"\nreport: {path}")
    session.exit_code = verdict.exit_code(verdicts)
    session.outcome = verdict.headline(verdicts)
    if session.record_reference:
        # After judging: no session is ever judged against itself.
        require_whole(session.run_paths, session.negative_paths)
        kept = record(session.run_paths, REFERENCE_ROOT)
        console.line(f"{len(kept)} reference runs recorded; {weight(REFERENCE_ROOT)}")
    assert session.exit_code in session.accepted, session.outcome


def require_whole(paths: Sequence[Path], negatives: Sequence[Path] = ()) -> None:
    """What others are held against is a whole campaign, and each of its runs is certified.

    `negatives` are cells that were run to hit nothing: there, and part of no claim.

    Raises:
        EvidenceError: cells are missing or were left out of this session, or a rule refuses a run;
            nothing is kept as reference.

    """
    names = {path.name for path in (*paths, *negatives)}
    for path in paths:
        run = read_run(path)
        plan = find_matrix(path.parent, run.run.campaign_id)
        states = cell_states(path.parent, plan)
        left = [one.place for one in states if one.run is None or one.run.name not in names]
        refused = [one.rule_id for one in forensics_gate.not_held(run)]
        if left or refused:
            what = f"{len(left)} cells of {plan.campaign_id} are not here ({', '.join(left)})"
            if refused:
                what = f"{', '.join(refused)} refuse {run.run.run_id}"
            raise EvidenceError(
                f"nothing is kept as reference: {what}",
                where=str(path.parent),
                next_step=f"all cells: --resume {plan.campaign_id} --record-reference, without -k"
                if not refused
                else f"see r8 certificate {path}; a reference needs a campaign that held",
            )


def _compare_rounds(runs: Sequence[Evidence]) -> None:
    """Say what the same arms spread between rounds before any verdict rests on them."""
    campaigns = list(dict.fromkeys(one.run.campaign_id for one in runs))
    for first, second in pairwise(campaigns):
        before = [one for one in runs if one.run.campaign_id == first]
        after = [one for one in runs if one.run.campaign_id == second]
        verdicts = compare_rounds(before, after)
        console.page(f"\n{second} against {first}:\n{rounds_verbs.table(after, verdicts)}\n")
        deviating = [one for one in verdicts if one.outcome is Outcome.DEVIATES]
        assert not deviating, "\n".join(render_reasons(one.reasons) for one in deviating)
