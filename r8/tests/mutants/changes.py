"""Every small fault that can be put into a file: Python by cosmic-ray's operators, SQL by ours."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COMPARED = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")
# Operators whose mutants are mostly faults a person makes: no shifts, no identity for equality.
PYTHON_OPERATORS = (
    *("NumberReplacer", "AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ZeroIterationForLoop"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ReplaceUnaryOperator_Delete_Not"),
    *("ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is"),
    *("ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add"),
    *("ReplaceBinaryOperator_Mul_Div", "ReplaceBinaryOperator_Div_Mul"),
    *(
        f"ReplaceComparisonOperator_{one}_{other}"
        for one in _COMPARED
        for other in _COMPARED
        if one != other
    ),
)
# What a word or sign of SQL becomes; numbers become one more and one less.
SQL_CHANGES = {
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "=": ("<>",),
    "<>": ("=",),
    "+": ("-",),
    "-": ("+",),
    "*": ("/",),
    "/": ("*",),
    "//": ("*",),
    "and": ("OR",),
    "or": ("AND",),
    "min": ("max",),
    "max": ("min",),
    "least": ("greatest",),
    "greatest": ("least",),
    "arg_min": ("arg_max",),
    "arg_max": ("arg_min",),
    "asc": ("DESC",),
    "desc": ("ASC",),
    "left": ("INNER",),
}
# Skipped: comments, texts, and what would be no SQL at all, which any test notices.
_SQL_TOKEN = re.compile(
    r"(?P<skip>--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|CREATE OR REPLACE|^\.read[^\n]*)"
    r"|(?P<number>(?<![\w.])\d+(?:\.\d+)?(?![\w.]))"
    r"|(?P<sign><=|>=|<>|->|::|:=|//|[<>=+*/-])|(?P<word>[A-Za-z_]\w*)",
    re.MULTILINE,
)
# A star that is no product: a list of all columns, or the argument of count.
_ALL_COLUMNS = re.compile(r"(?:SELECT\s+(?:DISTINCT\s+)?|[.(,]\s*)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One file with one fault; `was` and `now` are the lines that differ."""

    path: str  # below the checkout
    line: int
    was: str
    now: str
    text: str  # the whole file as changed

    @property
    def name(self) -> str:
        """What a list of survivors prints."""
        return f"{self.path}:{self.line}: `{self.was}` -> `{self.now}`"

    @property
    def change(self) -> str:
        """The name without the line's number, which moves."""
        return f"{self.path}: `{self.was}` -> `{self.now}`"


def mutants(root: Path, path: str) -> list[Mutant]:
    """Every mutant of one file, none twice, in the order of its lines."""
    source = (root / path).read_text(encoding="utf-8")
    texts = _sql_texts(source) if path.endswith(".sql") else _python_texts(source)
    found: dict[str, Mutant] = {}
    for text in texts:
        if text not in found and (mutant := _mutant(path, source, text)) is not None:
            found[text] = mutant
    return sorted(found.values(), key=lambda one: (one.line, one.now))


def replaced(root: Path, path: str, was: str, now: str) -> Mutant:
    """The mutant that a row of `known.toml` names.

    Raises:
        ValueError: the file does not hold `was` exactly once.

    """
    source = (root / path).read_text(encoding="utf-8")
    if source.count(was) != 1:
        raise ValueError(f"{path} holds {source.count(was)} times what is to be changed: {was}")
    line = source[: source.index(was)].count("\n") + 1
    return Mutant(path=path, line=line, was=was, now=now, text=source.replace(was, now))


def _mutant(path: str, source: str, text: str) -> Mutant | None:
    pairs = zip(source.splitlines(), text.splitlines(), strict=False)
    for line, (was, now) in enumerate(pairs, 1):
        if was != now:
            # What only a type checker reads, and how a record is declared, changes no answer.
            if "TYPE_CHECKING" in was or was.startswith("@dataclass("):
                return None
            # The star of keyword-only parameters is no product.
            if was.lstrip().startswith("def ") and now == was.replace("*, ", "/, "):
                return None
            return Mutant(path=path, line=line, was=was.strip(), now=now.strip(), text=text)
    return None


def _python_texts(source: str) -> Iterator[str]:
    for name in PYTHON_OPERATORS:
        operator = get_operator(f"core/{name}")()
        occurrence = 0
        while (text := mutate_code(source, operator, occurrence)) is not None:
            yield text
            occurrence += 1
    # cosmic-ray adds 1 to a number: no near miss for a threshold of 0.05.
    lines = source.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NUMBER and "." in token.string:
            row, (begin, end) = token.start[0] - 1, (token.start[1], token.end[1])
            for number in _near(token.string):
                changed = lines[row][:begin] + number + lines[row][end:]
                yield "".join([*lines[:row], changed, *lines[row + 1 :]])


def _near(number: str) -> tuple[str, str]:
    return f"{float(number) * 2:g}", f"{float(number) / 2:g}"


def _sql_texts(source: str) -> Iterator[str]:
    for token in _SQL_TOKEN.finditer(source):
        for changed in _sql_changes(token, source):
            yield source[: token.start()] + changed + source[token.end() :]


def _sql_changes(token: re.Match[str], source: str) -> tuple[str, ...]:
    if token["skip"]:
        return ()
    if token["number"]:
        number = token["number"]
        if "." in number:
            return _near(number)
        return (str(int(number) + 1), str(max(0, int(number) - 1)))
    if token[0] == "*" and _ALL_COLUMNS.search(source[: token.start()]):
        return ()
    return SQL_CHANGES.get(token[0].lower(), ())
