"""R1: what concurrent cold model loading costs from the array and from the baseline medium.

Published: eight accelerators load models at once, wall clock 16 % faster and each model 30 % faster
from the array; neither seconds nor the baseline are named. Each cell makes a model for every
loader (or takes the site's own), brings them to the device, drops the page cache, and lets all
loaders go at one barrier. R9 is the same scenario with another baseline and platform key.
"""

from __future__ import annotations

from r8.roles import Role
from r8.scenarios.cells import test_cell, test_verdicts
from r8.scenarios.scenario import Scenario

__all__ = ["SCENARIO", "test_cell", "test_verdicts"]

SCENARIO = Scenario(
    name="r1-model-load",
    table="transfers",
    roles=(Role.ARRAY, Role.LOCAL, Role.BASELINE),
)
