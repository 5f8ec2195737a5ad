"""R1: what switching models costs, as a model of measured loads and as a run that switches.

Published: at 20 switches an hour the effective utilisation rises from 46.7 to 62.8 %, modelled from
load times that were measured and not published: U = 1 - n * t_load / 3600. Each cell loads one
model after another, cold, at a compressed time scale, and serves with each until the next is due;
what was served is set beside what the model says of the same loads.
"""

from __future__ import annotations

from r8.roles import Role
from r8.scenarios.cells import test_cell, test_verdicts
from r8.scenarios.scenario import Scenario

__all__ = ["SCENARIO", "test_cell", "test_verdicts"]

SCENARIO = Scenario(
    name="r1-model-switch",
    table="transfers",
    roles=(Role.ARRAY, Role.LOCAL, Role.BASELINE),
)
