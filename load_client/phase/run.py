"""One load phase from plan to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..record.levels import LATE_SEND_NS
from ..record.marks import HELD, SURPLUS
from ..workload.rules import OPEN_LOOPS
from .running import RunningPhase
from .shapes import run_shape

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..clock import Clock
    from ..workload.plan import LoadPlan
    from .progress import PhaseProgress
    from .summary import PhaseSummary


def run_phase(
    plan: LoadPlan,
    out: Path,
    progress: PhaseProgress,
    clock: Clock,
    gate: Callable[[], int] | None = None,
) -> PhaseSummary:
    """Send everything, append every row; a stop by signal still writes what was in flight.

    `gate` returns the instant of a start that several processes share.
    Raises ClientError: unreachable server, no exact prompt, refusing disk.
    """
    running = RunningPhase(plan, out, progress, clock, gate)
    summary = running.summary
    try:
        run_shape(running)
    except KeyboardInterrupt:
        summary.interrupted = True
    finally:
        running.loop.close()
    running.levels.release(clock.mono_ns())
    running.collect()
    running.flush()
    summary.findings += _findings(running)
    running.flush(last=True)
    progress.note(f"finished: {summary.counts}")
    for text in summary.findings:
        progress.warn(text)
    if summary.first_failure is not None:
        progress.warn(f"first failure: {summary.first_failure}")
    return summary


def _findings(running: RunningPhase) -> list[str]:
    """How the load differed from what was asked for."""
    findings: list[str] = []
    plateau = running.levels.finding()
    if plateau is not None and not running.summary.interrupted:
        findings.append(plateau)
    if running.plan.shape in OPEN_LOOPS and running.largest_lag_ns > LATE_SEND_NS:
        lag_ms = running.largest_lag_ns / 1e6
        findings.append(f"the client was late: up to {lag_ms:.1f} ms after a slot")
    findings += _of_trace(running)
    findings += _of_marks(running.summary)
    unsent = running.summary.unsent_turns
    if unsent:
        reason = "the turn before failed, or its token ids were not returned"
        findings.append(f"{unsent} turns were not sent: {reason}")
    return findings


def _of_trace(running: RunningPhase) -> list[str]:
    """Lines of the trace that were not sent; each process reads it, and the first speaks of it."""
    trace = running.workload.trace
    if trace is None or running.plan.shard[0]:
        return []
    count = len(trace.lines)
    idle = count - len(trace.answered)
    return [f"{idle} of {count} lines of the trace ask for no token; not sent"] if idle else []


def _of_marks(summary: PhaseSummary) -> list[str]:
    """What good answers say against themselves."""
    of = f"of {summary.outcomes['ok']} good answers"
    texts = {
        HELD: "came at once, first token and last: a proxy or the server holds streams back, and"
        " TTFT is the time of the whole answer; compare it with what the server counts itself, such"
        " as vllm:time_to_first_token_seconds",
        SURPLUS: "hold more tokens, or events with text, than their usage counts",
    }
    counts = ((summary.marks[mark], text) for mark, text in texts.items())
    return [f"{count} {of} {text}" for count, text in counts if count]
