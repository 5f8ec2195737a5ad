"""Checks of what is inside: the runs, the plan, and whether what was stated follows from rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from r8.errors import EvidenceError
from r8.evidence.manifest import MANIFEST
from r8.evidence.reader import read_run
from r8.seal.archive import refused
from r8.seal.bundle import (
    BUNDLE,
    FORMAT,
    REDACTION,
    REFERENCE,
    RUNS,
    STATED,
    claims_digest,
    configuration,
    inventory,
    judge_digest,
    run_paths,
    state,
)
from r8.seal.plan import missing_cells, plans_of, unplanned_cells
from r8.seal.redact import names_left
from r8.seal.statement import canonical, statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from r8.seal.verify_case import Case

# Differences printed in full; the count says how many there are.
SHOWN = 3


def runs(case: Case) -> str:
    """Every run directory reads back by the rules of `r8.evidence.reader`."""
    case.evidences = [read_run(path) for path in run_paths(case.tree, RUNS)]
    case.references = [read_run(path) for path in run_paths(case.tree, REFERENCE)]
    if not case.evidences:
        raise refused("there is no run in it", case.source.name)
    for one in (*case.evidences, *case.references):
        if one.path.name != one.run.run_id or one.path.parent.name != one.run.scenario:
            raise refused(f"{one.path.name} holds run {one.run.run_id}", case.source.name)
    versions = {one.run.schema_version for one in case.evidences}
    also = f" and {len(case.references)} reference runs" if case.references else ""
    return f"{len(case.evidences)} runs{also} of schema version {', '.join(map(str, versions))}"


def contents(case: Case) -> str:
    """What bundle.json says of the bundle is what lies in it."""
    stated = _json(case, BUNDLE)
    if stated.get("format") != FORMAT:
        raise refused(f"format {stated.get('format')}, this R8 reads {FORMAT}", case.source.name)
    found = inventory(case.tree, case.evidences)
    for key in ("r8_version", "judge_sha256", "claims_sha256"):
        found[key] = stated[key]  # of the R8 that sealed it; this one may be another
    for key in sorted({*found, *stated}):
        if found.get(key) != stated.get(key):
            raise refused(f"{BUNDLE} says otherwise about {key!r}", case.source.name)
    same = "this very code" if stated["judge_sha256"] == judge_digest() else "other code than this"
    return f"{BUNDLE} agrees; sealed by r8 {stated['r8_version']}, {same}"


def complete(case: Case) -> str:
    """Every cell the campaigns planned is there."""
    parts = []
    for plan in plans_of(case.evidences):
        absent = missing_cells(plan, case.evidences)
        if absent:
            raise refused(
                f"{plan.campaign_id}: {len(absent)} of {len(plan.cells)} planned cells left out: "
                f"{', '.join(absent)} (plan: {plan.source})",
                case.source.name,
            )
        strangers = unplanned_cells(plan, case.evidences)
        if strangers:
            raise refused(f"{plan.campaign_id}: not in the plan: {strangers[0]}", case.source.name)
        parts.append(f"{plan.campaign_id}: {len(plan.cells)} of {len(plan.cells)} cells")
        parts.append(f"plan: {plan.source}")
    return "; ".join(parts)


def recomputed(part: str, keys: str) -> Callable[[Case], str]:
    """A check that one part of stated.json follows from the raw rows."""

    def check(case: Case) -> str:
        if case.said is None:
            case.said = state(case.evidences, case.claims, case.references)
        stated = _json(case, STATED)[part]
        if part == "verdicts" and _json(case, BUNDLE)["claims_sha256"] != claims_digest():
            raise refused(
                "this R8 carries other claims than the one that sealed the bundle",
                case.source.name,
            )
        _same(part, stated, json.loads(canonical(case.said.stated[part])), keys, case)
        return f"{len(stated)} rows recomputed from the raw rows, all equal"

    return check


def _same(part: str, stated: Any, found: Any, keys: str, case: Case) -> None:
    if len(stated) != len(found):
        raise refused(f"{len(stated)} {part} stated, {len(found)} computed", case.source.name)
    different = [
        " ".join(str(_deep(row, key)) for key in keys.split())
        for row, other in zip(stated, found, strict=True)
        if row != other
    ]
    if different:
        raise refused(
            f"{len(different)} of {len(stated)} differ: {', '.join(different[:SHOWN])}",
            case.source.name,
        )


def predicate(case: Case) -> str:
    """The signed statement names the results that were recomputed."""
    if case.said is None:
        raise refused("the verdicts could not be recomputed", case.source.name)
    manifest = (case.tree / MANIFEST).read_bytes()
    wanted = statement(manifest, case.said.verdicts, configuration(_json(case, BUNDLE)))
    if canonical(wanted).encode() != case.payload:
        raise refused("the signed statement names other results", case.source.name)
    predicate = wanted["predicate"]
    return f"{predicate['result']}: {len(predicate['passedTests'])} claims reproduced"


def redaction(case: Case) -> str:
    """What was declared as taken out is not there."""
    if not (case.tree / REDACTION).is_file():
        return "nothing was taken out, and nothing says so"
    done = _json(case, REDACTION)
    for one in case.evidences:
        if left := names_left(one.path):
            raise refused(f"{one.run.run_id}: address {left[0]} was left in", case.source.name)
    counts = ", ".join(f"{count} {kind}" for kind, count in done["pseudonyms"].items())
    return f"taken out: {counts or 'nothing to take out'}; no address left in texts"


def _json(case: Case, name: str) -> Any:
    try:
        return json.loads((case.tree / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EvidenceError(
            f"{name} cannot be read: {error}", where=case.source.name, next_step="fetch it again"
        ) from error


def _deep(row: Any, key: str) -> Any:
    for part in key.split("."):
        row = row[part]
    return row
