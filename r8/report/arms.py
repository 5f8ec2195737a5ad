"""What the arms did, block by block: requests and devices, ratios beside predictions, outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rules import RULES
from r8.message import Answer
from r8.model import KvRun
from r8.report.tables import PARAGRAPHS, markdown, number, over_blocks, quotient, shown, table
from r8.report.words import say
from r8.text import Markdown
from r8.units import gb_per_s, mb_per_s, ms_from_ns, s_from_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.model import Run
    from r8.verdict.session import Session

_ARMS: tuple[tuple[str, str, str, str, Callable[[float], float]], ...] = (
    ("head-ttft-p50", "measure", "ttft", "p50", s_from_ns),
    ("head-ttft-max", "measure", "ttft", "max", s_from_ns),
    ("head-warm-ttft", "warm", "ttft", "p50", s_from_ns),
    ("head-output-tokens", "measure", "output_throughput", "", float),
    ("head-device-read", "measure", "device_read_bytes", "", gb_per_s),
    ("head-busy", "measure", "device_read_bandwidth", "busy", mb_per_s),
    ("head-of-ceiling", "measure", "ceiling_fraction", "busy", float),
)
# Arms that differ in nothing but the patch: the report asks what the patch is worth.
_PATCHED = """
SELECT any_value(r.arm) FROM runs r
WHERE r.patch_expected = 'patched' AND EXISTS (
    SELECT 1 FROM runs other WHERE other.role = r.role AND other.patch_expected = 'unpatched')
HAVING count(DISTINCT r.arm) = 1
"""
_OUTPUTS = """
SELECT block, level, arm, phase, other_arm, other_phase, identical, n FROM identity
ORDER BY campaign_id, block, level, phase, arm, other_arm
"""
_CLIENT = """
SELECT n, send_lag_p99_ns, ttft_error_p50_ns, ttft_error_max_ns FROM calibration
WHERE run_id = $run AND name = 'client' ORDER BY mono_ns DESC LIMIT 1
"""


def arms(session: Session, language: str) -> Markdown:
    """One row a run that answered requests, in the order it was run."""
    balanced = all(run.balanced for run in session.runs)
    note = say(language, "note-balanced" if balanced else "note-unbalanced")
    rows = [
        [
            run.block,
            run.order,
            run.arm,
            f"c{run.concurrency}",
            *(
                shown(session, run, metric, statistic, convert, phase=phase)
                for _, phase, metric, statistic, convert in _ARMS
            ),
            _rules_held(session, run, language),
        ]
        for run in session.runs
        if isinstance(run, KvRun)
    ]
    heads = ["head-block", "head-place", "head-arm", "head-level"]
    heads += [*(head for head, *_ in _ARMS), "head-rules-held"]
    return PARAGRAPHS.join([note, table(rows, heads, language)] if rows else [note])


def _rules_held(session: Session, run: Run, language: str) -> str:
    answers = [one.answer for one in session.findings if one.run_id == run.run_id]
    asked = len(RULES) - answers.count(Answer.NOT_APPLICABLE)
    return say(language, "word-of", n=answers.count(Answer.HELD), of=asked)


def patched_arm(session: Session) -> str | None:
    """The one patched arm beside unpatched ones of its role; `None` where there is none."""
    found = session.connection.execute(_PATCHED).fetchall()
    return str(found[0][0]) if found else None


def ratios(session: Session, base: str, language: str) -> Markdown:
    """Every other arm's TTFT p50 over the patched arm's, beside the prediction; "" for none."""
    rows: list[list[object]] = []
    for other, level in sorted({(run.arm, run.concurrency) for run in session.runs}):
        pairs = _pairs(session, other, base, level) if other != base else []
        rows += [row for row, _, _ in pairs]
        measured = [ratio for _, ratio, _ in pairs if ratio is not None]
        predicted = [ratio for _, _, ratio in pairs if ratio is not None]
        if len(measured) > 1:
            blocks = say(language, "word-blocks", n=len(measured))
            cells = [Markdown("**{} / {}**").format(other, base), f"c{level}", blocks, "", "", ""]
            rows.append([*cells, *_pooled(measured, predicted)])
    if not rows:
        return Markdown()
    heads = [say(language, one) for one in ("head-ratio", "head-level", "head-block")]
    heads += [say(language, "head-ttft-p50"), say(language, "head-of-arm", arm=base)]
    rest = ("head-first-step", "head-ratio-measured", "head-ratio-predicted")
    heads += [say(language, one) for one in (*rest, "head-measured-predicted")]
    return PARAGRAPHS.join([say(language, "note-ratios"), markdown(rows, heads)])


Pair = tuple[list[object], float | None, float | None]


def _pairs(session: Session, other: str, base: str, level: int) -> list[Pair]:
    found: list[Pair] = []
    cells = {(r.campaign_id, r.block, r.arm): r for r in session.runs if r.concurrency == level}
    for (campaign_id, block, arm), run in cells.items():
        below = cells.get((campaign_id, block, base))
        if arm != other or below is None:
            continue
        times = [session.value(one, "ttft", "p50").value for one in (run, below)]
        expected = [session.value(one, "predicted_ttft", "p50").value for one in (run, below)]
        measured, predicted = quotient(*times), quotient(*expected)
        steps = [shown(session, one, "first_step_requests", "", float) for one in (run, below)]
        row: list[object] = [f"{other} / {base}", f"c{level}", block]
        row += [None if one is None else number(s_from_ns(one)) for one in times]
        row += [" / ".join(steps), number(measured), number(predicted)]
        found.append(([*row, number(quotient(measured, predicted))], measured, predicted))
    return found


def _pooled(measured: list[float], predicted: list[float]) -> list[str]:
    """The 90 % interval over blocks: each end is a one-sided 95 % bound."""
    if len(predicted) != len(measured):
        return [over_blocks(measured), "", ""]
    both = [one / other for one, other in zip(measured, predicted, strict=True)]
    return [over_blocks(measured), over_blocks(predicted), over_blocks(both)]


def outputs(session: Session, language: str) -> Markdown:
    """In how many sessions two computations of one block gave the same tokens; "" for none."""
    found = session.connection.execute(_OUTPUTS).fetchall()
    if not found:
        return Markdown()
    rows = [
        [
            block,
            level,
            f"{arm} {phase}",
            f"{other} {other_phase}",
            say(language, "word-of", n=same, of=n),
        ]
        for block, level, arm, phase, other, other_phase, same, n in found
    ]
    heads = ["head-block", "head-level", "head-this", "head-against", "head-same-tokens"]
    return PARAGRAPHS.join([say(language, "note-tokens"), table(rows, heads, language)])


def calibration(session: Session, language: str) -> Markdown:
    """What the device and the client give by themselves, in the run's own campaign."""
    rows = []
    for run in session.runs:
        serial, ceiling = (
            session.value(run, f"{name}_bandwidth", "", phase="calibration").value
            for name in ("serial", "ceiling")
        )
        client = session.connection.execute(_CLIENT, {"run": run.run_id}).fetchall()
        n, *durations = client[0] if client else (None, None, None, None)
        cells = [None if one is None else number(mb_per_s(one)) for one in (serial, ceiling)]
        cells += [None if (one := quotient(ceiling, serial)) is None else number(one), n]
        cells += [None if one is None else number(ms_from_ns(one)) for one in durations]
        rows.append([run.run_id, *cells])
    heads = ["head-run", "head-serial", "head-ceiling", "head-ceiling-serial", "head-client-n"]
    heads += ["head-send-lag", "head-error-p50", "head-error-max"]
    return table(rows, heads, language)
