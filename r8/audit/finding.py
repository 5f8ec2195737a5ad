"""What a rule of the audit says about figures: an answer, the numbers, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from r8.claims.formula import Node
from r8.claims.printed import plain
from r8.claims.printed_units import UNITS
from r8.claims.words import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from r8.claims.arithmetic import Enclosure
    from r8.claims.ledger import Ledger


class AuditAnswer(StrEnum):
    """What the arithmetic came to."""

    FOLLOWS = "FOLLOWS"  # the printed numbers allow it
    OFF = "OFF"  # no reading of the printed numbers allows it
    UNDETERMINED = "UNDETERMINED"  # what it needs was not published, or the rounding decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Published figures that would give a number which its own formula does not."""

    same_report: bool
    expression: str
    arithmetic: str
    reports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One rule applied to one figure, pair or group of figures."""

    rule_id: str
    answer: AuditAnswer
    figures: tuple[str, ...]
    key: str  # the sentence, in the catalogue
    facts: Mapping[str, str] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=dict)  # language -> what it is about
    pages: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    leads: tuple[Lead, ...] = ()

    def text(self, language: str) -> str:
        """The finding in one sentence, its arithmetic included."""
        topic = self.topic.get(language, "")
        sentence = say(language, self.key, **self.facts)
        return f"{topic}: {sentence}" if topic else sentence


def finding(
    ledger: Ledger,
    rule_id: str,
    says: tuple[AuditAnswer, str],
    figures: tuple[str, ...],
    facts: Mapping[str, str],
    *,
    topic: Mapping[str, str] | None = None,
    leads: tuple[Lead, ...] = (),
) -> AuditFinding:
    """A finding that knows the pages and reports of its figures; `says` is answer and sentence."""
    rows = [ledger.figures[one] for one in figures]
    return AuditFinding(
        rule_id=rule_id,
        answer=says[0],
        figures=figures,
        key=says[1],
        facts=facts,
        topic=topic or {},
        pages=tuple(dict.fromkeys(row.where for row in rows)),
        reports=tuple(dict.fromkeys(name for row in rows for name in row.reports)),
        leads=leads,
    )


def shown(ledger: Ledger, node: Node) -> str:
    """A formula with the printed numbers in place of the ids."""
    return str(_filled(ledger, node))


def _filled(ledger: Ledger, node: Node) -> Node:
    if node.kind == "figure":
        return Node("figure", printed(ledger, node.text))
    if node.kind == "set":
        values = ", ".join(printed(ledger, one) for one in ledger.members(node.text))
        return Node("set", values)
    return Node(node.kind, node.text, tuple(_filled(ledger, part) for part in node.parts))


def printed(ledger: Ledger, figure_id: str) -> str:
    """A figure's number with its unit sign where one is needed to read it."""
    figure = ledger.figures[figure_id]
    if figure.value is None:
        return f"{figure_id} ?"
    return digits(figure.value, figure.precision) + ("%" if "%" in figure.unit else "")


def digits(value: Fraction, step: Fraction | None) -> str:
    """A printed value with as many decimals as were printed."""
    if step is None or step >= 1:
        return plain(value, 16)
    decimals = len(str(int(1 / step))) - 1
    return f"{float(value):.{decimals}f}"


def span(enclosure: Enclosure, unit: str) -> str:
    """An enclosure in seconds, bytes or yuan, shown in `unit`: `low..high unit`."""
    scale = UNITS[unit].scale if unit else Fraction(1)
    low, high = (plain(end / scale, 5) for end in (enclosure.low, enclosure.high))
    sign = "%" if "%" in unit else f" {unit}" if unit else ""
    return (low if low == high else f"{low}..{high}") + sign


def amount(value: Fraction, unit: str) -> str:
    """A size in seconds, bytes or yuan, shown in `unit`."""
    scale = UNITS[unit].scale if unit else Fraction(1)
    points = " points" if "%" in unit else f" {unit}" if unit else ""
    return plain(abs(value) / scale, 3) + points


def share(value: Fraction) -> str:
    """A share as per cent with two decimals."""
    return f"{float(value):.2%}"
