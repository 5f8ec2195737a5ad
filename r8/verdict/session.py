"""What a judgement stands on: certified runs, their metrics, and how they pair into blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from r8.errors import UsageError
from r8.forensics.certificate import certify, connect_settled
from r8.message import Check, Message, spelled
from r8.model import KvRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import duckdb

    from r8.evidence.reader import Evidence
    from r8.message import Fact, Facts
    from r8.model import Claim, Finding, Run

ANY_LEVEL = "any"
# Each arm at the one level it was run at: arms of different size under the same load an instance.
OWN_LEVEL = "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One metric of one run as the shared views gave it."""

    value: float | None
    unit: str
    n: int
    estimator: str
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The runs given to the judge, each with its certificate, and their metrics."""

    runs: tuple[Run, ...]
    findings: tuple[Finding, ...]
    connection: duckdb.DuckDBPyConnection
    # Answers by question: a page asks every chart's again for its other language.
    _answers: dict[tuple[str, str], list[tuple[Any, ...]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def rows(self, sql: str, named: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Rows of a query over the runs' tables and views; the same question is computed once."""
        question = (sql, repr(named))
        if question not in self._answers:
            self._answers[question] = self.connection.execute(sql, dict(named)).fetchall()
        return self._answers[question]

    def value(
        self, run: Run, metric: str, statistic: str | None = None, *, phase: str = "measure"
    ) -> Value:
        """A metric of one phase; without a statistic it must be the only one of its name."""
        every = self.rows(
            "SELECT run_id, metric, phase, statistic, value, unit, n, estimator, reason "
            "FROM metrics",
            {},
        )
        place = (run.run_id, metric, phase)
        rows = [row[4:] for row in every if row[:3] == place and statistic in {None, row[3]}]
        if len(rows) != 1:
            absent = Message(id="rows_of_metric", facts={"n": len(rows), "metric": metric})
            reason = spelled(absent)
            return Value(value=None, unit="", n=0, estimator="", reason=reason)
        value, unit, n, estimator, reason = rows[0]
        return Value(value=value, unit=unit, n=n, estimator=estimator, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The runs of one block that a claim needs."""

    campaign_id: str
    block: int
    numerator: Run
    denominator: Run | None

    @property
    def runs(self) -> tuple[Run, ...]:
        """One run, or two."""
        return (self.numerator,) if self.denominator is None else (self.numerator, self.denominator)


def open_session(evidences: Sequence[Evidence], *, allowed: Sequence[Path] = ()) -> Session:
    """Certify every run and open their metrics; statements also reach the directories `allowed`.

    Raises:
        UsageError: one run, or one arm of one block, is given twice.

    """
    runs = tuple(sorted((one.run for one in evidences), key=_order))
    places: dict[tuple[str, str, int, str, int], str] = {}
    for run in runs:
        place = (run.scenario, run.campaign_id, run.block, run.arm, run.concurrency)
        if place in places:
            raise UsageError(
                f"arm {run.arm} of block {run.block} is given twice: {places[place]}, {run.run_id}",
                where=f"campaign {run.campaign_id}",
                next_step="give one run of each arm and block",
            )
        places[place] = run.run_id
    connection = connect_settled(evidences, allowed=allowed)
    findings = tuple(finding for run in runs for finding in certify(run, connection))
    return Session(runs=runs, findings=findings, connection=connection)


def _order(run: Run) -> tuple[str, str, int, int, int, str]:
    return (run.scenario, run.campaign_id, run.concurrency, run.block, run.order, run.run_id)


def relevant(claim: Claim, runs: Sequence[Run]) -> list[Run]:
    """Runs of the claim's scenario and level.

    Raises:
        UsageError: the claim takes any level and the runs, or one arm of them, hold more than one.

    """
    mine = [run for run in runs if run.scenario == claim.scenario]
    if claim.level == OWN_LEVEL:
        for arm in arms_of(claim):
            _refuse_levels(claim, [run for run in mine if run.arm == arm])
        return mine
    if claim.level != ANY_LEVEL:
        return [run for run in mine if f"c{run.concurrency}" == claim.level]
    _refuse_levels(claim, mine)
    return mine


def _refuse_levels(claim: Claim, runs: Sequence[Run]) -> None:
    levels = sorted({run.concurrency for run in runs})
    if len(levels) > 1:
        raise UsageError(
            f"claim {claim.claim_id} meets levels {', '.join(f'c{level}' for level in levels)}",
            where="the runs given",
            next_step="judge the runs of one level at a time",
        )


def arms_of(claim: Claim) -> tuple[str, ...]:
    """Arms the claim needs, numerator first."""
    arms = (claim.numerator_arm, claim.denominator_arm)
    return tuple(arm for arm in arms if arm is not None)


def blocks_of(
    claim: Claim, runs: Sequence[Run]
) -> tuple[list[Block], list[Message], list[Message]]:
    """Whole blocks; then gaps at a campaign's end; then gaps before a later whole block.

    A campaign that was stopped ends in an incomplete block, which is left out and named. A gap in
    the middle would let somebody pick blocks, so it makes the claim INVALID.
    """
    whole: list[Block] = []
    left_out: list[Message] = []
    holes: list[Message] = []
    for campaign_id in dict.fromkeys(run.campaign_id for run in runs):
        by_place = {(r.block, r.arm): r for r in runs if r.campaign_id == campaign_id}
        last_whole = -1
        gaps: list[tuple[int, Message]] = []
        for number in range(max(block for block, _ in by_place) + 1):
            absent = [arm for arm in arms_of(claim) if (number, arm) not in by_place]
            if absent:
                arms = ", ".join(absent)
                where: Facts = {"campaign": campaign_id, "block": number, "arms": arms}
                gaps.append((number, Message(id="verdict-gap", facts=where)))
                continue
            last_whole = number
            below = claim.denominator_arm
            whole.append(
                Block(
                    campaign_id=campaign_id,
                    block=number,
                    numerator=by_place[number, claim.numerator_arm],
                    denominator=None if below is None else by_place[number, below],
                )
            )
        holes += [gap for number, gap in gaps if number < last_whole]
        left_out += [gap for number, gap in gaps if number > last_whole]
    return whole, left_out, holes


def unlike(runs: Sequence[Run], *, absolute: bool, each: bool = False) -> Check | None:
    """The first thing in which runs differ that must be equal to pool them; None when alike.

    Absolute values need every comparability key as well; ratios and fractions do not. With `each`
    the load of one engine instance must be equal, not that of the machine.
    """
    first = runs[0]
    for run in runs[1:]:
        for key, ours, theirs in _pairs(first, run, absolute=absolute, each=each):
            if ours != theirs:
                return Check(
                    quantity=key,
                    measured=theirs,
                    op="==",
                    limit=ours,
                    message="verdict-unlike",
                    facts={"key": key, "run": first.run_id, "other": run.run_id},
                )
    return None


def _pairs(first: Run, other: Run, *, absolute: bool, each: bool) -> list[tuple[str, Fact, Fact]]:
    """What must be equal in two runs: its name, and its value in both."""
    pairs: list[tuple[str, Fact, Fact]] = [
        ("basis", str(first.basis), str(other.basis)),
        ("fallback_level", first.fallback_level, other.fallback_level),
    ]
    pairs += [
        (key, first.workload.get(key), other.workload.get(key))
        for key in first.workload | other.workload
        if not (each and key == "sessions")
    ]
    pairs += _load_pairs(first, other, each=each)
    if absolute:
        keys = sorted(first.comparability.keys() | other.comparability.keys())
        pairs += [(key, first.comparability.get(key), other.comparability.get(key)) for key in keys]
    return pairs


def _load_pairs(first: Run, other: Run, *, each: bool) -> list[tuple[str, Fact, Fact]]:
    if not each:
        return [("concurrency", first.concurrency, other.concurrency)]
    ours, theirs = len(first.processes), len(other.processes)
    pairs: list[tuple[str, Fact, Fact]] = [
        ("concurrency / instance", first.concurrency / ours, other.concurrency / theirs)
    ]
    if isinstance(first, KvRun) and isinstance(other, KvRun):
        sessions = first.expectation.sessions / ours, other.expectation.sessions / theirs
        pairs.append(("sessions / instance", *sessions))
    return pairs


def keys_differ(claim: Claim, runs: Sequence[Run]) -> Check | None:
    """The first comparability key of the claim that a run does not share, with both values."""
    for run in runs:
        for key, wanted in claim.comparability.items():
            found = run.comparability.get(key)
            if found != wanted:
                return Check(
                    quantity=key,
                    measured=found,
                    op="==",
                    limit=wanted,
                    message="verdict-key",
                    facts={"key": key, "run": run.run_id},
                )
    return None
