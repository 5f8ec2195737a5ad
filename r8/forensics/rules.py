"""The certificate: every rule, in the order it is printed. A rule declares itself in its module.

C1-C11 prove the cold read, or for a recompute arm that there was none. E1-E3 are the engine's
soundness, Q1-Q3 the quality of the run, G1 its GPU memory, S1 the shares of several engines, W1-W3
the durability of what was written, N1 and N2 the negative controls. An id is never reused for
another meaning. A rule that a run gives no subject (C7 without a recompute arm, C9 without a link,
G1 without a GPU) says so: it is neither held nor an objection.
"""

from __future__ import annotations

from r8.forensics import (
    balance,
    client,
    coldness,
    continuity,
    controls,
    counters,
    engine,
    hits,
    instances,
    link,
    patch,
    placement,
    recompute,
    surroundings,
    whole,
    written,
)

RULES = (
    placement.C1,
    coldness.C2,
    coldness.C3,
    balance.C4,
    placement.C5,
    hits.C6,
    recompute.C7,
    continuity.C8,
    link.C9,
    client.C10,
    patch.C11,
    engine.E1,
    counters.E2,
    engine.E3,
    whole.Q1,
    whole.Q2,
    surroundings.Q3,
    surroundings.G1,
    instances.S1,
    written.W1,
    written.W2,
    written.W3,
    controls.N1,
    controls.N2,
)
