"""R3: two engines side by side, each with a pool of its own or both on one shared pool.

Published: nine points at machine concurrency 16 and 32, percentiles pooled over both engines; over
`fs://` an engine reads what the other one stored, with LMCache's local disk backend it does not.
Whether a request hit is read from the lines the engine wrote about that very request.
"""

from __future__ import annotations

from r8.roles import Role
from r8.scenarios.cells import test_cell, test_verdicts
from r8.scenarios.scenario import Scenario

__all__ = ["SCENARIO", "test_cell", "test_verdicts"]

SCENARIO = Scenario(
    name="r3-tp4x2",
    table="scenarios",
    roles=(Role.POOL, Role.SHARED, Role.NEGATIVE, Role.LOCAL, Role.RECOMPUTE),
)
