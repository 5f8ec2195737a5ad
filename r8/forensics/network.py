"""What is known of files on an NFS mount, and what a rule of block devices lacks there.

The probe `nfs` captures what the kernel's client counts for the mount. No rule rests on it: these
counters were never held against a real server's. So the rules stay unknown, and say what was seen
and what is lacking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.message import Check, missing
from r8.model import Device

if TYPE_CHECKING:
    from r8.forensics.case import Case

PROBE, READ_COUNTER = "nfs", "server_read_bytes"
# What each rule would be known by.
LACKS = {
    "C1": "nfs-lacks-mount-of-files",
    "C2": "nfs-lacks-writes-of-server",
    "C4": "nfs-lacks-proven-counter",
    "C8": "nfs-lacks-age-of-mount",
    "C9": "nfs-lacks-link",
    "N1": "nfs-lacks-proven-counter",
}


def mounted(case: Case, rule_id: str) -> list[Check]:
    """What to say before a rule's own checks of a run whose files lie on an NFS mount."""
    mounts = case.rows(
        "SELECT DISTINCT host, device FROM probes WHERE run_id = $run AND probe = $probe "
        "AND value IS NOT NULL ORDER BY ALL",
        probe=PROBE,
    )
    if not mounts:
        return []
    (host, mount), window = mounts[0], case.window("measure")
    device = Device(host=host, name=mount)
    read = None if window is None else case.grown(PROBE, device, READ_COUNTER, window)
    seen = (
        missing("server_read_bytes", "nfs-not-read", mount=mount)
        if read is None
        else missing("server_read_bytes", "nfs-captured-only", mount=mount, read_bytes=read)
    )
    return [seen, *(missing("server_read_bytes", one) for one in [LACKS.get(rule_id)] if one)]
