"""C1 and C5: the KV files lie on the device the arm names, and no other KV device served them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from r8.forensics.rule import Rule
from r8.message import Check, compared, missing, not_applicable

if TYPE_CHECKING:
    from r8.forensics.case import Case
    from r8.model import Device

# Metadata and a neighbour's stray read stay below this; a tier that serves KV does not.
OTHER_DEVICE_SHARE_MAX = 0.01


def kv_on_named_device(case: Case) -> list[Check]:
    """C1: every KV file's st_dev, and the mount it belongs to."""
    return [_files_on_device(case), _directory_on_mount(case)]


def _files_on_device(case: Case) -> Check:
    run = case.run
    rows = case.rows(
        "WITH seen AS (SELECT CASE WHEN device IS NOT NULL THEN host END AS host, device "
        "FROM residency WHERE run_id = $run AND moment = 'after_drop') "
        "SELECT host, device, count(*), (SELECT count(*) FROM seen) FROM seen "
        "GROUP BY host, device ORDER BY host, device"
    )
    if not rows:
        return missing("kv_files", "c1-no-file-seen")
    found = {(host, device): count for host, device, count, _ in rows}
    unknown, here = found.pop((None, None), 0), found.pop((run.kv_host, run.kv_device), 0)
    files: int = rows[0][3]
    elsewhere = files - here - unknown
    return compared(
        "kv_files_elsewhere",
        (elsewhere if elsewhere or not unknown else None, "==", 0),
        "c1-files-on-device",
        unit="files",
        facts={
            "here": here,
            "files": files,
            "device": run.kv_device,
            "directory": run.kv_dir,
            "places": ", ".join(f"{device}: {count}" for (_, device), count in found.items()),
            "unknown": unknown,
        },
    )


def _directory_on_mount(case: Case) -> Check:
    run = case.run
    mounts = case.text(case.device, "mount")
    if not mounts:
        return missing("kv_dir_under_mount", "c1-no-mount", device=run.kv_device)
    directory = PurePosixPath(run.kv_dir)
    # A device can be mounted at several places; the topology names them all.
    below = any(directory.is_relative_to(mount) for mount in mounts.split(","))
    return compared(
        "kv_dir_under_mount",
        (below, "==", True),
        "c1-directory-on-mount",
        facts={"directory": run.kv_dir, "mounts": mounts, "device": run.kv_device},
    )


def other_devices_quiet(case: Case) -> list[Check]:
    """C5: each other KV device read less than a share of the cell's KV bytes in the window."""
    devices = case.run.other_kv_devices
    if not devices:
        return [not_applicable("other_kv_devices", "c5-no-other-device")]
    return [_quiet(case, device) for device in devices]


def _quiet(case: Case, device: Device) -> Check:
    size, expected = case.read_bytes(device, "measure"), case.run.expected_bytes
    if size is None:
        return missing("device_read_bytes", "no-read-counter", device=device.name)
    return compared(
        "other_device_read_bytes / kv_bytes",
        (size / expected, "<", OTHER_DEVICE_SHARE_MAX),
        "c5-other-device-read",
        unit="ratio",
        facts={"device": device.name, "read_bytes": size, "kv_bytes": expected},
    )


C1 = Rule(rule_id="C1", checks=kv_on_named_device, of_device=True, of_kv=True)
C5 = Rule(
    rule_id="C5",
    checks=other_devices_quiet,
    thresholds={"most_share": OTHER_DEVICE_SHARE_MAX},
    of_kv=True,
)
