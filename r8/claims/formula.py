"""The formula language of the ledger.

    expression = term { (" + " | " - ") term }
    term       = factor { (" * " | " / ") factor }
    factor     = number | figure id | "(" expression ")" | function "(" list ")"
    function   = "min" | "max" | "mean"
    list       = one of them or more: expressions, or sets of figures

Operators stand between blanks, because figure ids contain hyphens. A set is a figure id in which
`*` stands for one part between dots and `{a,b}` for either word: `r3.{pool,local-nvme}.*.tpot_p50`.
It stands for every figure of the ledger that fits, and must fit at least one. The words
`min of SET` and `max of SET` are read as `min(SET)` and `max(SET)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from r8.claims.arithmetic import PLAIN, Enclosure, Quantity, UndefinedError, extreme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FUNCTIONS = ("min", "max", "mean")
_TOKEN = re.compile(r"[()]|,|(?:\{[^{}]*\}|[^\s(),{}])+|\S")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_NAME = re.compile(r"[A-Za-z](?:\{[^{}]*\}|[\w.*-])*")
_WORDS = re.compile(r"^(min|max) of (\S+)$")


class FormulaError(ValueError):
    """The text is no formula, or means nothing over this ledger."""


@dataclass(frozen=True, slots=True)
class Node:
    """One step of a formula: an operator, a function, a number, a figure or a set of figures."""

    kind: str  # "+", "-", "*", "/", a function's name, "number", "figure" or "set"
    text: str = ""
    parts: tuple[Node, ...] = ()

    def __str__(self) -> str:
        """The canonical text, which parses to the same node."""
        if self.kind in {"number", "figure", "set"}:
            return self.text
        if self.kind in FUNCTIONS:
            return f"{self.kind}({', '.join(map(str, self.parts))})"
        left, right = self.parts
        tight = self.kind in "*/"
        shown = f"({left})" if tight and left.kind in {"+", "-"} else str(left)
        wrap = right.kind in {"+", "-"} or (tight and right.kind in {"*", "/"})
        return f"{shown} {self.kind} " + (f"({right})" if wrap else str(right))


def parse(text: str) -> Node:
    """The formula as a tree; raises FormulaError naming what does not fit."""
    words = _WORDS.match(text.strip())
    if words:
        text = f"{words[1]}({words[2]})"
    tokens = _TOKEN.findall(text)
    node, rest = _expression(tokens, 0)
    if rest != len(tokens):
        raise FormulaError(f"{tokens[rest]!r} does not fit in {text!r}")
    return node


def names(node: Node) -> Iterator[str]:
    """Figure ids and sets of a formula, from left to right."""
    if node.kind in {"figure", "set"}:
        yield node.text
    for part in node.parts:
        yield from names(part)


def matches(pattern: str, ids: Iterable[str]) -> list[str]:
    """The ids a set stands for, in the order given."""
    regex = _pattern(pattern)
    return [one for one in ids if regex.fullmatch(one)]


def bindings(pattern: str, figure_id: str) -> list[str]:
    """What each `*` and `{}` of the set stands for in one id that fits it."""
    found = _pattern(pattern).fullmatch(figure_id)
    return list(found.groups()) if found else []


def _pattern(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*|\{[^{}]*\})", pattern)
    regex = "".join(
        r"([^.]+)"
        if part == "*"
        else "(" + "|".join(map(re.escape, part[1:-1].split(","))) + ")"
        if part.startswith("{")
        else re.escape(part)
        for part in parts
    )
    return re.compile(regex)


def evaluate(
    node: Node, value_of: Callable[[str], Quantity], members_of: Callable[[str], list[str]]
) -> Quantity:
    """The formula's value; `value_of` gives a figure, `members_of` the ids of a set.

    Raises UndefinedError (mixed units, a division by what may be zero) and whatever the two
    functions raise.
    """
    if node.kind == "number":
        return Quantity(Enclosure.exact(Fraction(node.text)), PLAIN)
    if node.kind == "figure":
        return value_of(node.text)
    if node.kind in FUNCTIONS:
        quantities: list[Quantity] = []
        for part in node.parts:
            if part.kind == "set":
                quantities += [value_of(one) for one in members_of(part.text)]
            else:
                quantities.append(evaluate(part, value_of, members_of))
        return extreme(node.kind, quantities)
    left, right = (evaluate(part, value_of, members_of) for part in node.parts)
    try:
        return _OPERATIONS[node.kind](left, right)
    except UndefinedError as error:
        raise UndefinedError(f"{error} in {node}") from error


_OPERATIONS: dict[str, Callable[[Quantity, Quantity], Quantity]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
}


def _expression(tokens: list[str], at: int) -> tuple[Node, int]:
    node, at = _term(tokens, at)
    while at < len(tokens) and tokens[at] in {"+", "-"}:
        right, after = _term(tokens, at + 1)
        node, at = Node(tokens[at], parts=(node, right)), after
    return node, at


def _term(tokens: list[str], at: int) -> tuple[Node, int]:
    node, at = _factor(tokens, at)
    while at < len(tokens) and tokens[at] in {"*", "/"}:
        right, after = _factor(tokens, at + 1)
        node, at = Node(tokens[at], parts=(node, right)), after
    return node, at


def _factor(tokens: list[str], at: int) -> tuple[Node, int]:
    if at >= len(tokens):
        raise FormulaError("the formula ends where a figure is expected")
    head = tokens[at]
    if head == "(":
        node, at = _expression(tokens, at + 1)
        return node, _expect(tokens, at, ")")
    if head in FUNCTIONS and tokens[at + 1 : at + 2] == ["("]:
        return _call(tokens, at)
    if _NUMBER.fullmatch(head):
        return Node("number", head), at + 1
    if not _NAME.fullmatch(head):
        raise FormulaError(f"{head!r} is no figure id, number or function")
    if "*" in head or "{" in head:
        raise FormulaError(f"the set {head} stands outside {', '.join(FUNCTIONS)}")
    return Node("figure", head), at + 1


def _call(tokens: list[str], at: int) -> tuple[Node, int]:
    name, at = tokens[at], at + 2
    parts: list[Node] = []
    while True:
        ahead = "".join(tokens[at : at + 1])
        if _NAME.fullmatch(ahead) and ("*" in ahead or "{" in ahead):
            node, at = Node("set", ahead), at + 1
        else:
            node, at = _expression(tokens, at)
        parts.append(node)
        if tokens[at : at + 1] != [","]:
            return Node(name, parts=tuple(parts)), _expect(tokens, at, ")")
        at += 1


def _expect(tokens: list[str], at: int, wanted: str) -> int:
    if tokens[at : at + 1] != [wanted]:
        found = tokens[at] if at < len(tokens) else "its end"
        raise FormulaError(f"{wanted!r} is missing before {found}")
    return at + 1
