"""What a rule is for, in words: the text behind `r8 explain`."""

from __future__ import annotations

from r8.errors import UsageError
from r8.forensics.rules import RULES


def explain(rule_id: str) -> str:
    """Title, reason, inputs and thresholds of one rule; case does not matter.

    Raises:
        UsageError: no rule has this id.

    """
    for rule in RULES:
        if rule.rule_id == rule_id.upper():
            scope = (
                "One run of a block that holds it speaks for the block; one that refutes it "
                "speaks against it."
                if rule.of_block
                else "It must hold in every run a verdict rests on."
            )
            return (
                f"{rule.rule_id}  {rule.title}\n\n"
                f"Why        {rule.reason}\n"
                f"Reads      {rule.inputs}\n"
                f"Threshold  {rule.threshold}\n"
                f"Scope      {scope}\n"
                "Answers    held; refuted (by number); unknown (evidence is missing), which is\n"
                "           INVALID for every claim that needs the rule, never a pass.\n"
            )
    known = ", ".join(rule.rule_id for rule in RULES)
    raise UsageError(f"no rule {rule_id!r}", where="r8 explain", next_step=f"choose one of {known}")
