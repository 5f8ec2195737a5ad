"""C9 and the wire's part of C4: what came over the link, and that it could have.

Bytes that arrive faster than the slowest link to their device carries them came from somewhere
nearer. And on a fabric the network adapter counts what the device counts, plus headers: how much
these add is calibrated in the same run, by a read of a known size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Rule
from r8.message import Check, compared, missing, not_applicable
from r8.model import Device
from r8.units import NS_PER_S

if TYPE_CHECKING:
    from r8.forensics.case import Case, Window

# Instants are stamped some microseconds after the counters were read, and a link's rate is nominal.
LINK_TOLERANCE = 0.02
# Shorter windows are ruled by how requests in flight are accounted at their completion.
PEAK_WINDOW_NS = NS_PER_S
# Header overhead depends on the MTU alone, which does not change in a run: 1 % is its noise.
WIRE_TOLERANCE = 0.01
FABRICS = frozenset({"rdma", "tcp", "fc"})


def link_not_exceeded(case: Case) -> list[Check]:
    """C9: neither the device nor the network adapter moved bytes faster than the declared link."""
    run = case.run
    fabric = case.transports(case.device) & FABRICS
    if run.link_bytes_per_s is None:
        return [_no_link(case, fabric)]
    window = case.window("measure")
    if window is None:
        return [missing("measure_window", "no-measure-window")]
    wires = case.rows(
        "SELECT host, device, counter FROM wire_counters($run, $fabrics) ORDER BY host, device",
        fabrics=sorted(fabric),
    )
    checks = [_within(case, "disk", case.device, "read_sectors", window)]
    return checks + [
        _within(case, "nic", Device(host=host, name=name), counter, window)
        for host, name, counter in wires
    ]


def _no_link(case: Case, fabric: frozenset[str]) -> Check:
    device = case.device.name
    kind = case.text(case.device, "kind")
    if kind is None:
        return missing("device_kind", "c9-kind-unknown", device=device)
    if fabric:
        fabrics = ", ".join(sorted(fabric))
        return missing("link_bytes_per_s", "c9-link-not-declared", device=device, fabrics=fabrics)
    return not_applicable("link_bytes_per_s", "c9-no-link", device=device, kind=kind)


def _within(case: Case, probe: str, device: Device, counter: str, window: Window) -> Check:
    place = {"probe": probe, "host": device.host, "device": device.name, "counter": counter}
    edges = case.rows(
        "SELECT before_ns, after_ns FROM growths($begin, $end) WHERE run_id = $run "
        "AND probe = $probe AND host = $host AND device = $device AND counter = $counter",
        begin=window.begin_ns,
        end=window.end_ns,
        **place,
    )
    shown = {"device": device.name, "counter": counter.rpartition(".")[2]}
    if len(edges) != 1 or None in edges[0]:
        return missing("peak_bytes_per_s", "c9-counter-not-read", **shown)
    begin, end = edges[0]
    rows = case.rows(
        "FROM fastest_stretch($run, $probe, $host, $device, $counter, $begin, $end, $width)",
        begin=begin,
        end=end,
        width=PEAK_WINDOW_NS,
        **place,
    )
    if not rows:
        return missing("peak_bytes_per_s", "c9-one-reading", **shown)
    moved, span_ns = rows[0]
    link = case.run.link_bytes_per_s or 0
    return compared(
        "peak_bytes_per_s",
        (moved * NS_PER_S / span_ns, "<=", link * (1 + LINK_TOLERANCE)),
        "c9-peak",
        unit="bytes/s",
        facts={
            "device": device.name,
            "counter": shown["counter"],
            "moved_bytes": moved,
            "span_ns": span_ns,
            "link_bytes_per_s": link,
            "tolerance_share": LINK_TOLERANCE,
        },
    )


def wire_balances(case: Case, device_bytes: int) -> list[Check]:
    """The wire's part of C4: received bytes over device bytes as in the run's own calibration."""
    fabric = case.transports(case.device) & FABRICS
    if not fabric:
        return [not_applicable("wire_bytes", "c4-no-wire", device=case.run.kv_device)]
    measured, calibrated = case.window("measure"), case.window("wire_calibration")
    known = case.event("wire_calibration_end")
    known_bytes = known.detail.get("read_bytes") if known else None
    if measured is None or calibrated is None or not isinstance(known_bytes, int):
        return [missing("wire_calibration", "c4-wire-not-calibrated")]
    before, now = (_received(case, fabric, window) for window in (calibrated, measured))
    if not before or now is None or not device_bytes or not known_bytes:
        return [missing("wire_bytes", "c4-wire-unknown")]
    ratio, wanted = now / device_bytes, before / known_bytes
    return [
        compared(
            "wire_bytes / device_read_bytes / calibrated",
            (ratio / wanted, "within", (1 - WIRE_TOLERANCE, 1 + WIRE_TOLERANCE)),
            "c4-wire",
            unit="ratio",
            facts={
                "wire_bytes": now,
                "read_bytes": device_bytes,
                "now_ratio": ratio,
                "calibrated_bytes": before,
                "known_bytes": known_bytes,
                "calibrated_ratio": wanted,
            },
        )
    ]


def _received(case: Case, fabric: frozenset[str], window: Window) -> int | None:
    rows = case.rows(
        "SELECT received_bytes FROM wire_bytes($run, $fabrics, $begin_ns, $end_ns)",
        fabrics=sorted(fabric),
        begin_ns=window.begin_ns,
        end_ns=window.end_ns,
    )
    received: int | None = rows[0][0]
    return received


C9 = Rule(
    rule_id="C9",
    checks=link_not_exceeded,
    thresholds={"window_ns": PEAK_WINDOW_NS, "tolerance_share": LINK_TOLERANCE},
    of_device=True,
)
