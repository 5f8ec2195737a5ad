"""C7: the arm without a KV tier computed every prompt and read no KV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Check, missing, not_applicable

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Of what the same cell reads when it has a tier: libraries and metadata stay below, KV does not.
RECOMPUTE_READ_SHARE_MAX = 0.01
# What a lab writes into `server_config` when the running server has no connector.
NO_CONNECTOR = "none"


def recompute_reads_no_kv(case: Case) -> list[Check]:
    """C7: KV devices silent, no connector in the running server, no token found in a cache."""
    run = case.run
    if run.work is not None:
        return [not_applicable(f"job {run.work.job} computes no prompt", "No prompt, no KV.")]
    if not run.recompute:
        return [
            not_applicable(
                f"arm {run.arm} has a KV tier", "Only an arm that recomputes must read none."
            )
        ]
    devices = [name for name in (run.kv_device, *run.other_kv_devices) if name]
    checks = [_silent(case, device) for device in devices]
    checks += [_no_connector(case, instance) for instance in run.instances]
    return [*checks, _no_hits(case)]


def _silent(case: Case, device: str) -> Check:
    expected = case.run.expectation.hit_bytes
    size = case.read_bytes(device, "measure")
    if size is None:
        return missing(f"{device}: no read counter around the window", "It was not sampled.")
    return Check(
        arithmetic=f"{device} read {size} B / {expected} B of a cell with KV = "
        f"{size / expected:.4f} < {RECOMPUTE_READ_SHARE_MAX}",
        held=size < RECOMPUTE_READ_SHARE_MAX * expected,
        otherwise=f"{device} was read: this arm did not only compute.",
    )


def _no_connector(case: Case, instance: str) -> Check:
    details = [
        event.detail
        for event in case.events("server_config")
        if event.detail.get("instance") == instance
    ]
    found = details[-1].get("kv_connector") if details else None
    if not isinstance(found, str):
        return missing(
            f"{instance}: KV connector of the running server not known",
            "The server's own configuration was not read back.",
        )
    return Check(
        arithmetic=f"{instance}: kv_connector {found} = {NO_CONNECTOR}",
        held=found == NO_CONNECTOR,
        otherwise="The running server has a KV connector: it may load what it should compute.",
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
    return Check(
        arithmetic=f"tokens hit {hit}, prefix-cached {computed}, retrieved {retrieved} = 0",
        held=hit == computed == retrieved == 0,
        otherwise="A measured request found tokens in a cache.",
    )
