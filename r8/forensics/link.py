"""C9 and the wire's part of C4: what came over the link, and that it could have.

Bytes that arrive faster than the slowest link to their device carries them came from somewhere
nearer. And on a fabric the network adapter counts what the device counts, plus headers: how much
these add is calibrated in the same run, by a read of a known size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.forensics.rule import Rule
from r8.message import Check, missing, not_applicable
from r8.model import Device
from r8.units import BYTES_PER_SECTOR, NS_PER_S

if TYPE_CHECKING:
    from r8.forensics.case import Case, Window

# Instants are stamped some microseconds after the counters were read, and a link's rate is nominal.
LINK_TOLERANCE = 0.02
# Shorter windows are ruled by how requests in flight are accounted at their completion.
PEAK_WINDOW_NS = NS_PER_S
# Header overhead depends on the MTU alone, which does not change in a run: 1 % is its noise.
WIRE_TOLERANCE = 0.01
FABRICS = frozenset({"rdma", "tcp", "fc"})
# RDMA receive counters by preference, then what TCP has. Totals of the wire are no evidence.
RECEIVE_COUNTERS = {
    "rdma": (
        "ethtool.rx_vport_rdma_unicast_bytes",
        "hw.rx_roce_good_bytes",
        "hw.rdma_rx_bytes",
        "ib.port_rcv_data_bytes",
    ),
    "tcp": ("netdev.rx_bytes",),
}

# Bytes over the shortest stretch of at least $width ns from each reading on, less what was in
# flight at its begin: those may have crossed the link before it and are counted on completion.
_PEAK = """
WITH readings AS (
  SELECT mono_ns,
         max(value) FILTER (counter = $counter) * $scale AS total,
         coalesce(max(value) FILTER (counter = 'in_flight'), 0) AS in_flight,
         max(value) FILTER (counter = 'reads') AS reads
  FROM probes
  WHERE run_id = $run AND probe = $probe AND host = $host AND device = $device AND value IS NOT NULL
    AND counter IN ($counter, 'in_flight', 'reads') AND mono_ns BETWEEN $begin AND $end
  GROUP BY mono_ns
),
known AS (SELECT * FROM readings WHERE total IS NOT NULL),
pairs AS (
  SELECT b.mono_ns - a.mono_ns AS span_ns, b.total - a.total AS moved,
         CASE WHEN b.reads > a.reads
              THEN a.in_flight * (b.total - a.total) / (b.reads - a.reads) ELSE 0 END AS carried
  FROM known a ASOF JOIN (SELECT *, mono_ns - $width AS start_ns FROM known) b
    ON a.mono_ns <= b.start_ns
)
SELECT greatest(moved - carried, 0)::BIGINT, span_ns FROM pairs WHERE span_ns > 0
ORDER BY (moved - carried) / span_ns DESC LIMIT 1
"""
# The readings that enclose a window.
_EDGES = """
SELECT max(mono_ns) FILTER (mono_ns <= $begin), min(mono_ns) FILTER (mono_ns >= $end)
FROM probes WHERE run_id = $run AND probe = $probe AND host = $host AND device = $device
  AND counter = $counter AND value IS NOT NULL
"""


def link_not_exceeded(case: Case) -> list[Check]:
    """C9: neither the device nor the network adapter moved bytes faster than the declared link."""
    run = case.run
    fabric = case.transports(case.device) & FABRICS
    if run.link_bytes_per_s is None:
        return [_no_link(case, fabric)]
    window = case.window("measure")
    if window is None:
        return [missing("measure_window", "no-measure-window")]
    checks = [_within(case, ("disk", case.device, "read_sectors", BYTES_PER_SECTOR), window)]
    checks += [
        _within(case, ("nic", device, counter, 1), window)
        for device, counter in receive_counters(case, fabric)
    ]
    return checks


def _no_link(case: Case, fabric: frozenset[str]) -> Check:
    device = case.device.name
    kind = case.text(case.device, "kind")
    if kind is None:
        return missing("device_kind", "c9-kind-unknown", device=device)
    if fabric:
        fabrics = ", ".join(sorted(fabric))
        return missing("link_bytes_per_s", "c9-link-not-declared", device=device, fabrics=fabrics)
    return not_applicable("link_bytes_per_s", "c9-no-link", device=device, kind=kind)


def receive_counters(case: Case, fabric: frozenset[str]) -> list[tuple[Device, str]]:
    """(device, counter) of the best receive counter of each sampled adapter or port."""
    wanted = [name for one in sorted(fabric) for name in RECEIVE_COUNTERS.get(one, ())]
    rows = case.rows(
        "SELECT DISTINCT host, device, counter FROM probes WHERE run_id = $run AND probe = 'nic' "
        "AND list_contains($wanted, counter) AND value IS NOT NULL",
        wanted=wanted,
    )
    best: dict[Device, str] = {}
    for host, name, counter in sorted(rows, key=lambda row: wanted.index(row[2])):
        best.setdefault(Device(host=host, name=name), counter)
    # A port's counters and its interface's count the same bytes: the interface's driver wins.
    if any(counter.startswith("ethtool.") for counter in best.values()):
        best = {card: one for card, one in best.items() if one.startswith("ethtool.")}
    return sorted(best.items(), key=lambda one: (one[0].host, one[0].name))


def _within(case: Case, source: tuple[str, Device, str, int], window: Window) -> Check:
    probe, device, counter, scale = source
    place = {"probe": probe, "host": device.host, "device": device.name, "counter": counter}
    (edges,) = case.rows(_EDGES, begin=window.begin_ns, end=window.end_ns, **place)
    shown = {"device": device.name, "counter": counter.rpartition(".")[2]}
    if None in edges:
        return missing("peak_bytes_per_s", "c9-counter-not-read", **shown)
    begin, end = edges
    # A phase shorter than the window is one window itself.
    width = min(PEAK_WINDOW_NS, end - begin)
    rows = case.rows(_PEAK, begin=begin, end=end, width=width, scale=scale, **place)
    if not rows:
        return missing("peak_bytes_per_s", "c9-one-reading", **shown)
    moved, span_ns = rows[0]
    link = case.run.link_bytes_per_s or 0
    return Check(
        quantity="peak_bytes_per_s",
        measured=moved * NS_PER_S / span_ns,
        op="<=",
        limit=link * (1 + LINK_TOLERANCE),
        unit="bytes/s",
        message="c9-peak",
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
    counters = receive_counters(case, fabric)
    before = _received(case, counters, calibrated)
    now = _received(case, counters, measured)
    if not before or now is None or not device_bytes or not known_bytes:
        return [missing("wire_bytes", "c4-wire-unknown")]
    ratio, wanted = now / device_bytes, before / known_bytes
    return [
        Check(
            quantity="wire_bytes / device_read_bytes / calibrated",
            measured=ratio / wanted,
            op="within",
            limit=(1 - WIRE_TOLERANCE, 1 + WIRE_TOLERANCE),
            unit="ratio",
            message="c4-wire",
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


def _received(case: Case, counters: list[tuple[Device, str]], window: Window) -> int | None:
    each = [case.grown("nic", device, counter, window) for device, counter in counters]
    known = [size for size in each if size is not None]
    return sum(known) if known and len(known) == len(each) else None


C9 = Rule(
    rule_id="C9",
    checks=link_not_exceeded,
    thresholds={"window_ns": PEAK_WINDOW_NS, "tolerance_share": LINK_TOLERANCE},
    of_device=True,
)
