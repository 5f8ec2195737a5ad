"""C4: the bytes the engine says it hit are the bytes the device read, at every layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.link import wire_balances
from r8.forensics.rule import Check, missing
from r8.units import BYTES_PER_MIB

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Metadata reads and one sampling interval on each side; a cached chunk is far more.
BALANCE_TOLERANCE = 0.02
# Libraries are mapped again after a drop: 7-14 MiB were seen, twice that is allowed unexplained.
PROCESS_EXCESS_BYTES = 32 * BYTES_PER_MIB
# Kinds that are whole devices: partitions and stacks would count the same bytes twice.
WHOLE_KINDS = frozenset({"disk", "nvme-head"})


def bytes_balance(case: Case) -> list[Check]:
    """C4: engine hit = device = members' = (calibrated) wire bytes, and the process read them."""
    hits = case.metric("engine_hit_bytes")
    device = case.metric("device_read_bytes")
    checks = [engine_against_device(case, hits, device)]
    return checks if device is None else checks + device_checks(case, device)


def device_checks(case: Case, device: int) -> list[Check]:
    """The device's bytes against its members', the processes' and the wire's."""
    return [*_members(case, device), *_process(case, device), *wire_balances(case, device)]


def engine_against_device(case: Case, hits: int | None, device: int | None) -> Check:
    """Engine hit bytes against the bytes of the KV device, both directions.

    The warm control asks the same question and must get the opposite answer.
    """
    name = case.run.kv_device
    if hits is None:
        return missing("engine hit bytes not known", "The engine log lacks lookup lines.")
    if device is None:
        return missing(f"{name}: no read counter around the window", "The disk probe is silent.")
    if hits == 0:
        return Check(
            arithmetic=f"engine hit 0 B, {name} read {device} B",
            held=False,
            otherwise="The engine loaded no KV: it recomputed.",
        )
    share = device / hits
    meaning = (
        "Fewer bytes than hits left the device: a cache served the rest."
        if share < 1
        else "The device read more than the hits: something else reads it."
    )
    return Check(
        arithmetic=f"{name} read {device} B / engine hit {hits} B = {share:.4f} "
        f"within 1 +- {BALANCE_TOLERANCE}",
        held=abs(share - 1) <= BALANCE_TOLERANCE,
        otherwise=meaning,
    )


def _members(case: Case, device: int) -> list[Check]:
    run = case.run
    members = case.members(run.kv_device)
    if not members:
        return []
    total = case.members_read_bytes(run.kv_device, "measure")
    if total is None:
        return [
            missing(f"members {','.join(members)}: no read counter", "A member was not sampled.")
        ]
    return [
        Check(
            arithmetic=f"members read {total} B against {device} B of {run.kv_device} "
            f"within {BALANCE_TOLERANCE:.0%}",
            held=abs(total - device) <= BALANCE_TOLERANCE * device,
            otherwise="Members and stack disagree: a member serves something else, or a path "
            "was counted twice.",
        )
    ]


def _process(case: Case, device: int) -> list[Check]:
    process = case.metric("process_read_bytes")
    if process is None:
        return [missing("process read_bytes not known", "The process probe is silent.")]
    floor = round((1 - BALANCE_TOLERANCE) * device)
    lower = Check(
        arithmetic=f"process read {process} B >= {floor} B ({1 - BALANCE_TOLERANCE} of device)",
        held=process >= floor,
        otherwise="Another process read the device: these bytes are not the engine's.",
    )
    return [lower, _excess(case, process - device, device)]


def _excess(case: Case, excess: int, device: int) -> Check:
    allowed = max(round(BALANCE_TOLERANCE * device), PROCESS_EXCESS_BYTES)
    line = f"process excess {excess} B <= {allowed} B"
    if excess <= allowed:
        return Check(arithmetic=line, held=True, otherwise="")
    elsewhere = _reads_elsewhere(case, device)
    if elsewhere is None:
        return missing(
            f"{line} fails, reads on other devices not known",
            "The engine read more than KV and no other device was sampled.",
        )
    return Check(
        arithmetic=f"{line} fails, other devices read {elsewhere} B >= {excess - allowed} B",
        held=elsewhere >= excess - allowed,
        otherwise="The engine's surplus reads came from no device that was watched.",
    )


def _reads_elsewhere(case: Case, device: int) -> int | None:
    """Bytes whole devices outside the KV tier read; `None` when none of them was sampled."""
    run = case.run
    kv = {run.kv_device, *case.members(run.kv_device), *run.other_kv_devices}
    names = case.rows(
        "SELECT DISTINCT device FROM probes WHERE run_id = $run AND probe = 'disk' ORDER BY 1"
    )
    sizes = [
        case.read_bytes(name, "measure")
        for (name,) in names
        if name not in kv and case.text(name, "kind") in WHOLE_KINDS
    ]
    known = [size for size in sizes if size is not None]
    if not known:
        return None
    # A loop device's backing file lies on another device: its bytes explain nothing there.
    backing = device if case.text(run.kv_device, "kind") == "loop" else 0
    return max(0, sum(known) - backing)
