"""A verdict for every claim: the unit is the block, the arithmetic is on log ratios.

The questions are asked in this order, and the first no ends them: was it measured, may it be
compared, does every certificate hold, are there enough blocks, what do the numbers say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.claims.reader import is_published
from r8.errors import (
    EXIT_DEVIATES,
    EXIT_INCONCLUSIVE,
    EXIT_INVALID,
    EXIT_NOTHING_COMPARABLE,
    EXIT_REPRODUCED,
    UsageError,
)
from r8.forensics.certificate import objections
from r8.message import Answer, Check, Message
from r8.model import Basis, Outcome, Verdict
from r8.verdict.addressed import addressed, of_reference
from r8.verdict.numbers import Judged, NumberMissing, judge_numbers
from r8.verdict.session import (
    OWN_LEVEL,
    Block,
    Session,
    arms_of,
    blocks_of,
    keys_differ,
    open_session,
    relevant,
    unlike,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from r8.evidence.reader import Evidence
    from r8.model import Claim, Finding, Reason, Run
    from r8.verdict.intervals import Interval

# The fallback level of a site that is no rehearsal; published claims are about such sites only.
CLUSTER = "cluster"
# What explains other findings comes first: a request that failed leaves no hits and no bytes.
CAUSES = ("Q2", "E1", "Q1")
# Metrics a formula derives from measured times: shares of an hour that was never run.
MODELLED_METRICS = frozenset({"utilisation_modelled"})
# The worst outcome decides the exit code; outcomes that judged nothing do not count.
_EXIT_CODES = (
    (Outcome.INVALID, EXIT_INVALID),
    (Outcome.DEVIATES, EXIT_DEVIATES),
    (Outcome.INCONCLUSIVE, EXIT_INCONCLUSIVE),
    (Outcome.REPRODUCED, EXIT_REPRODUCED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal(Exception):  # noqa: N818  # an answer, not an error
    """The claim is not judged by numbers, and why."""

    outcome: Outcome
    reasons: tuple[Reason, ...]
    blocks: tuple[Block, ...] = ()


def judge(
    evidences: Sequence[Evidence],
    claims: Iterable[Claim],
    *,
    references: Sequence[Evidence] = (),
) -> tuple[Verdict, ...]:
    """One verdict a claim, in the order of the claims.

    Args:
        evidences: the run directories to judge, read back and hash-checked.
        claims: published claims and R8's own.
        references: reference runs for claims of equivalence.

    Raises:
        UsageError: an arm of a block is given twice, or a campaign is judged against itself.

    """
    session = open_session(evidences)
    reference = open_session(references) if references else None
    return judge_session(session, claims, reference)


def judge_session(
    session: Session, claims: Iterable[Claim], reference: Session | None = None
) -> tuple[Verdict, ...]:
    """The same, over sessions that are already open; see `addressed` for claims about roles."""
    if reference is not None:
        shared = {r.campaign_id for r in session.runs} & {r.campaign_id for r in reference.runs}
        if shared:
            raise UsageError(
                f"campaign {min(shared)} is judged and a reference at once",
                where="the reference runs",
                next_step="give reference runs of another campaign",
            )
    return tuple(
        _judge_claim(session, one, claim, reference)
        for claim in claims
        for one in addressed(claim, session.runs)
    )


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0 all judged claims reproduced, 1 one deviates, 2 inconclusive, 3 invalid, 5 none judged.

    INVALID outranks DEVIATES: a session that holds evidence nobody may trust has no clean result.
    """
    outcomes = {verdict.outcome for verdict in verdicts}
    for outcome, code in _EXIT_CODES:
        if outcome in outcomes:
            return code
    return EXIT_NOTHING_COMPARABLE


def headline(verdicts: Sequence[Verdict]) -> str:
    """One line: how many claims came to what, and the exit code's own word."""
    counts = [
        f"{sum(verdict.outcome is outcome for verdict in verdicts)} {outcome}"
        for outcome in Outcome
        if any(verdict.outcome is outcome for verdict in verdicts)
    ]
    return f"{len(verdicts)} claims: {', '.join(counts) or 'none'}"


def _judge_claim(
    session: Session, claim: Claim, asked: Claim, reference: Session | None
) -> Verdict:
    runs = relevant(claim, session.runs)
    try:
        blocks, left_out = _blocks(session, claim, runs)
        others = _reference_blocks(claim, asked, blocks, reference)
        judged = judge_numbers(session, claim, blocks, reference, others)
    except _Refusal as refusal:
        return _verdict(claim, runs, refusal.blocks, refusal.outcome, refusal.reasons)
    except NumberMissing as absent:
        return _verdict(claim, runs, blocks, Outcome.INVALID, absent.reasons)
    outcome, reasons = _outcome(claim, blocks, judged)
    reasons += tuple(Message(id="verdict-left-out", facts=gap.facts) for gap in left_out)
    return _verdict(claim, runs, blocks, outcome, reasons, judged)


def _blocks(
    session: Session, claim: Claim, runs: list[Run]
) -> tuple[tuple[Block, ...], list[Message]]:
    """Whole blocks that may be judged, and the blocks left out.

    Raises:
        _Refusal: not measured, not comparable, or invalid.

    """
    if not runs:
        raise _not_measured("verdict-no-run", scenario=claim.scenario, level=claim.level)
    for arm in arms_of(claim):
        if all(run.arm != arm for run in runs):
            raise _not_measured("verdict-no-arm", arm=arm)
    mine = [run for run in runs if run.arm in arms_of(claim)]
    _refuse_incomparable(claim, mine)
    blocks, left_out, holes = blocks_of(claim, mine)
    if holes:
        picked = Message(id="verdict-blocks-picked")
        raise _Refusal(outcome=Outcome.INVALID, reasons=(picked, *holes), blocks=tuple(blocks))
    if not blocks:
        raise _Refusal(outcome=Outcome.NOT_MEASURED, reasons=tuple(left_out))
    _refuse_invalid(session, blocks)
    return tuple(blocks), left_out


def _not_measured(entry: str, **facts: str) -> _Refusal:
    return _Refusal(outcome=Outcome.NOT_MEASURED, reasons=(Message(id=entry, facts=facts),))


def _refuse_incomparable(claim: Claim, runs: Sequence[Run]) -> None:
    difference = (
        (of_a_rehearsal(runs) if is_published(claim) else None)
        or keys_differ(claim, runs)
        or unlike(runs, absolute=claim.denominator_arm is None, each=claim.level == OWN_LEVEL)
    )
    if difference:
        raise _Refusal(outcome=Outcome.NOT_COMPARABLE, reasons=(difference,))


def of_a_rehearsal(runs: Sequence[Run]) -> Check | None:
    """The first run that proves nothing about published numbers, and why; None: they all may."""
    for run in runs:
        for check in (
            Check(
                quantity="basis",
                measured=str(run.basis),
                op="==",
                limit=str(Basis.MEASURED),
                message="verdict-basis",
                facts={"run": run.run_id},
            ),
            Check(
                quantity="fallback_level",
                measured=run.fallback_level,
                op="==",
                limit=CLUSTER,
                message="verdict-fallback-level",
                facts={"run": run.run_id},
            ),
        ):
            if check.answer is not Answer.HELD:
                return check
    return None


def _refuse_invalid(session: Session, blocks: Sequence[Block]) -> None:
    used = [run for block in blocks for run in block.runs]
    found = ordered(objections(used, session.findings, session.runs))
    if found:
        raise _Refusal(outcome=Outcome.INVALID, reasons=found, blocks=tuple(blocks))


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings that object, what explains the others first: refuted ones, and causes among them."""
    return tuple(
        sorted(findings, key=lambda one: (one.answer is Answer.UNKNOWN, one.rule_id not in CAUSES))
    )


def _reference_blocks(
    claim: Claim, asked: Claim, blocks: tuple[Block, ...], reference: Session | None
) -> tuple[Block, ...]:
    """Blocks of the reference runs; empty for claims that need none.

    Raises:
        _Refusal: no usable reference.

    """
    if claim.kind != "equivalence":
        return ()
    runs = [] if reference is None else relevant(claim, reference.runs)
    if reference is None or not runs:
        alone = Message(id="verdict-no-reference")
        raise _Refusal(outcome=Outcome.NOT_MEASURED, reasons=(alone,), blocks=blocks)
    others, _ = _blocks(reference, of_reference(asked, claim, runs), runs)
    both = [run for block in (*blocks, *others) for run in block.runs]
    difference = unlike(both, absolute=claim.unit not in {"x", ""}, each=claim.level == OWN_LEVEL)
    if difference:
        against = Message(id="verdict-of-reference")
        raise _Refusal(outcome=Outcome.NOT_COMPARABLE, reasons=(against, difference))
    return others


def _outcome(
    claim: Claim, blocks: Sequence[Block], judged: Judged
) -> tuple[Outcome, tuple[Reason, ...]]:
    enough = Check(
        quantity="blocks",
        measured=len(blocks),
        op=">=",
        limit=claim.min_blocks,
        unit="blocks",
        message="verdict-blocks",
    )
    if enough.answer is not Answer.HELD or judged.interval is None:
        return Outcome.INCONCLUSIVE, (enough, *judged.arithmetic)
    return outcome_of(judged.interval, judged.limits), judged.arithmetic


def outcome_of(interval: Interval, limits: tuple[float, float | None]) -> Outcome:
    """Reproduced when the whole interval is allowed, a deviation when nothing of it is."""
    low, high = limits
    if interval.low >= low and (high is None or interval.high <= high):
        return Outcome.REPRODUCED
    if interval.high < low or (high is not None and interval.low > high):
        return Outcome.DEVIATES
    return Outcome.INCONCLUSIVE


def _verdict(
    claim: Claim,
    runs: Sequence[Run],
    blocks: Sequence[Block],
    outcome: Outcome,
    reasons: tuple[Reason, ...],
    judged: Judged | None = None,
) -> Verdict:
    used = tuple(run for block in blocks for run in block.runs)
    interval = judged.interval if judged else None
    return Verdict(
        claim=claim,
        outcome=outcome,
        estimate=judged.estimate if judged else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        confidence=judged.confidence if judged and interval else None,
        n_blocks=len(blocks),
        estimator=judged.estimator if judged else "",
        basis=_basis(claim, used or tuple(runs)),
        reasons=reasons,
        run_ids=tuple(run.run_id for run in used),
    )


def _basis(claim: Claim, runs: Sequence[Run]) -> Basis:
    """That of the runs; a metric that is a model of what was measured is modelled anywhere."""
    if claim.metric in MODELLED_METRICS:
        return Basis.MODELLED
    return next((run.basis for run in runs), Basis.MEASURED)
