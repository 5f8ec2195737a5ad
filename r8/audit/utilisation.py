"""The utilisation model behind report R1's model-switching figures.

    U = 1 - n * t_load / 3600 s

n is the number of model switches an hour, t_load the seconds one load takes, U the share of the
hour left for compute. The report prints U for n = 20 before and after (`r1.switch.util.before`,
`r1.switch.util.after`), says that load times were measured, and publishes none; the formula is
inferred from the page's words. Cannot show: work that goes on while a model loads, time lost to
anything but loading, or loads that overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.audit.finding import AuditAnswer, finding, span
from r8.claims.arithmetic import Enclosure
from r8.claims.ledger import UnpublishedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from r8.audit.finding import AuditFinding
    from r8.claims.ledger import Ledger, Relation

SECONDS_PER_HOUR = Enclosure.exact(3600)
ONE = Enclosure.exact(1)


def utilisation(switches_per_hour: Enclosure, load_time_s: Enclosure) -> Enclosure:
    """Share of an hour left for compute.

    Formula: 1 - switches_per_hour * load_time_s / 3600.
    """
    return ONE - switches_per_hour * load_time_s / SECONDS_PER_HOUR


def load_time(switches_per_hour: Enclosure, used: Enclosure) -> Enclosure:
    """Seconds one load must take for a printed utilisation.

    Formula: (1 - used) * 3600 / switches_per_hour.
    """
    return (ONE - used) * SECONDS_PER_HOUR / switches_per_hour


def model(ledger: Ledger) -> Iterator[AuditFinding]:
    """A10: load times implied by the printed utilisation agree with the printed per-model gain."""
    for relation in ledger.relations:
        if relation.kind == "utilisation":
            yield _model(ledger, relation)


def _model(ledger: Ledger, relation: Relation) -> AuditFinding:
    try:
        # A number of switches is an operating point that was set, not a reading that was rounded.
        switches = Enclosure.exact(ledger.value(relation.formulas["switches"]).enclosure.middle)
        before, after = (
            load_time(switches, ledger.value(relation.formulas[name]).enclosure)
            for name in ("before", "after")
        )
        claimed = ledger.value(relation.formulas["saved"]).enclosure
    except UnpublishedError as absent:
        facts = {"input": str(absent)}
        return finding(
            ledger, "A10", (AuditAnswer.UNDETERMINED, "undetermined"), relation.figures, facts
        )
    saved = ONE - after / before
    faster = before / after - ONE
    facts = {
        "before": span(before, "s"),
        "after": span(after, "s"),
        "switches": f"{float(switches.middle):g}",
        "saved": span(saved, "%"),
        "faster": span(faster, "%"),
        "claimed": span(claimed, "%"),
    }
    answers = {
        (True, False): (AuditAnswer.FOLLOWS, "A10.saved"),
        (False, True): (AuditAnswer.FOLLOWS, "A10.faster"),
        (True, True): (AuditAnswer.FOLLOWS, "A10.either"),
        (False, False): (AuditAnswer.OFF, "A10.off"),
    }
    answer, key = answers[saved.meets(claimed), faster.meets(claimed)]
    return finding(ledger, "A10", (answer, key), relation.figures, facts, topic=relation.say)
