"""What a rule of the audit says about figures: a check, the figures, and where they stand.

Answers in the audit's own words: held is FOLLOWS (the printed numbers allow it), refuted is OFF (no
value that prints like them does), unknown is UNDETERMINED (what it needs was not published, or the
rounding or the denominator decides). Numbers of a finding are facts: `x_low` and `x_high` are the
ends of what x can be, `x_unit` their unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from r8.claims.formula import Node
from r8.claims.printed import UNITS, plain

if TYPE_CHECKING:
    from fractions import Fraction

    from r8.claims.arithmetic import Enclosure
    from r8.claims.ledger import Ledger, Relation
    from r8.message import Answer, Check, Fact


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
    check: Check
    figures: tuple[str, ...]
    relation: Relation | None  # the one that asked for it; None: the rule applies by itself
    pages: tuple[str, ...]
    reports: tuple[str, ...]
    leads: tuple[Lead, ...] = ()

    @property
    def answer(self) -> Answer:
        """What the arithmetic came to."""
        return self.check.answer


def finding(
    ledger: Ledger,
    rule_id: str,
    check: Check,
    figures: tuple[str, ...],
    relation: Relation | None = None,
    *,
    leads: tuple[Lead, ...] = (),
) -> AuditFinding:
    """A finding that knows the pages and reports of its figures."""
    rows = [ledger.figures[one] for one in figures]
    return AuditFinding(
        rule_id=rule_id,
        check=check,
        figures=figures,
        relation=relation,
        pages=tuple(dict.fromkeys(row.where for row in rows)),
        reports=tuple(dict.fromkeys(name for row in rows for name in row.reports)),
        leads=leads,
    )


def size(value: Fraction, unit: str) -> float:
    """A value in seconds, bytes or yuan as a number of `unit`; "" is a plain number."""
    return float(value / UNITS[unit].scale if unit else value)


def ends(name: str, enclosure: Enclosure, unit: str) -> dict[str, Fact]:
    """Both ends of what `name` can be, as facts; from seconds, bytes or yuan to `unit`."""
    low, high = size(enclosure.low, unit), size(enclosure.high, unit)
    return {f"{name}_low": low, f"{name}_high": high, f"{name}_unit": unit}


def amount(name: str, value: Fraction, unit: str) -> dict[str, Fact]:
    """A size without its sign, as facts; from seconds, bytes or yuan to `unit`."""
    return {name: size(abs(value), unit), f"{name}_unit": unit}


def span(low: float, high: float, unit: str) -> str:
    """What a value can be, as an auditor writes it: `12.6..12.62 x`; one number where it is one."""
    texts = [plain(one, 5) for one in (low, high)]
    sign = "%" if "%" in unit else f" {unit}" if unit else ""
    return (texts[0] if texts[0] == texts[1] else "..".join(texts)) + sign


def span_of(enclosure: Enclosure, unit: str) -> str:
    """The span of an enclosure in seconds, bytes or yuan, shown in `unit`."""
    return span(size(enclosure.low, unit), size(enclosure.high, unit), unit)


def shown(ledger: Ledger, node: Node) -> str:
    """A formula with the printed numbers in place of the ids."""
    return str(_filled(ledger, node))


def _filled(ledger: Ledger, node: Node) -> Node:
    if node.kind == "figure":
        return Node("figure", printed(ledger, node.text))
    if node.kind == "set":
        return Node("set", ", ".join(printed(ledger, one) for one in ledger.members(node.text)))
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
