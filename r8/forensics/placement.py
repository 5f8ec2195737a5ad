"""C1 and C5: the KV files lie on the device the arm names, and no other KV device served them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from r8.forensics.rule import Check, missing, not_applicable

if TYPE_CHECKING:
    from r8.forensics.case import Case

# Metadata and a neighbour's stray read stay below this; a tier that serves KV does not.
OTHER_DEVICE_SHARE_MAX = 0.01


def kv_on_named_device(case: Case) -> list[Check]:
    """C1: every KV file's st_dev, and the mount it belongs to."""
    return [_files_on_device(case), _directory_on_mount(case)]


def _files_on_device(case: Case) -> Check:
    run = case.run
    rows = case.rows(
        "SELECT device, count(*) FROM residency WHERE run_id = $run AND moment = 'after_drop' "
        "GROUP BY device ORDER BY device"
    )
    total = sum(count for _, count in rows)
    if not rows:
        return missing("no KV file was looked at after the drop", "Residency rows are missing.")
    on_device = sum(count for device, count in rows if device == run.kv_device)
    unknown = sum(count for device, count in rows if device is None)
    elsewhere = {d: n for d, n in rows if d is not None and d != run.kv_device}
    found = "".join(f", {count} on {device}" for device, count in elsewhere.items())
    found += f", {unknown} on an unknown device" if unknown else ""
    return Check(
        arithmetic=f"{on_device} of {total} KV files on {run.kv_device}{found}",
        held=False if elsewhere else (None if unknown else True),
        otherwise=f"The arm names {run.kv_device} for {run.kv_dir}; look at the site's mounts.",
    )


def _directory_on_mount(case: Case) -> Check:
    run = case.run
    mounts = case.text(run.kv_device, "mount")
    if not mounts:
        return missing(
            f"no mount of {run.kv_device} in the topology", "The topology probe did not see it."
        )
    directory = PurePosixPath(run.kv_dir)
    return Check(
        # A device can be mounted at several places; the topology names them all.
        arithmetic=f"KV directory {run.kv_dir} under mount {mounts} of {run.kv_device}",
        held=any(directory.is_relative_to(mount) for mount in mounts.split(",")),
        otherwise="The KV directory lies outside the device's mount.",
    )


def other_devices_quiet(case: Case) -> list[Check]:
    """C5: each other KV device read less than a share of the cell's KV bytes in the window."""
    run = case.run
    if not run.other_kv_devices:
        return [
            not_applicable(
                "the site names 0 other KV devices", "There is no other tier KV could come from."
            ),
        ]
    expected = run.expectation.hit_bytes
    checks = []
    for device in run.other_kv_devices:
        size = case.read_bytes(device, "measure")
        if size is None:
            checks.append(
                missing(
                    f"{device}: no read counter around the window", f"{device} was not sampled."
                )
            )
            continue
        checks.append(
            Check(
                arithmetic=f"{device} read {size} B / {expected} B of KV = {size / expected:.4f} "
                f"< {OTHER_DEVICE_SHARE_MAX}",
                held=size < OTHER_DEVICE_SHARE_MAX * expected,
                otherwise=f"{device} was read during the measurement: KV may have come from it.",
            )
        )
    return checks
