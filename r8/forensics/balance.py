"""C4: the bytes that were asked for are the bytes the device read, at every layer.

An engine says by its lookup lines what it hit, a worker of a job what it moved. Only bytes that
left the device were read from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics import transfer
from r8.forensics.link import WIRE_TOLERANCE, wire_balances
from r8.forensics.rule import Rule
from r8.message import Check, compared, missing, not_applicable
from r8.units import BYTES_PER_MIB

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Metadata reads and one sampling interval on each side; a cached chunk is far more.
BALANCE_TOLERANCE = 0.02
# Below this share of what was hit or loaded, the device did not give it.
BALANCE_FLOOR_SHARE = 1 - BALANCE_TOLERANCE
# Libraries are mapped again after a drop: 7-14 MiB were seen, twice that is allowed unexplained.
PROCESS_EXCESS_BYTES = 32 * BYTES_PER_MIB


def bytes_balance(case: Case) -> list[Check]:
    """C4: engine hit = device = members' = (calibrated) wire bytes, and the process read them."""
    hits, device = case.metric("engine_hit_bytes"), case.metric("device_read_bytes")
    return [engine_against_device(case, hits, device), *_layers(case, device)]


def transfer_balance(case: Case) -> list[Check]:
    """C4 of a job: workers' bytes = device = members; the workers' processes read them."""
    if transfer.writes(case):
        return [not_applicable("device_read_bytes", "c4-window-writes")]
    device = case.metric("device_read_bytes")
    return [_moved_against_device(case, device), *_layers(case, device)]


def engine_against_device(case: Case, hits: int | None, device: int | None) -> Check:
    """Engine hit bytes against the bytes of the KV device, both directions.

    The warm control asks the same question and must get the opposite answer.
    """
    name = case.run.kv_device
    if hits is None:
        return missing("engine_hit_bytes", "c4-hits-unknown")
    if device is None:
        return missing("device_read_bytes", "no-read-counter", device=name)
    if hits == 0:
        return compared(
            "engine_hit_bytes",
            (hits, ">", 0),
            "c4-nothing-hit",
            unit="bytes",
            facts={"device": name, "read_bytes": device},
        )
    return compared(
        "device_read_bytes / engine_hit_bytes",
        (device / hits, "within", (BALANCE_FLOOR_SHARE, 1 + BALANCE_TOLERANCE)),
        "c4-device-against-hits",
        unit="ratio",
        facts={"device": name, "read_bytes": device, "hit_bytes": hits},
    )


def _moved_against_device(case: Case, device: int | None) -> Check:
    name, moved = case.run.kv_device, transfer.moved_bytes(case, "measure")
    if not moved:
        return missing("moved_bytes", "c4-moved-unknown")
    if device is None:
        return missing("device_read_bytes", "no-read-counter", device=name)
    return compared(
        "device_read_bytes / moved_bytes",
        (device / moved, "within", (BALANCE_FLOOR_SHARE, 1 + BALANCE_TOLERANCE)),
        "c4-device-against-moved",
        unit="ratio",
        facts={"device": name, "read_bytes": device, "moved_bytes": moved},
    )


def _layers(case: Case, device: int | None) -> list[Check]:
    """The device's bytes against its members', the processes' and the wire's."""
    if device is None:
        return []
    return [*_members(case, device), *_process(case, device), *wire_balances(case, device)]


def _members(case: Case, device: int) -> list[Check]:
    members = case.members(case.device)
    if not members:
        return []
    total = case.metric("member_read_bytes")
    if total is None:
        names = ", ".join(one.name for one in members)
        return [missing("members_read_bytes", "c4-members-unknown", members=names)]
    return [
        compared(
            "members_read_bytes",
            (total, "within", (BALANCE_FLOOR_SHARE * device, (1 + BALANCE_TOLERANCE) * device)),
            "c4-members",
            unit="bytes",
            facts={"device": case.device.name, "read_bytes": device},
        )
    ]


def _process(case: Case, device: int) -> list[Check]:
    process, excess = case.metric("process_read_bytes"), case.balance("process_excess_bytes")
    if process is None or excess is None:
        return [missing("process_read_bytes", "c4-process-unknown")]
    lower = compared(
        "process_read_bytes",
        (process, ">=", round(BALANCE_FLOOR_SHARE * device)),
        "c4-process",
        unit="bytes",
        facts={"floor_share": BALANCE_FLOOR_SHARE},
    )
    return [lower, _excess(case, excess, device)]


def _excess(case: Case, excess: int, device: int) -> Check:
    """What the process read beside KV: little, or else matched by reads of other devices."""
    allowed = max(round(BALANCE_TOLERANCE * device), PROCESS_EXCESS_BYTES)
    if excess <= allowed:
        return compared(
            "process_excess_bytes", (excess, "<=", allowed), "c4-process-excess", unit="bytes"
        )
    facts = {"excess_bytes": excess, "allowed_bytes": allowed}
    elsewhere = case.balance("elsewhere_read_bytes")
    if elsewhere is None:
        return missing("other_devices_read_bytes", "c4-elsewhere-unknown", **facts)
    return compared(
        "other_devices_read_bytes",
        (elsewhere, ">=", excess - allowed),
        "c4-elsewhere",
        unit="bytes",
        facts=facts,
    )


C4 = Rule(
    rule_id="C4",
    checks=bytes_balance,
    transfer_checks=transfer_balance,
    thresholds={
        "tolerance_share": BALANCE_TOLERANCE,
        "floor_share": BALANCE_FLOOR_SHARE,
        "excess_bytes": PROCESS_EXCESS_BYTES,
        "wire_share": WIRE_TOLERANCE,
    },
    of_device=True,
    of_kv=True,
)
