"""Audit mode: which cells an auditor runs again, and whether they came out the same.

After the audit tests of MLPerf Inference: outputs must match (accuracy), token counts must be the
server's own (TEST06's question), and the time must agree within a stated tolerance (TEST01's rule:
10 %). The cells are drawn by the auditor's seed, so whoever made the bundle could not know them.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from scipy import special

from r8.errors import UsageError
from r8.forensics.certificate import certify, connect_settled
from r8.forensics.gate import refusals
from r8.metrics.measure import measurements, pick
from r8.model import KvRun
from r8.units import s_from_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from r8.evidence.reader import Evidence
    from r8.model import Measurement, Run

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
    text: str


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
        Comparison(run_id=original.run.run_id, name=name, held=held, text=text)
        for name, held, text in answers
    ]


Answer = tuple[str, bool, str]


def _workload(original: Run, again: Run) -> Answer:
    sealed, fresh = _planned(original), _planned(again)
    different = [
        f"{name}: {sealed.get(name)} sealed, {fresh.get(name)} again"
        for name in sealed | fresh
        if sealed.get(name) != fresh.get(name)
    ]
    text = "; ".join(different) or "same arm, level, seed, prompts and patch digests"
    return "workload", not different, text


def _planned(run: Run) -> dict[str, object]:
    """What a repeated run must have been asked to do."""
    shared = {"scenario": run.scenario, "arm": run.arm, "concurrency": run.concurrency}
    shared |= {"seed": run.seed}
    if not isinstance(run, KvRun):
        return shared | run.workload
    of_patch = {} if run.patch is None else asdict(run.patch)
    patch = {f"patch {key}": value for key, value in of_patch.items()}
    return shared | {"expectation": run.expectation, "treatment": run.treatment} | patch


def _certificate(again: Run, connection: duckdb.DuckDBPyConnection) -> Answer:
    refused = refusals(certify(again, connection))
    text = "; ".join(map(str, refused))
    return "certificate", not refused, text or "the repeated run earns its certificate"


def _tokens(original: Run, again: Run, connection: duckdb.DuckDBPyConnection) -> Answer:
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
    chance = float(special.bdtr(same, n, floor)) if n else 0.0
    text = (
        f"{same} of {len(sealed)} outputs identical; what repeats by itself: "
        f"{', '.join(f'{share:.0%}' for share in shares) or 'unknown'}"
    )
    return "tokens", n == len(sealed) and chance >= CHANCE_MIN, text


def _same(one: dict[int, Any], other: dict[int, Any]) -> tuple[int, int]:
    """How many sessions of both have the same output, and how many both have."""
    shared = one.keys() & other.keys()
    return sum(one[session] == other[session] for session in shared), len(shared)


def _outputs(connection: duckdb.DuckDBPyConnection, run: Run, phase: str) -> dict[int, Any]:
    rows = connection.execute(_OUTPUTS, {"run": run.run_id, "phase": phase}).fetchall()
    return dict(rows)


def _counts(original: Run, again: Run, connection: duckdb.DuckDBPyConnection) -> Answer:
    sealed, fresh = (
        connection.execute(_COUNTS, {"run": one.run_id}).fetchall() for one in (original, again)
    )
    different = [
        f"session {one[0]}: {one[1:]} sealed, {other[1:]} again"
        for one, other in zip(sealed, fresh, strict=False)
        if one != other
    ]
    held = bool(sealed) and len(sealed) == len(fresh) and not different
    text = different[0] if different else f"{len(sealed)} sealed requests, {len(fresh)} again"
    return "counts", held, f"{text} (prompt, output tokens by the server's usage)"


def _time(original: Run, again: Run, found: Sequence[Measurement]) -> Answer:
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
    if not sealed.value or fresh.value is None:
        return "time", False, f"{metric} {statistic}: {sealed.reason or fresh.reason or 'zero'}"
    deviation = (fresh.value - sealed.value) / sealed.value
    held = abs(deviation) <= TIME_TOLERANCE
    scale, unit = (s_from_ns, " s") if like else (float, "")
    text = (
        f"{metric} {statistic} {scale(fresh.value):.4g}{unit} again, "
        f"{scale(sealed.value):.4g}{unit} sealed: "
        f"{deviation:+.2%}, allowed +-{TIME_TOLERANCE:.0%}"
    )
    return "time", held, text
