"""A verdict for every claim: the unit is the block, the arithmetic is on log ratios.

The order of the questions is the order of honesty: was it measured, may it be compared, does every
certificate hold, are there enough blocks, and only then: what do the numbers say.
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
from r8.message import Answer
from r8.model import Basis, Outcome, Verdict
from r8.verdict.numbers import Reading, read_numbers
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
    from r8.model import Claim, Run

# The rung of a site that is no rehearsal; published claims are about such sites only.
CLUSTER_RUNG = "cluster"
# What explains other findings comes first: a request that failed leaves no hits and no bytes.
CAUSES = ("Q2", "E1", "Q1")
# Metrics that a formula makes of what was measured: shares of an hour nobody lived through.
MODELLED_METRICS = frozenset({"utilisation_modelled"})
# Objections printed in full in a reason; the certificate table has them all.
OBJECTIONS_SHOWN = 3
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
    reason: str
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
    """The same, over sessions that are already open."""
    if reference is not None:
        shared = {r.campaign_id for r in session.runs} & {r.campaign_id for r in reference.runs}
        if shared:
            raise UsageError(
                f"campaign {min(shared)} is judged and a reference at once",
                where="the reference runs",
                next_step="give reference runs of another campaign",
            )
    return tuple(_judge_claim(session, claim, reference) for claim in claims)


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


def _judge_claim(session: Session, claim: Claim, reference: Session | None) -> Verdict:
    runs = relevant(claim, session.runs)
    try:
        blocks, left_out = _blocks(session, claim, runs)
        others = _reference_blocks(claim, blocks, reference)
        reading = read_numbers(session, claim, blocks, reference, others)
        outcome, reason = _outcome(claim, blocks, reading)
        if left_out:
            reason += f"; not used: {', '.join(left_out)}"
    except _Refusal as refusal:
        return _verdict(claim, runs, refusal.blocks, refusal.outcome, refusal.reason)
    return _verdict(claim, runs, blocks, outcome, reason, reading)


def _blocks(session: Session, claim: Claim, runs: list[Run]) -> tuple[tuple[Block, ...], list[str]]:
    """Whole blocks that may be judged, and the names of blocks left out.

    Raises:
        _Refusal: not measured, not comparable, or invalid.

    """
    if not runs:
        raise _Refusal(
            outcome=Outcome.NOT_MEASURED,
            reason=f"no run of {claim.scenario} at level {claim.level}",
        )
    for arm in arms_of(claim):
        if all(run.arm != arm for run in runs):
            raise _Refusal(outcome=Outcome.NOT_MEASURED, reason=f"no run of arm {arm}")
    mine = [run for run in runs if run.arm in arms_of(claim)]
    _refuse_incomparable(claim, mine)
    blocks, left_out, holes = blocks_of(claim, mine)
    if holes:
        raise _Refusal(
            outcome=Outcome.INVALID,
            reason=f"blocks may not be picked: {'; '.join(holes)}",
            blocks=tuple(blocks),
        )
    if not blocks:
        raise _Refusal(outcome=Outcome.NOT_MEASURED, reason="; ".join(left_out))
    _refuse_invalid(session, blocks)
    return tuple(blocks), left_out


def _refuse_incomparable(claim: Claim, runs: Sequence[Run]) -> None:
    if is_published(claim):
        for run in runs:
            if run.basis is not Basis.MEASURED:
                reason = (
                    f"run {run.run_id} is {run.basis}: a device shaped after the published numbers "
                    "proves nothing about them"
                )
                raise _Refusal(outcome=Outcome.NOT_COMPARABLE, reason=reason)
            if run.fallback_level != CLUSTER_RUNG:
                step = run.fallback_level
                reason = f"rung: published cluster, run {run.run_id} rehearsal step {step!r}"
                raise _Refusal(outcome=Outcome.NOT_COMPARABLE, reason=reason)
    difference = keys_differ(claim, runs) or unlike(
        runs, absolute=claim.denominator_arm is None, each=claim.level == OWN_LEVEL
    )
    if difference:
        raise _Refusal(outcome=Outcome.NOT_COMPARABLE, reason=difference)


def _refuse_invalid(session: Session, blocks: Sequence[Block]) -> None:
    used = [run for block in blocks for run in block.runs]
    found = objections(used, session.findings, session.runs)
    if not found:
        return
    found.sort(key=lambda one: (one.answer is Answer.UNKNOWN, one.rule_id not in CAUSES))
    shown = [str(one) for one in found[:OBJECTIONS_SHOWN]]
    more = len(found) - len(shown)
    reason = " | ".join(shown) + (f" | and {more} more findings" if more else "")
    raise _Refusal(outcome=Outcome.INVALID, reason=reason, blocks=tuple(blocks))


def _reference_blocks(
    claim: Claim, blocks: Sequence[Block], reference: Session | None
) -> tuple[Block, ...]:
    """Blocks of the reference runs; empty for claims that need none.

    Raises:
        _Refusal: no usable reference.

    """
    if claim.kind != "equivalence":
        return ()
    runs = [] if reference is None else relevant(claim, reference.runs)
    if reference is None or not runs:
        raise _Refusal(
            outcome=Outcome.NOT_MEASURED,
            reason="no other runs of this scenario and level are its reference",
            blocks=tuple(blocks),
        )
    others, _ = _blocks(reference, claim, runs)
    both = [run for block in (*blocks, *others) for run in block.runs]
    difference = unlike(both, absolute=claim.unit not in {"x", ""}, each=claim.level == OWN_LEVEL)
    if difference:
        raise _Refusal(outcome=Outcome.NOT_COMPARABLE, reason=f"reference: {difference}")
    return others


def _outcome(claim: Claim, blocks: Sequence[Block], reading: Reading) -> tuple[Outcome, str]:
    if reading.missing:
        return Outcome.INVALID, f"no number to judge: {reading.missing}"
    interval = reading.interval
    if len(blocks) < claim.min_blocks or interval is None:
        reason = f"{len(blocks)} of {claim.min_blocks} blocks the plan needs; {reading.text}"
        return Outcome.INCONCLUSIVE, reason
    low, high = reading.limits
    if interval.low >= low and (high is None or interval.high <= high):
        outcome = Outcome.REPRODUCED
    elif interval.high < low or (high is not None and interval.low > high):
        outcome = Outcome.DEVIATES
    else:
        outcome = Outcome.INCONCLUSIVE
    return outcome, reading.text


def _verdict(
    claim: Claim,
    runs: Sequence[Run],
    blocks: Sequence[Block],
    outcome: Outcome,
    reason: str,
    reading: Reading | None = None,
) -> Verdict:
    used = tuple(run for block in blocks for run in block.runs)
    interval = reading.interval if reading else None
    return Verdict(
        claim=claim,
        outcome=outcome,
        estimate=reading.estimate if reading else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        confidence=reading.confidence if reading and interval else None,
        n_blocks=len(blocks),
        estimator=reading.estimator if reading else "",
        basis=_basis(claim, used or tuple(runs)),
        reason=reason,
        run_ids=tuple(run.run_id for run in used),
    )


def _basis(claim: Claim, runs: Sequence[Run]) -> Basis:
    """That of the runs; a metric that is a model of what was measured is modelled anywhere."""
    if claim.metric in MODELLED_METRICS:
        return Basis.MODELLED
    return next((run.basis for run in runs), Basis.MEASURED)
