"""R1: checkpoint writes: every rank saves a whole snapshot, or its share of one, and flushes it.

Published: 8 ranks, 65.6 GB a snapshot, 178 s -> 94 s (1.9x), sustained 3.26 -> 6.40 GB/s. The text
leaves open whether every rank wrote a whole snapshot or its share: both are arms. A save counts if
the device had every byte before its time ended, and when it was read back, cold, by its hash.
"""

from __future__ import annotations

from r8.roles import Role
from r8.scenarios.cells import test_cell, test_verdicts
from r8.scenarios.scenario import Scenario

__all__ = ["SCENARIO", "test_cell", "test_verdicts"]

SCENARIO = Scenario(
    name="r1-checkpoint",
    table="transfers",
    roles=(Role.ARRAY, Role.LOCAL, Role.BASELINE),
)
