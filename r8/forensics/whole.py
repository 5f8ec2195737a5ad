"""Q1 and Q2: everything planned was done in full, and the run is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics import transfer
from r8.forensics.rule import Rule
from r8.message import Check, compared, missing

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Names of tensors and their places stand in a file beside the weights: less than a per mille.
HEADER_SHARE_MAX = 0.001
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


def every_request_answered(case: Case) -> list[Check]:
    """Q1: as many measured requests as planned, none failed, each of its full output length."""
    expectation = case.kv_run.expectation
    rows = case.rows(
        "SELECT count(*), count(*) FILTER (outcome = 'ok'), count(DISTINCT session), "
        "count(*) FILTER (outcome = 'ok' AND output_tokens = $output_tokens), "
        "count(*) FILTER (outcome = 'ok' AND prompt_tokens = $prompt_tokens) "
        "FROM requests WHERE run_id = $run AND phase = 'measure'",
        output_tokens=expectation.output_tokens,
        prompt_tokens=expectation.prompt_tokens,
    )
    total, ok, sessions, full, exact = rows[0]
    if not total:
        return [missing("measured_requests", "no-measured-request")]
    return [
        compared(
            "requests_failed",
            (total - ok, "==", 0),
            "q1-failed",
            unit="requests",
            facts={"requests": total, "failures": _failures(case)},
        ),
        _as_planned("requests", total, expectation.sessions, "q1-requests"),
        _as_planned("sessions", sessions, expectation.sessions, "q1-sessions"),
        _of_length("output", full, ok, expectation.output_tokens),
        _of_length("prompt", exact, ok, expectation.prompt_tokens),
    ]


def _as_planned(unit: str, found: int, planned: int, message: str) -> Check:
    return compared(f"{unit}_measured", (found, "==", planned), message, unit=unit)


def _of_length(what: str, exact: int, ok: int, tokens: int) -> Check:
    return compared(
        f"requests_of_{what}_tokens",
        (exact, "==", ok),
        "q1-output-tokens" if what == "output" else "q1-prompt-tokens",
        unit="requests",
        facts={"tokens": tokens},
    )


def _failures(case: Case) -> str:
    rows = case.rows(
        "SELECT outcome, count(*), min(request_id), any_value(error) FROM requests "
        "WHERE run_id = $run AND phase = 'measure' AND outcome <> 'ok' "
        "GROUP BY outcome ORDER BY outcome"
    )
    return "; ".join(f"{outcome} x{n}, {first}: {error}" for outcome, n, first, error in rows)


def every_worker_done(case: Case) -> list[Check]:
    """Q1 of a job: each planned worker went through once, without error, and moved its bytes."""
    rows, run = transfer.rows(case), case.transfer
    if run is None or not rows:
        return [missing("workers_measured", "q1-no-worker")]
    bad = [row for row in rows if row["outcome"] != "ok"]
    names = {row["worker"] for row in rows}
    return [
        compared(
            "workers_failed",
            (len(bad), "==", 0),
            "q1-workers-failed",
            unit="workers",
            facts={"workers": len(rows), "failures": transfer.failures(bad)},
        ),
        _as_planned("rows", len(rows), len(run.workers), "q1-worker-rows"),
        compared(
            "workers_measured",
            (", ".join(sorted(names)), "==", ", ".join(sorted(run.workers))),
            "q1-workers",
        ),
        compared(
            "moved_bytes",
            (
                transfer.together(case, "measure")["known_bytes"],
                "within",
                ((1 - HEADER_SHARE_MAX) * run.total_bytes, run.total_bytes),
            ),
            "q1-moved",
            unit="bytes",
            facts={"total_bytes": run.total_bytes, "header_share": HEADER_SHARE_MAX},
        ),
    ]


def run_whole(case: Case) -> list[Check]:
    """Q2: finalised by its own lab, with every milestone once and in order."""
    whole = compared(
        "complete",
        (case.run.complete, "==", True),
        "q2-complete" if case.run.complete else "q2-recovered",
    )
    names = _milestones(case)
    instants = {name: event.mono_ns for name in names if (event := case.event(name))}
    absent = [name for name in names if name not in instants]
    if absent:
        return [whole, missing("milestones_in_order", "q2-no-event", event=absent[0])]
    times = list(instants.values())
    return [
        whole,
        compared(
            "measured_times", (len(case.events("measure_begin")), "==", 1), "q2-measured-once"
        ),
        compared(
            "milestones_in_order",
            (times == sorted(times), "==", True),
            "q2-order",
            facts={"milestones": len(times), "order": ", ".join(names)},
        ),
    ]


def _milestones(case: Case) -> list[str]:
    if transfer.writes(case):
        return list(WRITE_MILESTONES)
    return [name for name in MILESTONES if not (case.run.recompute and name in OF_A_TIER)]


Q1 = Rule(
    rule_id="Q1",
    checks=every_request_answered,
    transfer_checks=every_worker_done,
    thresholds={"header_share": HEADER_SHARE_MAX},
)
Q2 = Rule(rule_id="Q2", checks=run_whole, thresholds={"milestones": ", ".join(MILESTONES)})
