"""R2: what a cold recovery of 480B sessions costs from the array, a local drive, and by recompute.

Published: TTFT p50 at concurrency 8, 16, 32: array 7.53, 11.85, 26.35 s, local drive 10.17, 17.31,
35.73 s, recompute 149.48 s (at 16 only), eight MI308X. Each arm starts its engine once a block and
populates once; every level reads sessions of its own, each at most once, after a verified drop.
"""

from __future__ import annotations

from r8.roles import Role
from r8.scenarios.cells import test_cell, test_verdicts
from r8.scenarios.scenario import Scenario

__all__ = ["SCENARIO", "test_cell", "test_verdicts"]

SCENARIO = Scenario(
    name="r2-cold-recovery",
    table="scenarios",
    roles=(Role.ARRAY, Role.LOCAL, Role.RECOMPUTE),
)
