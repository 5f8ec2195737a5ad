"""What is known of files on an NFS mount, and what a rule of block devices lacks there.

The probe `nfs` captures what the kernel's client counts for the mount. No rule rests on it: these
counters were never held against a real server's. So the rules stay unknown, and say what was seen
and what is lacking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r8.forensics.case import Case

PROBE, READ_COUNTER = "nfs", "server_read_bytes"
_COUNTER_LACKS = (
    "It would be known with this counter for the device's, once that was held against the reads of "
    "a server."
)
LACKS = {
    "C1": "It would be known by the mount of every file; the server's own device stays unseen.",
    "C2": "It would be known from the server: what it still writes is not counted on this host.",
    "C4": _COUNTER_LACKS,
    "C8": "It would be known by age and counters of the mount, which only grow while it lasts.",
    "C9": "It would be known with a declared link and the receive counters of its adapter.",
    "N1": _COUNTER_LACKS,
}


def words(case: Case, rule_id: str) -> str:
    """Sentences before a rule's own about a run whose files lie on an NFS mount; else nothing."""
    mounts = case.rows(
        "SELECT DISTINCT device FROM probes WHERE run_id = $run AND probe = $probe "
        "AND value IS NOT NULL ORDER BY device",
        probe=PROBE,
    )
    if not mounts:
        return ""
    mount = str(mounts[0][0])
    window = case.window("measure")
    read = None if window is None else case.grown(PROBE, mount, READ_COUNTER, window)
    told = (
        f"NFS mount {mount}: its counters were not read around the window."
        if read is None
        else f"NFS mount {mount} took {read} B from its server in the window: captured only."
    )
    return f"{told} {LACKS.get(rule_id, '')}".rstrip() + " "
