"""Audit mode: which cells an auditor runs again, and whether they came out the same.

After the audit tests of MLPerf Inference: outputs must match (accuracy), token counts must be the
server's own (TEST06's question), and the time must agree within a stated tolerance (TEST01's rule:
10 %). The cells are drawn by the auditor's seed, so whoever made the bundle could not know them.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from r8.errors import UsageError
from r8.forensics.certificate import certify, connect_settled
from r8.forensics.gate import refusals
from r8.message import Answer, Check, Message, answer_of_all, missing, parse_reason
from r8.metrics.measure import measurements, pick
from r8.model import KvRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from r8.evidence.reader import Evidence
    from r8.message import Fact
    from r8.model import Measurement, Reason, Run

    _Answered = tuple[str, bool, Sequence[Reason]]  # question, whether it held, why

# The bound of MLPerf Inference's TEST01; a tighter claim is the verdict's business, over blocks.
TIME_TOLERANCE = 0.10
# Fewer identical outputs than in 99 of 100 honest repetitions is no noise. Where outputs repeat
# without exception, one difference is already less.
CHANCE_MIN = 0.01
DEFAULT_CELLS = 2
_OUTPUTS = """
    SELECT session, output FROM outputs WHERE run_id = $run AND phase = $phase ORDER BY session
"""
_COUNTS = """
    SELECT session, prompt_tokens, output_tokens FROM requests
    WHERE run_id = $run AND phase = 'measure' ORDER BY session
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One question about a cell that was run again."""

    run_id: str
    name: str
    held: bool
    reasons: tuple[Reason, ...]


def drawn(evidences: Sequence[Evidence], seed: int, cells: int = DEFAULT_CELLS) -> list[Evidence]:
    """The runs to repeat: `cells` of them, of different cells as long as there are any left.

    Raises UsageError when the bundle holds no complete run.
    """
    complete = sorted(
        (one for one in evidences if one.run.complete), key=lambda one: one.run.run_id
    )
    if not complete:
        raise UsageError(
            "the bundle holds no complete run", where="bundle", next_step="name another bundle"
        )
    # Not for secrecy: everybody must be able to see that the seed gives these cells.
    chance = random.Random(seed)  # noqa: S311
    chance.shuffle(complete)
    first: dict[tuple[str, str, int], Evidence] = {}
    for one in complete:
        first.setdefault((one.run.scenario, one.run.arm, one.run.concurrency), one)
    rest = [one for one in complete if one not in first.values()]
    return [*first.values(), *rest][:cells]


def compare(original: Evidence, again: Evidence) -> list[Comparison]:
    """What the repeated run says about the sealed one; every question is answered."""
    with connect_settled([original, again]) as connection:
        found = measurements(connection)
        answers = [
            _workload(original.run, again.run),
            _certificate(again.run, connection),
            _tokens(original.run, again.run, connection),
            _counts(original.run, again.run, connection),
            _time(original.run, again.run, found),
        ]
    return [
        Comparison(run_id=original.run.run_id, name=name, held=held, reasons=tuple(reasons))
        for name, held, reasons in answers
    ]


def _workload(original: Run, again: Run) -> _Answered:
    sealed, fresh = planned(original), planned(again)
    different = [
        Check(
            quantity=name,
            measured=fresh.get(name),
            op="==",
            limit=sealed.get(name),
            message="rerun-differs",
            facts={"what": name},
        )
        for name in sealed | fresh
        if sealed.get(name) != fresh.get(name)
    ]
    return "workload", not different, different or [Message(id="rerun-same-workload")]


def planned(run: Run) -> dict[str, Fact]:
    """What a repeated run must have been asked to do."""
    shared: dict[str, Fact] = {"scenario": run.scenario, "arm": run.arm, "seed": run.seed}
    shared["concurrency"] = run.concurrency
    if not isinstance(run, KvRun):
        return shared | run.workload
    parts = {"expected": asdict(run.expectation), "treatment": asdict(run.treatment)}
    parts["patch"] = {} if run.patch is None else asdict(run.patch)
    return shared | {
        f"{name} {key}": value for name, part in parts.items() for key, value in part.items()
    }


def _certificate(again: Run, connection: duckdb.DuckDBPyConnection) -> _Answered:
    refused = refusals(certify(again, connection))
    return "certificate", not refused, refused or [Message(id="rerun-certified")]


def _tokens(original: Run, again: Run, connection: duckdb.DuckDBPyConnection) -> _Answered:
    """Outputs equal, as far as an output repeats itself when nothing but time passes.

    Three ways tell how far: restored against recomputed in either run, and recomputed against
    recomputed between them. The best counts: whoever changes outputs of one run, restored or
    recomputed or both, leaves one of the three whole, and so makes no room for the change.
    """
    sealed, fresh = (_outputs(connection, one, "measure") for one in (original, again))
    computed, anew = (_outputs(connection, one, "populate") for one in (original, again))
    same, n = _same(sealed, fresh)
    pairs = (_same(sealed, computed), _same(fresh, anew), _same(computed, anew))
    shares = [identical / of for identical, of in pairs if of]
    floor = max(shares, default=1.0)
    chance = _at_most(same, n, floor) if n else 0.0
    repeats = Message(id="rerun-repeats", facts={"same": same, "of": n, "floor_share": floor})
    every = Check(
        quantity="sessions of both runs",
        measured=n,
        op="==",
        limit=len(sealed),
        unit="sessions",
        message="rerun-sessions",
    )
    likely = Check(
        quantity="chance of so few identical outputs",
        measured=chance,
        op=">=",
        limit=CHANCE_MIN,
        unit="share",
        message="rerun-chance",
    )
    held = answer_of_all([every, likely]) is Answer.HELD
    return "tokens", held, [repeats, every, likely]


def _at_most(same: int, n: int, share: float) -> float:
    """The chance that at most `same` of `n` outputs are equal where each is with chance `share`."""
    from scipy import special  # noqa: PLC0415 - a fifth of the start of verbs that judge nothing

    return float(special.bdtr(same, n, share))


def _same(one: dict[int, Any], other: dict[int, Any]) -> tuple[int, int]:
    """How many sessions of both have the same output, and how many both have."""
    shared = one.keys() & other.keys()
    return sum(one[session] == other[session] for session in shared), len(shared)


def _outputs(connection: duckdb.DuckDBPyConnection, run: Run, phase: str) -> dict[int, Any]:
    rows = connection.execute(_OUTPUTS, {"run": run.run_id, "phase": phase}).fetchall()
    return dict(rows)


def _counts(original: Run, again: Run, connection: duckdb.DuckDBPyConnection) -> _Answered:
    sealed, fresh = (
        connection.execute(_COUNTS, {"run": one.run_id}).fetchall() for one in (original, again)
    )
    # Without a sealed request there is nothing that the repeated run could agree with.
    number = Check(
        quantity="requests",
        measured=len(fresh) if sealed else None,
        op="==",
        limit=len(sealed),
        unit="requests",
        message="rerun-requests",
    )
    pairs = [(one, other) for one, other in zip(sealed, fresh, strict=False) if one != other]
    checks = [number, *(_counted(*pairs[0]) if pairs else ())]
    return "counts", answer_of_all(checks) is Answer.HELD, checks


def _counted(sealed: Sequence[int], fresh: Sequence[int]) -> list[Check]:
    """What differs in the first request that differs: (session, prompt tokens, output tokens)."""
    names = ("session", "prompt_tokens", "output_tokens")
    return [
        Check(
            quantity=name,
            measured=other,
            op="==",
            limit=one,
            message="rerun-count",
            facts={"what": name, "session": sealed[0]},
        )
        for name, one, other in zip(names, sealed, fresh, strict=True)
        if one != other
    ]


def _time(original: Run, again: Run, found: Sequence[Measurement]) -> _Answered:
    """TTFT p50 where the machines are comparable, elsewhere the fraction of the ceiling."""
    like = (
        original.comparability == again.comparability
        and original.fallback_level == again.fallback_level
    )
    metric, statistic = ("ttft", "p50") if like else ("ceiling_fraction", "busy")
    sealed, fresh = (
        pick(found, run_id=one.run_id, metric=metric, statistic=statistic)
        for one in (original, again)
    )
    name = f"{metric} {statistic}"
    if not sealed.value or fresh.value is None:
        why = sealed.reason or fresh.reason
        reasons: list[Reason] = [missing(name, "rerun-no-time", metric=name)]
        return "time", False, reasons + ([parse_reason(why)] if why else [])
    deviation = Check(
        quantity=f"(again - sealed) / sealed of {name}",
        measured=(fresh.value - sealed.value) / sealed.value,
        op="within",
        limit=(-TIME_TOLERANCE, TIME_TOLERANCE),
        unit="deviation",
        message="rerun-time",
        facts={
            "metric": name,
            "sealed_value": sealed.value,
            "again_value": fresh.value,
            "unit": sealed.unit or "quotient",
        },
    )
    return "time", deviation.answer is Answer.HELD, [deviation]
