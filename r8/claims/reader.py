"""Claims as data: TOML files beside the published figures, read strictly.

A file holds `format`, a `[common]` table whose keys every claim inherits, and `[[claim]]` tables
whose keys are fields of `r8.model.Claim`, but `arms = [numerator, denominator]`: names of arms, or
roles as `role:array`.

A published table names `figures`, as sets of the ledger, and is one claim for each of them. What
the ledger knows of a figure (number, unit, GB, scenario, level, arms, metric) need not be said and
its number and unit cannot be, so that a claim cannot say something else than the page. A number
that no figure prints names the `figure_ids` and the `derivation` it follows from, and is checked.

In a file of R8's own claims, `levels` repeats every table that has no level of its own, and its
`claim_id` says where the level stands: `rehearsal.{level}.prediction`. An unknown or missing key, a
wrong type, an unknown figure is an error.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from r8.claims.document import bad_document, read_document
from r8.claims.formula import FormulaError
from r8.claims.interpretation import FASTER, INTERPRETATIONS, derived_fault
from r8.claims.ledger import FIGURES, load_ledger
from r8.claims.measured import TOLERANCE, Measure, measure_of
from r8.claims.reports import load_reports
from r8.model import Claim
from r8.resources import published_path
from r8.roles import CONTRACTS, ROLE_PREFIX, Role

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from r8.claims.ledger import Figure, Ledger
    from r8.claims.reports import Reports

FORMAT = 2
# Sources of claims that are R8's own; everything else cites a report.
OWN_SOURCES = frozenset({"rehearsal", "reference"})
# A published number is judged after five blocks, and once more at ten: two looks share the error
# rate. R8's own claims are looked at once, after the three blocks of a rehearsal.
MIN_BLOCKS, LOOKS = 5, 2
_PUBLISHED: dict[str, Any] = {
    "tolerance": TOLERANCE,
    "min_blocks": MIN_BLOCKS,
    "looks": LOOKS,
    "comparability": {},
}
_OWN: dict[str, Any] = {
    "low": 1.0,
    "tolerance": 0.05,
    "min_blocks": 3,
    "looks": 1,
    "figure_ids": [],
    "comparability": {},
}
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(
        ("claim_id", "source", "kind", "scenario", "metric", "statistic", "level", "unit"), str
    ),
    **dict.fromkeys(("as_printed", "interpretation", "derivation"), str),
    **dict.fromkeys(("low", "high", "tolerance"), (int, float)),
    **dict.fromkeys(("min_blocks", "looks"), int),
    **dict.fromkeys(("arms", "figure_ids", "figures"), list),
    "comparability": dict,
}
# Fields a claim may go without.
_OPTIONAL = {one.name for one in fields(Claim) if one.default is not MISSING} | {
    *("high", "denominator_arm"),
}


def is_published(claim: Claim) -> bool:
    """Whether the claim cites a report; R8's own claims cite none."""
    return claim.source not in OWN_SOURCES


def load_claims(scenario: str | None = None) -> tuple[Claim, ...]:
    """Claims that R8 carries, of one scenario or of all; published ones first, in file order.

    Raises:
        UsageError: a shipped file is not well formed.

    """
    return tuple(one for one in _shipped() if scenario in {None, one.scenario})


@cache
def _shipped() -> tuple[Claim, ...]:
    ledger, reports = load_ledger(), load_reports()
    folder = published_path(FIGURES).parent
    files = sorted(folder.glob("claims-*.toml"))
    claims = [one for path in files for one in read_claims(path, ledger, reports)]
    _refuse_duplicates(claims, folder)
    return tuple(sorted(claims, key=lambda claim: not is_published(claim)))


def read_claims(path: Path, ledger: Ledger, reports: Reports) -> tuple[Claim, ...]:
    """Claims of one TOML file, checked against the published figures.

    Raises:
        UsageError: not TOML, an unknown or missing key, a wrong type, a claim the model refuses,
            an unknown figure id, or a number that is not the figure's.

    """
    document = read_document(path, FORMAT)
    unknown = sorted(document.keys() - {"format", "levels", "common", "claim"})
    if unknown:
        raise bad_document(path, f"unknown key {unknown[0]!r}")
    claims = []
    for table in _tables(path, document):
        name = table.get("claim_id") or table.get("figures") or "a claim without claim_id"
        try:
            _check_types(table)
            claims += [_claim(one, ledger) for one in _filled(table, ledger, reports)]
        except (TypeError, ValueError) as error:
            raise bad_document(path, f"{name}: {error}") from error
    _refuse_duplicates(claims, path)
    return tuple(claims)


def _tables(path: Path, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The `[[claim]]` tables with what they inherit, repeated for each level of the file."""
    common, tables = document.get("common", {}), document.get("claim")
    if not isinstance(common, dict):
        raise bad_document(path, "`common` is not a table")
    if not (isinstance(tables, list) and tables and all(isinstance(t, dict) for t in tables)):
        raise bad_document(path, "no [[claim]] table")
    whole = [{**common, **table} for table in tables]
    levels = document.get("levels", [])
    if not (isinstance(levels, list) and all(isinstance(one, str) for one in levels)):
        raise bad_document(path, "`levels` is not a list of texts")
    for level in levels:
        for table in (one for one in whole if "level" not in one):
            claim_id = str(table.get("claim_id", "")).replace("{level}", level)
            yield table | {"level": level, "claim_id": claim_id}
    yield from (one for one in whole if "level" in one or not levels)


def _check_types(table: dict[str, Any]) -> None:
    unknown = sorted(table.keys() - _TYPES.keys())
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}")
    for key, value in table.items():
        if isinstance(value, bool) or not isinstance(value, _TYPES[key]):
            raise TypeError(f"{key} = {value!r} has the wrong type")
        texts = list(value.values()) if isinstance(value, dict) else value
        if isinstance(texts, list) and not all(isinstance(one, str) for one in texts):
            raise TypeError(f"{key} = {value!r} is not all text")


def _filled(table: dict[str, Any], ledger: Ledger, reports: Reports) -> Iterator[dict[str, Any]]:
    """The table with what it need not say; of a published one, a table for each of its figures."""
    if table.get("source") in OWN_SOURCES:
        if table.keys() & {"figures", "figure_ids", "derivation", "interpretation"}:
            raise ValueError("a claim of R8's own cites no figure")
        yield {**_OWN, "unit": "x" if len(table.get("arms", ())) > 1 else "", **table}
    elif "derivation" in table:
        for key in ("low", "figure_ids"):
            if key not in table:
                raise ValueError(f"key {key!r} is missing")
        ledger.members(*table["figure_ids"])
        fault = derived_fault(table["derivation"], table["low"], table["figure_ids"], ledger)
        if fault is not None:
            raise ValueError(fault)
        yield {**_PUBLISHED, "unit": "x", **table}
    elif not table.get("figures"):
        raise ValueError("a published claim cites no figure")
    else:
        said = table.keys() & {"low", "high", "unit", "figure_ids"}
        if said:
            raise ValueError(f"{min(said)!r} is the figure's own, and is not said again")
        for one in ledger.members(*table["figures"]):
            yield {**_PUBLISHED, **_of_figure(ledger, reports, ledger.figures[one]), **table}


def _of_figure(ledger: Ledger, reports: Reports, figure: Figure) -> dict[str, Any]:
    """What the ledger knows of a claim about a figure."""
    if figure.value is None:
        raise FormulaError(f"{figure.figure_id} is not published")
    known: dict[str, Any] = {
        "claim_id": figure.figure_id,
        "low": float(figure.value),
        "unit": figure.unit,
        "as_printed": figure.as_printed,
        "figure_ids": [figure.figure_id],
    }
    measure = measure_of(ledger, reports, figure)
    if not isinstance(measure, Measure):
        return known
    arms = [one for one in (measure.numerator_arm, measure.denominator_arm) if one is not None]
    names = ("kind", "scenario", "level", "metric", "statistic", "comparability")
    return known | {name: getattr(measure, name) for name in names} | {"arms": arms}


def _claim(table: dict[str, Any], ledger: Ledger) -> Claim:
    given = {key: value for key, value in table.items() if key not in {"arms", "figures"}}
    arms = table.get("arms", [])
    if len(arms) > len(("numerator", "denominator")):
        raise ValueError(f"{len(arms)} arms; a claim is about one arm or two")
    for role in (one.removeprefix(ROLE_PREFIX) for one in arms if one.startswith(ROLE_PREFIX)):
        if not CONTRACTS[Role(role)].judged:
            raise ValueError(f"no claim is about the role {role}: it is shown, and not judged")
    given |= dict(zip(("numerator_arm", "denominator_arm"), arms, strict=False))
    missing = {one.name for one in fields(Claim)} - _OPTIONAL - given.keys()
    if missing:
        raise ValueError(f"key {min(missing)!r} is missing")
    base = None
    if table["figure_ids"] and "derivation" not in table:
        figure = ledger.figures[table["figure_ids"][0]]
        base = figure.unit_base
        said = table.get("interpretation", "")
        if (figure.unit == FASTER) != bool(said) or said not in {"", *INTERPRETATIONS}:
            known = ", ".join(INTERPRETATIONS)
            raise ValueError(f"{figure.unit!r} is read as {said or 'nothing'!r}; known: {known}")
    return Claim(
        **{
            "high": None,
            "denominator_arm": None,
            **given,
            "figure_ids": tuple(table["figure_ids"]),
            "comparability": dict(table["comparability"]),
            "unit_base": base,
        }
    )


def _refuse_duplicates(claims: list[Claim], where: Path) -> None:
    seen: set[str] = set()
    for claim in claims:
        if claim.claim_id in seen:
            raise bad_document(where, f"claim {claim.claim_id} is written twice")
        seen.add(claim.claim_id)
