"""E1, Q1 and Q2: the engine was sound, every request was answered, and the run is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Check, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

# What a run must have marked, in this order, for its phases to be what they say.
MILESTONES = (
    "run_begin",
    "populate_end",
    "durable",
    "drop_begin",
    "drop_end",
    "measure_begin",
    "measure_end",
    "run_end",
)
# What a run that writes must have marked: it is dropped and read back after it was measured.
WRITE_MILESTONES = (
    "run_begin",
    "populate_end",
    "measure_begin",
    "measure_end",
    "durable",
    "drop_begin",
    "drop_end",
    "readback_begin",
    "readback_end",
    "run_end",
)
# A recompute arm stores nothing, so it has nothing to wait for.
OF_A_TIER = frozenset({"populate_end", "durable"})


def engine_sound(case: Case) -> list[Check]:
    """E1: no line of the engine's log says that it fell back to recompute."""
    return [_instance_sound(case, instance) for instance in case.run.instances] or [
        missing("the run names no instance", "run.json lists no engine instance.")
    ]


def _instance_sound(case: Case, instance: str) -> Check:
    rows = case.rows(
        "SELECT count(*), count(*) FILTER (kind = 'fatal'), min(line) FILTER (kind = 'fatal'), "
        "arg_min(text, line) FILTER (kind = 'fatal') "
        "FROM engine_log WHERE run_id = $run AND instance = $instance",
        instance=instance,
    )
    lines, fatal, first, text = rows[0]
    if not lines:
        return missing(f"{instance}: no engine log", f"See raw/server-{instance}.log.")
    where = f", first in line {first}: {text[:120]}" if fatal else ""
    return Check(
        arithmetic=f"{instance}: {fatal} fatal of {lines} lines that matter{where}",
        held=fatal == 0,
        otherwise="The engine runs without its KV tier while its health check stays green.",
    )


def every_request_answered(case: Case) -> list[Check]:
    """Q1: as many measured requests as planned, none failed, each of its full output length."""
    rows = case.rows(
        "SELECT count(*), count(*) FILTER (outcome = 'ok'), count(DISTINCT session), "
        "count(*) FILTER (outcome = 'ok' AND output_tokens = $output_tokens), "
        "count(*) FILTER (outcome = 'ok' AND prompt_tokens = $prompt_tokens) "
        "FROM requests WHERE run_id = $run AND phase = 'measure'",
        output_tokens=case.run.expectation.output_tokens,
        prompt_tokens=case.run.expectation.prompt_tokens,
    )
    total, ok, sessions, full, exact = rows[0]
    planned = case.run.expectation.sessions
    if not total:
        return [missing("no measured request", "The run holds no request of phase measure.")]
    return [
        Check(
            arithmetic=f"{total - ok} of {total} requests failed{_failures(case)}",
            held=ok == total,
            otherwise="A run with a failed request is INVALID, not slow; "
            "see raw/ and the request's error.",
        ),
        Check(
            arithmetic=f"{total} requests over {sessions} sessions = {planned} planned",
            held=total == sessions == planned,
            otherwise="Each session is measured exactly once: a second read would not be cold.",
        ),
        Check(
            arithmetic=f"{full} of {ok} answers of {case.run.expectation.output_tokens} tokens, "
            f"{exact} of {ok} prompts of {case.run.expectation.prompt_tokens} tokens",
            held=full == exact == ok,
            otherwise="The server's usage disagrees with what was asked for.",
        ),
    ]


def _failures(case: Case) -> str:
    rows = case.rows(
        "SELECT outcome, count(*), min(request_id), any_value(error) FROM requests "
        "WHERE run_id = $run AND phase = 'measure' AND outcome <> 'ok' "
        "GROUP BY outcome ORDER BY outcome"
    )
    each = [f"{n} {outcome}, first {first}: {error}" for outcome, n, first, error in rows]
    return f" ({'; '.join(each)})" if each else ""


def run_whole(case: Case) -> list[Check]:
    """Q2: finalised by its own lab, with every milestone once and in order."""
    whole = Check(
        arithmetic="finalised by its own lab" if case.run.complete else "recovered from a journal",
        held=case.run.complete,
        otherwise="A recovered run shows what was journalled and measures nothing.",
    )
    names = _milestones(case)
    instants = [(name, case.event(name)) for name in names]
    absent = [name for name, event in instants if event is None]
    if absent:
        return [whole, missing(f"event {absent[0]} is missing", "The run did not go through.")]
    times = [event.mono_ns for _, event in instants if event is not None]
    ordered = times == sorted(times)
    begun = len(case.events("measure_begin"))
    return [
        whole,
        Check(
            arithmetic=f"measured {begun} times = 1",
            held=begun == 1,
            otherwise="A cell measured again is no cold read: the first reading filled the cache.",
        ),
        Check(
            arithmetic=f"{len(times)} milestones in order: {ordered}".lower(),
            held=ordered,
            otherwise=f"Expected the order {', '.join(names)}.",
        ),
    ]


def _milestones(case: Case) -> list[str]:
    work = case.run.work
    if work is not None and work.moves == "write":
        return list(WRITE_MILESTONES)
    return [name for name in MILESTONES if not (case.run.recompute and name in OF_A_TIER)]
