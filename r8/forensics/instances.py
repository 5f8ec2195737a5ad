"""S1: several engines on one device: each found and read its own share, and the shares add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.forensics.balance import BALANCE_FLOOR_SHARE, BALANCE_TOLERANCE, PROCESS_EXCESS_BYTES
from r8.forensics.rule import Rule
from r8.message import Check, compared, missing, not_applicable

if TYPE_CHECKING:
    from r8.forensics.case import Case

# The scenario that compares engines with each other; elsewhere C4 balances their sum.
SCALING = "r1-scaling"

_INSTANCES = """
SELECT instance, n, hit_bytes, process_read_bytes FROM instance_reads
WHERE run_id = $run ORDER BY instance
"""
_SHARED = """
SELECT count(DISTINCT device), count(DISTINCT host || regexp_replace(device, '^[^:]*:', ''))
FROM probes WHERE run_id = $run AND probe = 'process' AND counter = 'read_bytes'
"""


def every_instance_read_its_own(case: Case) -> list[Check]:
    """S1: requests, hits and process bytes instance by instance, and their sum at the device."""
    run = case.run
    if run.scenario != SCALING or len(run.processes) == 1:
        return [not_applicable("instances", "s1-one-engine")]
    rows = case.rows(_INSTANCES)
    checks = [check for row in rows for check in _instance(case, *row)]
    return [*checks, _told_apart(case), _sum(case, rows)]


def _instance(
    case: Case, name: str, asked: int, hits: int | None, process: int | None
) -> list[Check]:
    sessions, instances = case.kv_run.expectation.sessions, len(case.run.processes)
    share = sessions // instances
    planned = share * case.kv_run.expectation.hit_bytes // sessions
    asked_as_planned = compared(
        "instance_requests",
        (asked, "==", share),
        "s1-requests",
        unit="requests",
        facts={"instance": name},
    )
    if hits is None:
        return [asked_as_planned, missing("instance_hit_bytes", "s1-hits-unknown", instance=name)]
    if process is None:
        quantity = "instance_process_read_bytes"
        return [asked_as_planned, missing(quantity, "s1-process-unknown", instance=name)]
    excess = max(round(BALANCE_TOLERANCE * planned), PROCESS_EXCESS_BYTES)
    return [
        asked_as_planned,
        compared(
            "instance_hit_bytes",
            (hits, "==", planned),
            "s1-hits",
            unit="bytes",
            facts={"instance": name},
        ),
        compared(
            "instance_process_read_bytes",
            (process, "within", (round(BALANCE_FLOOR_SHARE * planned), planned + excess)),
            "s1-process",
            unit="bytes",
            facts={"instance": name},
        ),
    ]


def _told_apart(case: Case) -> Check:
    """One process tree under two names would count every byte twice: then nothing is known."""
    names, trees = case.rows(_SHARED)[0]
    return compared(
        "process_trees",
        (trees if trees == names else None, "==", names),
        "s1-told-apart",
        facts={"engines": names, "trees": trees},
    )


def _sum(case: Case, rows: list[tuple[Any, ...]]) -> Check:
    each = [row[2] for row in rows if row[2] is not None]
    device, hits = case.metric("device_read_bytes"), case.metric("engine_hit_bytes")
    if len(each) < len(case.run.processes) or device is None or hits is None:
        return missing("device_read_bytes", "s1-sum-unknown")
    return compared(
        "device_read_bytes",
        (device, "within", (BALANCE_FLOOR_SHARE * hits, (1 + BALANCE_TOLERANCE) * hits)),
        "s1-sum",
        unit="bytes",
        facts={"each": " + ".join(map(str, each)), "hit_bytes": hits},
    )


S1 = Rule(
    rule_id="S1",
    checks=every_instance_read_its_own,
    thresholds={
        "floor_share": BALANCE_FLOOR_SHARE,
        "tolerance_share": BALANCE_TOLERANCE,
        "excess_bytes": PROCESS_EXCESS_BYTES,
    },
    of_engine=True,
)
