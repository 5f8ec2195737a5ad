"""What the judge has to say, as data: messages of an id and facts, and checks that compare numbers.

No sentence is stored anywhere. A `Message` names an entry of the catalogues and the facts that fill
it; a `Check` adds what was measured and what it was held against. Text for people, in any language,
is a rendering of them; JSON holds them as they are.

Reasons in SQL and in Parquet are messages too, written in one line: see `spelled`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

# Integers of nanoseconds and bytes, shares as fractions; the name of a fact ends in its unit.
Fact = str | int | float | bool | None
Limit = Fact | tuple[Fact, ...]
Facts = Mapping[str, Fact]
# `within`: limit is (lowest, highest), both allowed. `in`: limit holds every allowed value.
# `known`: the quantity must have been measured at all. `n/a`: by the run's own plan there is
# nothing to compare.
Op = Literal["==", "!=", "<=", "<", ">=", ">", "within", "in", "known", "n/a"]

_ID = r"[A-Za-z][\w-]*"
_FACT = re.compile(r'(\w+)=("(?:[^"]|"")*"|[^\s"]+)')
_REASON = re.compile(rf"({_ID})((?: {_FACT.pattern})*)")
_WORDS: dict[str, Fact] = {"true": True, "false": False, "null": None}
_BARE = re.compile(r"[^\s\"=]+")


class Answer(StrEnum):
    """What a check or a rule found. `UNKNOWN` makes every claim INVALID, as `REFUTED` does.

    `NOT_APPLICABLE` is decided by what the run is, never by evidence that is missing: a run whose
    plan names no fabric link has nothing that a link could be exceeded by.
    """

    HELD = "held"
    REFUTED = "refuted"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An entry of the catalogues and the facts that fill it."""

    id: str
    facts: Facts = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse an id that no catalogue could hold."""
        if not re.fullmatch(_ID, self.id):
            raise ValueError(f"a message id is a word of letters, digits, - and _: {self.id!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison: what was measured, against what, and the answer that follows.

    `answer` is computed from `measured`, `op` and `limit` and cannot be given. Evidence that is
    missing is `measured=None`; see `missing` and `not_applicable` for the two checks that compare
    nothing.
    """

    quantity: str  # stable id of what is measured, e.g. "device_read_bytes / engine_hit_bytes"
    measured: Fact
    op: Op
    limit: Limit
    unit: str = ""  # of `measured` and `limit`: "bytes", "ns", "ratio", "share", "tokens", ...
    message: str  # its entry in the catalogues
    facts: Facts = field(default_factory=dict)
    answer: Answer = field(init=False)

    def __post_init__(self) -> None:
        """Compute the answer.

        Raises:
            TypeError: words were to be ordered, or a range has other than two ends.

        """
        object.__setattr__(self, "answer", answer_of(self.measured, self.op, self.limit))

    def __str__(self) -> str:
        """The comparison in symbols, the same in every language; for people see the catalogues."""
        if self.measured is None:
            return f"{self.quantity}: {self.answer} ({self.message})"
        ends = self.limit if isinstance(self.limit, tuple) else (self.limit,)
        return f"{self.quantity}: {self.measured} {self.op} {', '.join(map(str, ends))}"


def answer_of(measured: Fact, op: Op, limit: Limit) -> Answer:
    """What a comparison says; the only place where an answer is made.

    `UNKNOWN` when either side is missing (`None`, or not a number: NaN). Limits themselves are
    allowed by `<=`, `>=` and `within`, and refused by `<` and `>`.

    Raises:
        TypeError: words were to be ordered, or a range has other than two ends.

    """
    if op == "n/a":
        return Answer.NOT_APPLICABLE
    if _absent(measured) or (op != "known" and _absent(limit)):
        return Answer.UNKNOWN
    return Answer.HELD if op == "known" or _holds(measured, op, limit) else Answer.REFUTED


def _absent(value: Limit) -> bool:
    if isinstance(value, tuple):
        return any(_absent(one) for one in value)
    return value is None or (isinstance(value, float) and math.isnan(value))


def _holds(measured: Fact, op: Op, limit: Limit) -> bool:
    if op in {"==", "!="}:
        # True is not 1: a switch that should be off is no count of 0.
        same = measured == limit and isinstance(measured, bool) == isinstance(limit, bool)
        return same == (op == "==")
    if op == "in":
        return measured in _several(limit)
    number = _number(measured)
    if op == "within":
        low, high = (_number(one) for one in _several(limit))
        return low <= number <= high
    bound = _number(limit)
    return {
        "<=": number <= bound,
        "<": number < bound,
        ">=": number >= bound,
        ">": number > bound,
    }[op]


def _several(limit: Limit) -> tuple[Fact, ...]:
    if not isinstance(limit, tuple):
        raise TypeError(f"not a tuple of limits: {limit!r}")
    return limit


def _number(value: Limit) -> int | float:
    if not isinstance(value, int | float):
        raise TypeError(f"not a number to compare: {value!r}")
    return value


def answer_of_all(checks: Iterable[Check]) -> Answer:
    """The answer of several checks together: one that fails refutes, then one that is unknown.

    Held when every check is that applies; unknown where there is no check at all.
    """
    answers = {check.answer for check in checks}
    for answer in (Answer.REFUTED, Answer.UNKNOWN, Answer.HELD, Answer.NOT_APPLICABLE):
        if answer in answers:
            return answer
    return Answer.UNKNOWN


def compared(
    quantity: str,
    comparison: tuple[Fact, Op, Limit],
    message: str,
    *,
    unit: str = "",
    facts: Facts | None = None,
) -> Check:
    """A check of what was measured: `(measured, op, limit)`; raises TypeError as `Check`."""
    measured, op, limit = comparison
    return Check(
        quantity=quantity,
        measured=measured,
        op=op,
        limit=limit,
        unit=unit,
        message=message,
        facts=facts or {},
    )


def missing(quantity: str, message: str, **facts: Fact) -> Check:
    """A check whose evidence is not in the run directory: `UNKNOWN`."""
    return Check(
        quantity=quantity, measured=None, op="known", limit=None, message=message, facts=facts
    )


def not_applicable(quantity: str, message: str, **facts: Fact) -> Check:
    """A check this run gives nothing to compare, decided by its plan, never by absence."""
    return Check(
        quantity=quantity, measured=None, op="n/a", limit=None, message=message, facts=facts
    )


def spelled(message: Message) -> str:
    """A message in one line, as `reason` columns hold it: `id key=value key="two words"`.

    Numbers, `true`, `false` and `null` stand bare; a text that is none of these and has no space,
    quote or `=` does as well. Inside quotes a quote is doubled. `parse_reason` is the inverse.
    """
    return " ".join([message.id, *(f"{key}={_spelled(one)}" for key, one in message.facts.items())])


def _spelled(value: Fact) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if not isinstance(value, str):
        return repr(value)
    bare = _BARE.fullmatch(value) is not None and isinstance(_value(value), str)
    return value if bare else '"' + value.replace('"', '""') + '"'


def parse_reason(text: str) -> Message:
    """The message that `spelled`, or a query of `data/queries`, wrote in one line.

    Raises:
        ValueError: the text is not in the grammar of `spelled`.

    """
    found = _REASON.fullmatch(text)
    if found is None:
        raise ValueError(f"not a reason of the form `id key=value`: {text!r}")
    return Message(id=found[1], facts={one[1]: _value(one[2]) for one in _FACT.finditer(found[2])})


def _value(text: str) -> Fact:
    if text.startswith('"'):
        return text[1:-1].replace('""', '"')
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
