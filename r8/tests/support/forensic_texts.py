"""Every text a forensic check can print, read out of the rules' own source: no list to forget."""

from __future__ import annotations

import ast
import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FORENSICS = Path(__file__).resolve().parents[2] / "forensics"
# Stands for whatever a run fills in: a number, which a name may be as well.
SAMPLE = "7"
# Calls that make a check from two texts: what was seen, and what it means when it did not hold.
MAKERS = ("missing", "not_applicable")
KEYWORDS = ("arithmetic", "otherwise", "detail")


def printed_texts() -> dict[str, str]:
    """Text to where it is made; `SAMPLE` stands for each field."""
    return {
        text: f"{path.name}:{node.lineno}"
        for path in sorted(FORENSICS.glob("*.py"))
        for text, node in texts_of(path.read_text())
    }


def texts_of(source: str) -> Iterator[tuple[str, ast.expr]]:
    """Texts that the checks of one module's source print, and the expression of each."""
    functions = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)]
    helpers = _helpers(functions)
    for function in functions:
        local = helpers | _assigned(function)
        for call in ast.walk(function):
            if isinstance(call, ast.Call):
                for node in _text_nodes(call):
                    texts = _values(node, local)
                    yield from ((text, node) for text in texts if re.search("[A-Za-z]{2}", text))


def _helpers(functions: list[ast.FunctionDef]) -> Locals:
    """Functions of the module that return text, under their name and brackets."""
    found: Locals = {}
    for function in functions:
        if isinstance(function.returns, ast.Name) and function.returns.id == "str":
            local = _assigned(function)
            found[f"{function.name}()"] = [
                (False, ast.Constant(text))
                for node in ast.walk(function)
                if isinstance(node, ast.Return) and node.value is not None
                for text in _values(node.value, local)
            ]
    return found


def _text_nodes(call: ast.Call) -> list[ast.expr]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name in MAKERS:
        return call.args[:2]
    if name in {"Check", "Finding"}:
        return [one.value for one in call.keywords if one.arg in KEYWORDS]
    return []


Locals = dict[str, list[tuple[bool, ast.expr]]]


def _assigned(function: ast.FunctionDef) -> Locals:
    """What names are set to (False) and what is appended to them (True)."""
    found: Locals = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append((False, node.value))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append((True, node.value))
    return found


def _values(node: ast.expr, local: Locals) -> set[str]:  # noqa: C901, PLR0911 - one form a line
    """Every text an expression can be, as far as the source says."""
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.JoinedStr(values=parts):
            return _joined([_values(part, local) for part in parts])
        case ast.FormattedValue(value=value):
            return _values(value, local)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([_values(left, local), _values(right, local)])
        case ast.IfExp(body=body, orelse=orelse):
            return _values(body, local) | _values(orelse, local)
        case ast.BoolOp(op=ast.Or(), values=values):
            return set().union(*(_values(one, local) for one in values))
        case ast.Call(func=ast.Attribute(value=value, attr="lower")):
            return {text.lower() for text in _values(value, local)}
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str(between)), attr="join"), args=[several]
        ):
            return _several(several, between, local)
        case ast.Call(func=ast.Name(id=helper)) if f"{helper}()" in local:
            return set().union(*(_values(one, local) for _, one in local[f"{helper}()"]))
        case ast.Name(id=name) if name in local:
            return _named(local[name], {key: local[key] for key in local if key != name})
        case _:
            return {SAMPLE}


def _several(node: ast.expr, between: str, local: Locals) -> set[str]:
    """One or two items of a join; a change has two sides always."""
    items = {SAMPLE}
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        items = _values(node.elt, local)
    two = {f"{one}{between}{one}" for one in items}
    return two if between == " -> " else items | two


def _named(assigned: list[tuple[bool, ast.expr]], local: Locals) -> set[str]:
    bases = [one for more, one in assigned if not more]
    if not bases or not any(isinstance(one, _TEXTS) for one in bases):
        return {SAMPLE}  # a number with a name
    found = set().union(*(_values(one, local) for one in bases))
    ends = [_values(one, local) | {""} for more, one in assigned if more]
    return _joined([found, *ends])


_TEXTS = (ast.Constant, ast.JoinedStr, ast.IfExp, ast.BinOp, ast.BoolOp, ast.Call)


def _joined(parts: Iterable[set[str]]) -> set[str]:
    return {"".join(one) for one in product(*parts)}
