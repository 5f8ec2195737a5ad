"""Claims as data: TOML files beside the published figures, read strictly.

A file holds `format = 1`, a `[common]` table whose keys every claim inherits, and `[[claim]]`
tables whose keys are the fields of `r8.model.Claim`. An unknown or missing key, a wrong type, an
unknown figure id, or a published claim whose number is not the figure's number is an error: a claim
that says something else than the page would judge the wrong thing.
"""

from __future__ import annotations

import csv
import tomllib
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from r8.claims.interpretation import FASTER, READINGS, derived_fault
from r8.errors import UsageError
from r8.model import Claim
from r8.resources import published_path

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
# Sources of claims that are R8's own; everything else cites a report.
OWN_SOURCES = frozenset({"rehearsal", "reference"})
_TYPES: dict[str, type | tuple[type, ...]] = {
    "claim_id": str,
    "source": str,
    "kind": str,
    "scenario": str,
    "metric": str,
    "numerator_arm": str,
    "denominator_arm": str,
    "level": str,
    "low": (int, float),
    "high": (int, float),
    "unit": str,
    "tolerance": (int, float),
    "as_printed": str,
    "figure_ids": list,
    "comparability": dict,
    "statistic": str,
    "min_blocks": int,
    "looks": int,
    "reading": str,
    "derivation": str,
}
# Keys a claim may leave out; every other field of the record must be written.
_OPTIONAL = {field.name for field in fields(Claim) if field.default is not MISSING} | {
    "denominator_arm",
    "high",
}


def is_published(claim: Claim) -> bool:
    """Whether the claim cites a report; R8's own claims cite none."""
    return claim.source not in OWN_SOURCES


def load_claims(scenario: str | None = None) -> tuple[Claim, ...]:
    """Claims that R8 carries, of one scenario or of all; published ones first, in file order.

    Raises:
        UsageError: a shipped file is not well formed.

    """
    ledger = published_path("figures.csv")
    figures = _with_unit_bases(load_figures(ledger), ledger.with_suffix(".parquet"))
    files = sorted(ledger.parent.glob("claims-*.toml"))
    claims = [claim for path in files for claim in read_claims(path, figures)]
    _refuse_duplicates(claims, str(ledger.parent))
    mine = [claim for claim in claims if scenario in {None, claim.scenario}]
    return tuple(sorted(mine, key=lambda claim: not is_published(claim)))


def load_figures(path: Path) -> dict[str, dict[str, str]]:
    """Rows of `figures.csv` by figure id, as text.

    Raises:
        UsageError: no file, or two rows of one id.

    """
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    except OSError as error:
        raise UsageError(
            "the published figures cannot be read",
            where=str(path),
            next_step=f"restore the file ({error.strerror})",
        ) from error
    figures = {row["figure_id"]: row for row in rows}
    if len(figures) != len(rows):
        raise UsageError(
            f"{len(rows)} rows carry {len(figures)} figure ids",
            where=str(path),
            next_step="give every row an id of its own",
        )
    return figures


def _with_unit_bases(figures: dict[str, dict[str, str]], ledger: Path) -> dict[str, dict[str, str]]:
    """Figures with the bytes of their GB, from the one place that settles it: the ledger.

    Raises:
        UsageError: the ledger's table cannot be read.

    """
    try:
        table = pq.read_table(ledger, columns=["figure_id", "unit_base"]).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise UsageError(
            f"the ledger's table cannot be read: {error}",
            where=str(ledger),
            next_step="make it again: python -m r8.cli.published --write",
        ) from error
    bases = {row["figure_id"]: row["unit_base"] for row in table if row["unit_base"] is not None}
    return {
        name: row | ({"unit_base": str(bases[name])} if name in bases else {})
        for name, row in figures.items()
    }


def read_claims(path: Path, figures: dict[str, dict[str, str]]) -> tuple[Claim, ...]:
    """Claims of one TOML file, checked against the published figures.

    Raises:
        UsageError: not TOML, an unknown or missing key, a wrong type, a claim the model refuses,
            an unknown figure id, or a number that is not the figure's.

    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _bad(path, f"the claims cannot be read: {error}") from error
    _check_document(path, document)
    common = document.get("common", {})
    claims = [_claim(path, {**common, **table}) for table in document["claim"]]
    for claim in claims:
        _check_figures(path, claim, figures)
    _refuse_duplicates(claims, str(path))
    return tuple(_with_base(claim, figures) for claim in claims)


def _check_document(path: Path, document: dict[str, Any]) -> None:
    unknown = sorted(document.keys() - {"format", "common", "claim"})
    if unknown:
        raise _bad(path, f"unknown key {unknown[0]!r}")
    if document.get("format") != FORMAT:
        raise _bad(path, f"format {document.get('format')!r}, this R8 reads {FORMAT}")
    if not isinstance(document.get("common", {}), dict):
        raise _bad(path, "`common` is not a table")
    tables = document.get("claim")
    if not (isinstance(tables, list) and tables and all(isinstance(t, dict) for t in tables)):
        raise _bad(path, "no [[claim]] table")


def _claim(path: Path, table: dict[str, Any]) -> Claim:
    name = table.get("claim_id", "a claim without claim_id")
    unknown = sorted(table.keys() - _TYPES.keys())
    if unknown:
        raise _bad(path, f"{name}: unknown key {unknown[0]!r}")
    missing = sorted(_TYPES.keys() - _OPTIONAL - table.keys())
    if missing:
        raise _bad(path, f"{name}: key {missing[0]!r} is missing")
    for key, value in table.items():
        if isinstance(value, bool) or not isinstance(value, _TYPES[key]):
            raise _bad(path, f"{name}: {key} = {value!r} has the wrong type")
    try:
        return Claim(
            **{
                "denominator_arm": None,
                "high": None,
                **table,
                "figure_ids": _texts(table["figure_ids"]),
                "comparability": dict(
                    zip(
                        table["comparability"],
                        _texts(table["comparability"].values()),
                        strict=True,
                    )
                ),
            }
        )
    except (TypeError, ValueError) as error:
        raise _bad(path, f"{name}: {error}") from error


def _texts(values: Any) -> tuple[str, ...]:
    texts = tuple(values)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{texts!r} is not all text")
    return texts


def _check_figures(path: Path, claim: Claim, figures: dict[str, dict[str, str]]) -> None:
    """A published claim cites figures, and states exactly what the first one states."""
    for figure_id in claim.figure_ids:
        if figure_id not in figures:
            raise _bad(path, f"{claim.claim_id}: no published figure {figure_id!r}")
    if not is_published(claim):
        return
    if not claim.figure_ids:
        raise _bad(path, f"{claim.claim_id}: a published claim cites no figure")
    if claim.derivation:
        fault = derived_fault(claim.derivation, claim.low, claim.figure_ids, figures)
        if fault is not None or claim.unit != "x":
            raise _bad(path, f"{claim.claim_id}: {fault or 'a ratio has unit x'}")
        return
    figure = figures[claim.figure_ids[0]]
    if (figure["unit"] == FASTER) != bool(claim.reading) or claim.reading not in {"", *READINGS}:
        raise _bad(
            path,
            f"{claim.claim_id}: {figure['unit']!r} is read as {claim.reading or 'nothing'!r}; "
            f"known: {', '.join(READINGS)}",
        )
    if float(figure["value"]) != claim.low or figure["unit"] != claim.unit:
        raise _bad(
            path,
            f"{claim.claim_id}: {claim.low} {claim.unit} is not the figure's "
            f"{figure['value']} {figure['unit']}",
        )


def _with_base(claim: Claim, figures: dict[str, dict[str, str]]) -> Claim:
    """A published claim in its figure's own GB."""
    if not is_published(claim):
        return claim
    base = figures[claim.figure_ids[0]].get("unit_base")
    return claim if base is None else replace(claim, unit_base=int(base))


def _refuse_duplicates(claims: list[Claim], where: str) -> None:
    seen: set[str] = set()
    for claim in claims:
        if claim.claim_id in seen:
            raise UsageError(
                f"claim {claim.claim_id} is written twice",
                where=where,
                next_step="give each claim an id of its own",
            )
        seen.add(claim.claim_id)


def _bad(path: Path, what: str) -> UsageError:
    return UsageError(what, where=str(path), next_step="correct the claims file")
