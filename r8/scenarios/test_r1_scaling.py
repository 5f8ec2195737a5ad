"""R1: KV tiering across GPUs: engines that read cold sessions of their own from one device at once.

Published is the question and no reading of it. Every engine gets the same load; one engine is set
against several, their aggregate read bandwidth against what the device itself gives, and the rates
of the engines against each other. What the device and one engine predict stands beside it.
"""

from __future__ import annotations

from r8.roles import Role
from r8.scenarios.cells import test_cell, test_verdicts
from r8.scenarios.scenario import Scenario

__all__ = ["SCENARIO", "test_cell", "test_verdicts"]

SCENARIO = Scenario(
    name="r1-scaling",
    table="scenarios",
    roles=(Role.ARRAY, Role.LOCAL),
)
