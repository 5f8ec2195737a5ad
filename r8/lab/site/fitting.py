"""Fitting what a TOML file holds to the types of its tables, key by key.

`msgspec.convert` ends at the first thing that does not fit. Here each key is converted by itself,
so that every fault of a file is found in one reading. What to write instead comes from the types.
"""

from __future__ import annotations

import difflib
import enum
import json
from collections import Counter
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from r8.lab.site.values import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T = TypeVar("T")
TableT = TypeVar("TableT", bound=Table)
# Where something stands: keys from the top of the file, and numbers of list entries.
Where = tuple[str | int, ...]

_UNFIT: Any = object()
_WORDS = {str: "text in quotes", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFault:
    """A fault, and where in the file it stands."""

    where: Where
    what: str
    next_step: str


@dataclass(slots=True, kw_only=True)
class Fitting:
    """One reading of a file: the faults found so far, and the names to be looked up."""

    renamed: Mapping[tuple[str, ...], str]  # table and key of an older schema: what to write now
    faults: list[PlacedFault] = field(default_factory=list)
    names: list[tuple[Where, str, str]] = field(default_factory=list)  # and the table they are of

    def add(self, where: Where, what: str, next_step: str) -> None:
        """Note a fault."""
        self.faults.append(PlacedFault(where=where, what=what, next_step=next_step))

    def file(self, raw: Mapping[str, Any], kind: type[TableT], blanks: Mapping[str, Any]) -> TableT:
        """The whole file as its record; `blanks` stand in for required keys that do not fit.

        Entries of its lists and tables that do not fit are left out, so that the others can still
        be compared with each other.
        """
        fitted = self._keys(raw, kind, ())
        whole = {key: value for key, value in fitted.items() if value is not _UNFIT}
        return kind(**{key: blanks[key] for key in fitted.keys() & blanks.keys()} | whole)

    def _table(self, raw: Mapping[str, Any], kind: type[Table], where: Where) -> Any:
        fitted = self._keys(raw, kind, where)
        if any(value is _UNFIT for value in fitted.values()):
            return _UNFIT
        made = kind(**fitted)
        for inside, what, next_step in made.faults():
            self.add((*where, *inside.split(".")), what, next_step)
        return made

    def _keys(self, raw: Mapping[str, Any], kind: type[Table], where: Where) -> dict[str, Any]:
        """Every key of a table; those that are missing or do not fit as `_UNFIT`."""
        known = {one.name: one for one in msgspec.structs.fields(kind)}
        for key in raw:
            if key not in known:
                step = self._renamed((*where, key)) or nearest(key, known)
                self.add((*where, key), "is no key of this table", step)
        fitted: dict[str, Any] = {}
        for key, one in known.items():
            if key in raw:
                fitted[key] = self._fit(raw[key], one.type, (*where, key))
            elif one.required:
                fitted[key] = _UNFIT
                self.add((*where, key), "is missing", f"add {key}: {_wanted(one.type)}")
        return fitted

    def _fit(self, value: Any, kind: Any, where: Where) -> Any:
        """A value as its type has it; `_UNFIT`, and noted, when it does not fit."""
        bare, metas = _bare(kind)
        origin, inner = get_origin(bare), get_args(bare)
        if isinstance(bare, type) and issubclass(bare, Table) and isinstance(value, dict):
            return self._table(value, bare, where)
        if origin is dict and isinstance(value, dict):
            keys = [self._fit(key, inner[0], (*where, key)) for key in value]
            parts = [self._fit(one, inner[1], (*where, key)) for key, one in value.items()]
            pairs = zip(keys, parts, strict=True)
            return _whole(where, dict(one for one in pairs if _UNFIT not in one), len(value))
        if origin is tuple and inner[-1] is ... and isinstance(value, list):
            parts = [self._fit(one, inner[0], (*where, n)) for n, one in enumerate(value)]
            if not value and any(meta.min_length for meta in metas):
                self.add(where, "is empty", "give at least one")
                return _UNFIT
            self._twins(value, metas, where)
            return _whole(where, tuple(one for one in parts if one is not _UNFIT), len(value))
        return self._leaf(value, kind, metas, where)

    def _twins(self, value: list[Any], metas: list[msgspec.Meta], where: Where) -> None:
        """What a list names twice, and must not."""
        tables = [one["name"] for one in value if isinstance(one, dict) and "name" in one]
        once = any((meta.extra or {}).get("once") for meta in metas)
        for name, count in Counter(map(str, value if once else tables)).items():
            if count > 1:
                self.add(where, f"names '{name}' twice", "name each once")

    def _leaf(self, value: Any, kind: Any, metas: list[msgspec.Meta], where: Where) -> Any:
        try:
            fitted = msgspec.convert(value, kind)
        except msgspec.ValidationError:
            step = self._renamed(where) or _instead(value, kind, str(where[-1]))
            self.add(where, f"{_toml(value)} is not {_wanted(kind)}", step)
            return _UNFIT
        tables = [(meta.extra or {}).get("names") for meta in metas]
        self.names += [(where, str(value), str(table)) for table in tables if table]
        return fitted

    def _renamed(self, where: Where) -> str | None:
        """What to write instead of a key of an older schema."""
        if len(where) > len(("arms", "NAME", "key")):
            return None  # further down every key is of this schema
        return self.renamed.get((str(where[0]), str(where[-1]))[: len(where)])


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"write {close[0]}" if close else f"use one of: {', '.join(names) or 'none yet'}"


def _bare(kind: Any) -> tuple[Any, list[msgspec.Meta]]:
    """A type without `Annotated` and `| None`, and what was said of it there."""
    metas: list[msgspec.Meta] = []
    while True:
        args = get_args(kind)
        some = [one for one in args if one is not NoneType]
        if get_origin(kind) is Annotated:
            metas += [one for one in args[1:] if isinstance(one, msgspec.Meta)]
            kind = args[0]
        elif len(some) == 1 and len(args) > 1 and NoneType in args:
            kind = some[0]
        else:
            return kind, metas


def _whole(where: Where, made: T, count: int) -> T:
    """All of a list or table, or nothing of it; of those at the top of the file, what fits."""
    return made if len(made) == count or len(where) == 1 else _UNFIT  # type: ignore[arg-type]


def _choices(kind: Any) -> list[str]:
    """The words a value may be; empty where it is no choice among words."""
    bare, _ = _bare(kind)
    if get_origin(bare) is Literal:
        return [one for one in get_args(bare) if isinstance(one, str)]
    if isinstance(bare, type) and issubclass(bare, enum.Enum):
        return [str(one.value) for one in bare]
    return []


def _wanted(kind: Any) -> str:
    """What a value of this type is, in words."""
    bare, metas = _bare(kind)
    said = [meta.description for meta in metas if meta.description]
    if said:
        return said[0]
    if known := _choices(kind):
        return f"one of {', '.join(map(_toml, known))}"
    if get_origin(bare) is tuple:
        return "a list: [...]"
    if get_origin(bare) is dict or (isinstance(bare, type) and issubclass(bare, Table)):
        return "a table"
    return _WORDS.get(bare, "a number, text, true or false")


def _instead(value: Any, kind: Any, key: str) -> str:
    """The value in its right type where only that is wrong; else what is wanted."""
    try:
        return f"write {key} = {_toml(msgspec.convert(value, kind, strict=False))}"
    except msgspec.ValidationError:
        if isinstance(value, str) and (known := _choices(kind)):
            close = difflib.get_close_matches(value, known, n=1)
            if close:
                return f"write {key} = {_toml(close[0])}"
        examples = [str(one) for meta in _bare(kind)[1] for one in meta.examples or ()]
        return f"write {_wanted(kind)}{''.join(f': {key} = {_toml(one)}' for one in examples)}"


def _toml(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)
