"""Nothing outside `data/queries` sums bytes or subtracts instants: one definition a quantity.

The judge's modules are read as they stand, their SQL texts too. What the walk takes for a sum or a
difference of such a quantity must move into a view; counting is no sum.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parents[2]
NOT_THE_JUDGE = {"lab", "scenarios", "tests"}
QUANTITY = re.compile(r"(_ns|_bytes)s?$")
# Modules that may sum, and why it is no quantity of a run that they sum.
MAY_SUM = {
    "audit/checklist.py": "printed figures against their printed total",
    "claims/arithmetic.py": "printed figures, as intervals of fractions",
    "verdict/intervals.py": "logarithms of ratios over blocks",
    "verdict/power.py": "logarithms of ratios over blocks, measured and drawn",
    "report/charts/runs.py": "the mean of one number a block",
    "report/transfer.py": "the mean of one number a block",
    "evidence/footer_claims.py": "how many places of a column are empty, against the footer",
    "evidence/log_clock.py": "the instant of a log line by the clock that stamped it",
    "evidence/table_check.py": "what a file takes to read, against a budget",
    "seal/archive.py": "what an archive has given, against a budget",
    "seal/contents.py": "how many files and columns were looked at",
    "seal/leftovers.py": "the entropy of a word",
}
MAY_SUBTRACT = {
    "evidence/journal.py": "when to sync, while a run is recorded; nothing recorded comes of it",
    "evidence/log_clock.py": "the instant of a log line by the clock that stamped it",
    "seal/archive.py": "what is left of a budget, and of an archive",
}
IN_SQL = (
    re.compile(r"\b(?:sum|avg)\s*\("),
    re.compile(r"_(?:ns|bytes)\b\)*\s+[-]\s"),
    re.compile(r"\s[-]\s+(?:\w+\s*\()*(?:\$|\w+\.)*\w+_(?:ns|bytes)\b"),
)


def named(node: ast.AST) -> str:
    """What an operand is called: a name, an attribute, a key, what a call gives."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=key)):
            return str(key)
        case ast.Call(func=function):
            return named(function)
        case ast.BinOp(left=left, right=right):
            return named(left) or named(right)
        case _:
            return ""


def counts(node: ast.Call) -> bool:
    """Whether a sum is one of answers, yes or no."""
    if not node.args or not isinstance(node.args[0], ast.GeneratorExp):
        return False
    one = node.args[0].elt
    match one:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.BoolOp(op=ast.And()):
            return True
        case _:
            return named(one) == "bool"


def found_in(source: str) -> Iterator[tuple[str, int]]:
    """Sums and differences of bytes and instants in a module, with the line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.expr | ast.AugAssign) and (what := _found(node)):
            yield what, node.lineno


def _found(node: ast.expr | ast.AugAssign) -> str:
    match node:
        case ast.BinOp(op=ast.Sub(), left=left, right=right) if quantity(left) or quantity(right):
            return "subtracts"
        case ast.BinOp(op=ast.Add(), left=left, right=right) if quantity(left) and quantity(right):
            return "sums"
        case ast.AugAssign(op=ast.Add() | ast.Sub(), target=target) if quantity(target):
            return "sums"
        case ast.Call(func=function) if named(function) in {"sum", "fsum", "fmean", "mean"}:
            return "" if counts(node) else "sums"
        case ast.Constant(value=str(text)) if re.search(r"\b(?:SELECT|FROM)\s", text):
            return "asks SQL to" if any(one.search(text) for one in IN_SQL) else ""
        case _:
            return ""


def quantity(node: ast.AST) -> bool:
    """Whether an operand is called like bytes or an instant."""
    return QUANTITY.search(named(node)) is not None


JUDGE = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if not NOT_THE_JUDGE & set(path.relative_to(PACKAGE).parts)
]


def test_nothing_outside_the_queries_sums_bytes_or_subtracts_instants() -> None:
    assert len(JUDGE) > 80
    found = []
    for path in JUDGE:
        name = path.relative_to(PACKAGE).as_posix()
        for what, line in found_in(path.read_text(encoding="utf-8")):
            allowed = MAY_SUM if what == "sums" else MAY_SUBTRACT
            if what == "asks SQL to" or name not in allowed:
                found.append(f"{name}:{line} {what}")
    assert found == []


def test_every_exception_is_still_one() -> None:
    texts = {name: (PACKAGE / name).read_text(encoding="utf-8") for name in MAY_SUM}
    assert all("sums" in {what for what, _ in found_in(one)} for one in texts.values())
    for name in MAY_SUBTRACT:
        text = (PACKAGE / name).read_text(encoding="utf-8")
        assert "subtracts" in {what for what, _ in found_in(text)}


@pytest.mark.parametrize(
    "source",
    [
        "x = last_ns - first_ns",
        "x = row['end_ns'] - 5",
        "x = 5 - window.begin_ns",
        "x = max(0, known_bytes - backing)",
        "x = first_bytes + second_bytes",
        "total_bytes += size",
        "x = sum(sizes)",
        "x = sum(row['bytes'] or 0 for row in rows)",
        "x = math.fsum(sizes)",
        "x = 'SELECT sum(read_bytes) FROM reads'",
        "x = f'SELECT {a} FROM t WHERE end_ns - begin_ns > 5'",
        "x = 'SELECT max(w.end_ns) - w.begin_ns FROM t'",
        "x = 'SELECT a FROM t WHERE mono_ns BETWEEN $begin - $gap_ns AND 5'",
    ],
)
def test_what_the_walk_is_for_is_seen(source: str) -> None:
    assert list(found_in(source))


@pytest.mark.parametrize(
    "source",
    [
        "x = sum(one > limit for one in sizes)",
        "x = sum(not one for one in sizes)",
        "x = sum(bool(row[3]) for row in rows)",
        "x = n - n_known",
        "x = -(-size_bytes // segment_bytes)",
        "x = 'SELECT a FROM t -- of sum and of _ns, read_bytes'",
        "x = 'bytes_ns - what is no SQL'",
    ],
)
def test_what_is_no_sum_and_no_difference_is_left_alone(source: str) -> None:
    assert list(found_in(source)) == []
