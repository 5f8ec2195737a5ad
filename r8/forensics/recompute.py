"""C7: the arm without a KV tier computed every prompt and read no KV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Rule
from r8.message import Check, compared, missing, not_applicable
from r8.model import TransferRun

if TYPE_CHECKING:
    from r8.forensics.case import Case
    from r8.model import Device

# Of what the same cell reads when it has a tier: libraries and metadata stay below, KV does not.
RECOMPUTE_READ_SHARE_MAX = 0.01
# What a lab writes into `server_config` when the running server has no connector.
NO_CONNECTOR = "none"


def recompute_reads_no_kv(case: Case) -> list[Check]:
    """C7: KV devices silent, no connector in the running server, no token found in a cache."""
    run = case.run
    if isinstance(run, TransferRun):
        return [not_applicable("prompts", "c7-no-prompt", job=run.job)]
    if not run.recompute:
        return [not_applicable("recompute", "c7-arm-has-kv", arm=run.arm)]
    devices = (case.device, *run.other_kv_devices)
    checks = [_silent(case, device) for device in devices]
    checks += [_no_connector(case, instance) for instance in run.processes]
    return [*checks, _no_hits(case)]


def _silent(case: Case, device: Device) -> Check:
    size, expected = case.read_bytes(device, "measure"), case.run.expected_bytes
    if size is None:
        return missing("device_read_bytes", "no-read-counter", device=device.name)
    return compared(
        "device_read_bytes / kv_bytes",
        (size / expected, "<", RECOMPUTE_READ_SHARE_MAX),
        "c7-device-read",
        unit="ratio",
        facts={"device": device.name, "read_bytes": size, "kv_bytes": expected},
    )


def _no_connector(case: Case, instance: str) -> Check:
    found = (case.server_config(instance) or {}).get("kv_connector")
    if not isinstance(found, str):
        return missing("kv_connector", "c7-connector-unknown", instance=instance)
    return compared(
        "kv_connector", (found, "==", NO_CONNECTOR), "c7-connector", facts={"instance": instance}
    )


def _no_hits(case: Case) -> Check:
    rows = case.rows(
        "SELECT coalesce(max(hit_tokens), 0), coalesce(max(computed_tokens), 0), "
        "coalesce(max(retrieved_tokens), 0) FROM engine_requests "
        "WHERE run_id = $run AND phase = 'measure'"
    )
    # An engine without a connector writes no such line at all: their absence is what is wanted,
    # and the two checks above do not rest on it.
    hit, computed, retrieved = rows[0]
    return compared(
        "tokens_from_a_cache",
        (max(hit, computed, retrieved), "==", 0),
        "c7-tokens-found",
        unit="tokens",
        facts={"hit": hit, "computed": computed, "retrieved": retrieved},
    )


C7 = Rule(
    rule_id="C7",
    checks=recompute_reads_no_kv,
    thresholds={"most_share": RECOMPUTE_READ_SHARE_MAX},
)
