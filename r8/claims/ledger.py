"""The published figures as one checked whole: every number, what it stands on, what it stands for.

A ledger is refused as a whole when one row could not be audited: a unit R8 does not know, a printed
text that does not show the value, a formula over a figure that is not there, a cycle, mixed units.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from r8.claims.arithmetic import Enclosure, Quantity
from r8.claims.formula import FormulaError, Node, evaluate, matches, names
from r8.claims.printed_units import UNITS
from r8.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from r8.model import Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One published number, or one that a page builds on and does not publish (`value` None)."""

    figure_id: str
    reports: tuple[str, ...]
    where: str
    platform: str
    scenario: str
    arm: str
    level: str
    metric: str
    statistic: str
    value: Fraction | None
    unit: str
    as_printed: str
    page_label: str
    basis: Basis
    formula: Node | None
    note: str
    printed: Enclosure | None  # in `unit`: all values that print like this
    precision: Fraction | None  # step of the last printed digit, in `unit`
    unit_base: int | None  # bytes of the unit's GB; None where the unit holds no bytes
    restates: str | None = None  # the figure this row prints again

    def quantity(self, *, with_base: bool = False) -> Quantity:
        """The enclosure in seconds, bytes and yuan; `with_base` uses the GB the figure needs."""
        if self.printed is None:
            raise UnpublishedError(self.figure_id)
        unit = UNITS[self.unit]
        scale = unit.scale
        if with_base and self.unit_base is not None:
            scale = scale * self.unit_base / 10**9
        return Quantity(self.printed.scaled(scale), unit.dimension)


class UnpublishedError(Exception):
    """A formula needs a figure that was not published; its id is the argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Something that figures must satisfy beyond their own formulas; see data/published/README."""

    kind: str
    figures: tuple[str, ...] = ()
    formulas: Mapping[str, Node] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    say: Mapping[str, str] = field(default_factory=dict)  # language -> what it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Figures by id, and the relations between them."""

    figures: Mapping[str, Figure]
    relations: tuple[Relation, ...] = ()
    where: str = "the ledger"

    def of(self, report: str | None) -> list[Figure]:
        """Figures of one report, or all; raises UsageError for a report nobody published."""
        if report is None:
            return list(self.figures.values())
        found = [one for one in self.figures.values() if report in one.reports]
        if not found:
            raise UsageError(
                f"no figure of report {report!r}",
                where=self.where,
                next_step=f"choose one of {', '.join(self.reports())}",
            )
        return found

    def reports(self) -> list[str]:
        """Every report that prints a figure, sorted."""
        return sorted({name for one in self.figures.values() for name in one.reports})

    def members(self, pattern: str) -> list[str]:
        """Ids a set or a plain id stands for; raises FormulaError when none."""
        found = matches(pattern, self.figures)
        if not found:
            raise FormulaError(f"no figure {pattern!r}")
        return found

    def value(self, node: Node, *, with_base: bool = False) -> Quantity:
        """A formula over the printed figures.

        Raises:
            UnpublishedError: an input was not published.

        """
        return evaluate(
            node, lambda name: self.figures[name].quantity(with_base=with_base), self.members
        )

    def inputs(self, node: Node) -> list[str]:
        """Ids of the figures a formula reads, each once, in order."""
        return list(dict.fromkeys(one for name in names(node) for one in self.members(name)))

    def leaves(self, figure_id: str) -> set[str]:
        """Every figure that a figure rests on, through all formulas; itself when it has none."""
        formula = self.figures[figure_id].formula
        if formula is None:
            return {figure_id}
        return {leaf for one in self.inputs(formula) for leaf in self.leaves(one)}


def bad_row(where: str, figure_id: str, what: str) -> UsageError:
    """One line about one row."""
    return UsageError(
        f"figure {figure_id}: {what}", where=where, next_step="correct the ledger and run it again"
    )


def bad_relation(where: str, kind: str, what: str) -> UsageError:
    """One line about one relation."""
    return UsageError(
        f"relation {kind}: {what}", where=where, next_step="correct the ledger and run it again"
    )
