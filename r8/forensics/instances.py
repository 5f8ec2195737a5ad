"""S1: several engines on one device: each found and read its own share, and the shares add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from r8.forensics.balance import BALANCE_TOLERANCE, PROCESS_EXCESS_BYTES
from r8.forensics.rule import Check, missing, not_applicable

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
    if run.scenario != SCALING or len(run.instances) < 2:  # noqa: PLR2004 - to share takes two
        return [not_applicable("no engines beside each other", "Rule C4 balances the one.")]
    rows = case.rows(_INSTANCES)
    checks = [check for row in rows for check in _instance(case, *row)]
    return [*checks, _told_apart(case), _sum(case, rows)]


def _instance(
    case: Case, name: str, asked: int, hits: int | None, process: int | None
) -> list[Check]:
    share = case.run.expectation.sessions // len(case.run.instances)
    planned = share * case.run.expectation.hit_bytes // case.run.expectation.sessions
    checks = [
        Check(
            arithmetic=f"{name}: {asked} requests = {share} planned",
            held=asked == share,
            otherwise="The engines were not under the same load: their rates say nothing.",
        )
    ]
    if hits is None or process is None:
        what = "hit bytes" if hits is None else "process read_bytes"
        return [*checks, missing(f"{name}: {what} not known", "See its log and process samples.")]
    low = round((1 - BALANCE_TOLERANCE) * planned)
    high = planned + max(round(BALANCE_TOLERANCE * planned), PROCESS_EXCESS_BYTES)
    return [
        *checks,
        Check(
            arithmetic=f"{name}: hit {hits} B = {planned} B planned",
            held=hits == planned,
            otherwise="This engine found other chunks than it stored.",
        ),
        Check(
            arithmetic=f"{name}: process read {process} B in {low} to {high} B",
            held=low <= process <= high,
            otherwise="This engine read less than it hit, or what another one hit: it was served "
            "from a cache, or did the other's work.",
        ),
    ]


def _told_apart(case: Case) -> Check:
    """One process tree under two names would count every byte twice."""
    names, trees = case.rows(_SHARED)[0]
    return Check(
        arithmetic=f"{names} engines in {trees} process trees",
        held=True if names == trees else None,
        otherwise="engine.root_pid gives one process for several engines: their bytes cannot be "
        "told apart.",
    )


def _sum(case: Case, rows: list[tuple[Any, ...]]) -> Check:
    each = [row[2] for row in rows if row[2] is not None]
    device = case.metric("device_read_bytes")
    if len(each) < len(case.run.instances) or device is None:
        return missing("sum of the instances not known", "An instance or the device is silent.")
    return Check(
        arithmetic=f"instances hit {' + '.join(map(str, each))} = {sum(each)} B, device read "
        f"{device} B within {BALANCE_TOLERANCE:.0%}",
        held=abs(device - sum(each)) <= BALANCE_TOLERANCE * sum(each),
        otherwise="What the engines found together is not what their device read.",
    )
