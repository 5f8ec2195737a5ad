"""What runs of schema 1 do not say of themselves: the role of their arm, and how its reader reads.

Schema 1 knew an arm by its name alone. Only the names that its runs were recorded under are looked
up here, in the one place where an arm's name still means something; a run that names its role is
never asked for its arm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.roles import Reads, Role

if TYPE_CHECKING:
    from r8.model import Run

ARMS: dict[str, tuple[Role, Reads | None]] = {
    "patched": (Role.ARRAY, "parallel"),
    "unpatched": (Role.ARRAY, "serial"),
    "upstream-32": (Role.ARRAY, "parallel"),
    # Four threads are neither: no calibration reads like them.
    "upstream-4": (Role.ARRAY, None),
    "array": (Role.ARRAY, "parallel"),
    "local-nvme": (Role.LOCAL, "parallel"),
    "pool": (Role.POOL, "parallel"),
    "pool-cross": (Role.NEGATIVE, None),
    "fs-own": (Role.SHARED, None),
    "fs-cross": (Role.SHARED, None),
    "recompute": (Role.RECOMPUTE, None),
}
# Arms of a family: engines on the array side by side, and checkpoints on either medium.
_FAMILIES: dict[str, Role] = {"gpu-": Role.ARRAY, "array-": Role.ARRAY, "local-": Role.LOCAL}


def treatment_of(run: Run) -> tuple[Role | None, Reads | None]:
    """Role and reader of the arm of a run of schema 1; `None` for what its name does not tell."""
    role, reads = ARMS.get(run.arm, (None, None))
    if role is None:
        role = next((one for start, one in _FAMILIES.items() if run.arm.startswith(start)), None)
        if run.arm.startswith("gpu-") and run.patch is not None:
            reads = "parallel" if run.patch.expected == "patched" else "serial"
    return role, None if run.work is not None else reads
