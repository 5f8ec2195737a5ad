"""The roles an arm can have, and the contract of each.

A site names its arms as it likes. What code, SQL and claims may ask of an arm is its role and its
treatment, never its name: an arm `array-rdma` with the role `array` is run, predicted and judged
as every other arm with that role. The set is closed: a role nobody wrote a contract for would be
judged by nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

# Where an engine keeps its KV: LMCache's local disk backend, or a directory behind `fs://`.
KvTier = Literal["disk", "fs"]
# How a reader brings its bytes in: which calibration of the device predicts it.
Reads = Literal["serial", "parallel"]
# Which sessions an engine measures: those it populated, or those its neighbour did.
SessionsOf = Literal["itself", "neighbour"]


class Role(StrEnum):
    """What an arm is in a comparison."""

    ARRAY = "array"
    LOCAL = "local"
    BASELINE = "baseline"
    POOL = "pool"
    SHARED = "shared"
    NEGATIVE = "negative"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a role promises, and what may therefore be asked of its runs."""

    meaning: str
    # KV tiers an engine of this role may have; empty: none, and its device must stay silent.
    tiers: tuple[KvTier, ...] = ("disk", "fs")
    sessions_of: tuple[SessionsOf, ...] = ("itself",)
    # Whether a block device of the host must count its bytes; False: a network mount is accepted.
    counted: bool = True
    # Whether claims may speak of it. A negative result is shown and takes part in no claim.
    judged: bool = True
    # Comparability keys about media this role never touches: they need not match.
    other_keys: tuple[str, ...] = ("local",)


# Before the name of a role, where a claim names a role instead of an arm.
ROLE_PREFIX = "role:"

CONTRACTS: Mapping[Role, Contract] = {
    Role.ARRAY: Contract(meaning="reads from the array"),
    Role.LOCAL: Contract(
        meaning="reads from a local drive, with which the array is compared",
        other_keys=("array",),
    ),
    Role.BASELINE: Contract(
        meaning="reads from another medium with which the array is compared, such as an NFS mount",
        counted=False,
        other_keys=("array",),
    ),
    Role.POOL: Contract(
        meaning="engines side by side on the array, each with a local disk backend of its own",
        tiers=("disk",),
    ),
    Role.SHARED: Contract(
        meaning="engines side by side on one pool of the array that each of them can read",
        tiers=("fs",),
        sessions_of=("itself", "neighbour"),
    ),
    Role.NEGATIVE: Contract(
        meaning="engines that look for KV their backend cannot find: every request must miss",
        tiers=("disk",),
        sessions_of=("neighbour",),
        judged=False,
    ),
    Role.RECOMPUTE: Contract(
        meaning="has no KV tier and computes every prompt; its device must stay silent",
        tiers=(),
        other_keys=("array", "local"),
    ),
}
