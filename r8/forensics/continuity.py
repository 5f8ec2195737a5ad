"""C8: in the window no counter went backwards and no device was replaced or changed state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Rule
from r8.message import Check, compared, missing
from r8.model import Device
from r8.units import NS_PER_S

if TYPE_CHECKING:
    from r8.forensics.case import Case, Window

# The disk probe ticks ten times a second; a hole this long can hide a device that came and went.
SAMPLE_GAP_NS_MAX = 2 * NS_PER_S
ARROW = " -> "

# States of controllers, arrays and links; a word outside its set refutes, as any change does.
GOOD_STATES = {
    "state": frozenset({"live", "4: active"}),
    "operstate": frozenset({"up"}),
    "array_state": frozenset({"clean", "active", "active-idle", "write-pending", "readonly"}),
}


def nothing_regressed(case: Case) -> list[Check]:
    """C8: counters only grow, samples have no hole, identity and states stay, the engine lives."""
    window = case.window("measure")
    if window is None:
        return [missing("measure_window", "no-measure-window")]
    run = case.run
    devices = [case.device, *case.members(case.device), *run.other_kv_devices]
    return [
        *_counters(case, devices, window),
        *[_identity(case, device, window) for device in devices],
        *_states(case, window),
        *[_engine_lives(case, instance, window) for instance in run.processes],
    ]


def _counters(case: Case, devices: list[Device], window: Window) -> list[Check]:
    rows = case.rows(
        "SELECT n, n_devices, n_back, n_epochs, gap_ns "
        "FROM sample_steps($run, $devices, $begin_ns, $end_ns)",
        devices=[f"{one.host} {one.name}" for one in devices],
        begin_ns=window.begin_ns,
        end_ns=window.end_ns,
    )
    steps, seen, regressed, epochs, gap_ns = rows[0]
    if seen < len(devices):
        return [missing("devices_sampled", "c8-not-sampled", seen=seen, devices=len(devices))]
    return [
        compared(
            "counter_steps_backwards", (regressed, "==", 0), "c8-backwards", facts={"steps": steps}
        ),
        compared("counter_epochs_begun", (epochs, "==", 0), "c8-epochs", facts={"steps": steps}),
        compared("longest_gap_ns", (gap_ns, "<=", SAMPLE_GAP_NS_MAX), "c8-gap", unit="ns"),
    ]


def _identity(case: Case, device: Device, window: Window) -> Check:
    """The same disk instance, members and state at every reading, and one after the window."""
    readings = case.rows(
        "SELECT counter, coalesce(text, value::BIGINT::VARCHAR), mono_ns FROM probes "
        "WHERE run_id = $run AND probe = 'topology' AND host = $host AND device = $device "
        "AND counter IN ('diskseq', 'state', 'members', 'kind') ORDER BY mono_ns",
        host=device.host,
        device=device.name,
    )
    before = any(row[2] <= window.begin_ns for row in readings)
    after = any(row[2] >= window.end_ns for row in readings)
    if not (before and after):
        return missing("identity_changes", "c8-topology-not-read", device=device.name)
    # In the order of the readings, so that an arrow points from what was to what became of it.
    words: dict[str, dict[str | None, None]] = {}
    for counter, word, _ in readings:
        words.setdefault(counter, {})[word] = None
    changed = {name: list(map(str, found)) for name, found in words.items() if len(found) > 1}
    return compared(
        "identity_changes",
        (len(changed), "==", 0),
        "c8-changed" if changed else "c8-unchanged",
        facts={
            "device": device.name,
            "diskseq": next(iter(words.get("diskseq", {None}))),
            "changes": ", ".join(f"{name} {ARROW.join(found)}" for name, found in changed.items()),
        },
    )


def _states(case: Case, window: Window) -> list[Check]:
    """Controllers and links, which fail while disk counters merely stand still."""
    transports = case.transports(case.device)
    layers = case.layers(case.device)
    rows = case.rows(
        "FROM states($run, $slack_ns, $begin_ns, $end_ns) ORDER BY ALL",
        slack_ns=SAMPLE_GAP_NS_MAX,
        begin_ns=window.begin_ns,
        end_ns=window.end_ns,
    )
    if not rows:
        if not transports:
            return []  # neither NVMe nor a link: the device's own state is looked at above
        found = ", ".join(sorted(transports))
        return [missing("state_faults", "c8-no-controller-state", transports=found)]
    return [
        _state(probe, device, *facts)
        for probe, host, device, *facts in rows
        if _concerns(probe, Device(host=host, name=device), layers, transports)
    ]


def _concerns(
    probe: str, device: Device, layers: tuple[Device, ...], found: frozenset[str]
) -> bool:
    # A controller's number is not its namespace's: every controller and link counts where KV comes
    # over NVMe or a network; elsewhere they are other people's.
    return device in layers or bool(found) if probe == "nvme" else bool(found - {"pcie"})


def _state(
    probe: str, device: str, counter: str, n: int, lost: int, epochs: int, words: list[str]
) -> Check:
    """Faults of one state: bad words, readings without one, other epochs, and a move."""
    good = GOOD_STATES.get(counter)
    wrong = sum(good is not None and word.lower() not in good for word in words)
    # An array's state moves between its good words as it is written to; others must not move.
    moved = len(words) != 1 and not (counter == "array_state" and words)
    return compared(
        "state_faults",
        (wrong + lost + (epochs - 1) + moved, "==", 0),
        "c8-state",
        facts={
            "probe": probe,
            "device": device,
            "counter": counter,
            "words": ARROW.join(words),
            "samples": n,
            "lost": lost,
            "epochs": epochs,
        },
    )


def _engine_lives(case: Case, instance: str, window: Window) -> Check:
    rows = case.rows(
        "SELECT count(*), count(*) FILTER (first_ns <= $begin_ns AND last_ns >= $end_ns) FROM ("
        "SELECT device, min(mono_ns) AS first_ns, max(mono_ns) AS last_ns FROM probes "
        "WHERE run_id = $run AND probe = 'process' AND value IS NOT NULL "
        "AND starts_with(device, $prefix) GROUP BY device)",
        prefix=f"{instance}:",
        begin_ns=window.begin_ns,
        end_ns=window.end_ns,
    )
    seen, lived = rows[0]
    if not seen:
        return missing("processes_through_window", "c8-no-process", instance=instance)
    return compared(
        "processes_through_window",
        (lived, ">", 0),
        "c8-process",
        facts={"instance": instance, "processes": seen},
    )


C8 = Rule(
    rule_id="C8",
    checks=nothing_regressed,
    thresholds={"gap_ns": SAMPLE_GAP_NS_MAX},
    of_device=True,
)
