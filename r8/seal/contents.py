"""Checks of what is inside: the runs, the plan, and whether what was stated follows from rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from r8.evidence import door
from r8.evidence.journal import RUN_FILE
from r8.evidence.manifest import MANIFEST, relative_files, sha256_file
from r8.evidence.reader import read_run
from r8.message import Message
from r8.schema import TABLES
from r8.seal.archive import refused
from r8.seal.bundle import (
    BUNDLE,
    CITATION,
    FORMAT,
    REDACTION,
    REFERENCE,
    RUNS,
    SIGNER,
    STATED,
    citation,
    claims_digest,
    configuration,
    inventory,
    judge_digest,
    run_paths,
    state,
)
from r8.seal.leftovers import digests_in, left_in
from r8.seal.plan import BY_RUNS, missing_cells, plans_of, require_declared, unplanned_cells
from r8.seal.redact import claimed
from r8.seal.sealed_json import Bundle, Redaction, Signer, Stated, sealed_json
from r8.seal.statement import ENVELOPE, PREDICATE_TYPE, STATEMENT_TYPE, canonical, statement
from r8.seal.texts import Text, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from r8.errors import BundleError
    from r8.evidence.reader import Evidence
    from r8.message import Fact
    from r8.model import Claim
    from r8.seal.bundle import Statements

# What a redacted bundle is made of.
_TRAVELS = re.compile(
    rf"(?:{BUNDLE}|{STATED}|{REDACTION}|{SIGNER}|{CITATION}|{ENVELOPE}|"
    rf"(?:{RUNS}|{REFERENCE})/[^/]+/[^/]+/(?:{RUN_FILE}|{MANIFEST}|(?:{'|'.join(TABLES)})\.parquet))"
)
# The form of each JSON file and the budget of its bytes.
_FORMS: dict[str, tuple[Any, str]] = {
    BUNDLE: (Bundle, "json_bytes"),
    STATED: (Stated, "stated_bytes"),
    REDACTION: (Redaction, "json_bytes"),
    SIGNER: (Signer, "json_bytes"),
}
# Differences named in full; the count says how many there are.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Unknown:
    """What a step answers when the evidence it needs was withheld, by name."""

    reasons: tuple[Message, ...]


@dataclass(slots=True, kw_only=True)
class BundleCase:
    """A bundle while it is being verified."""

    source: Path
    tree: Path
    claims: Sequence[Claim]
    verifies: Callable[[Mapping[str, str], bytes, bytes], bool]
    key: Mapping[str, str] | None
    unsigned_allowed: bool
    evidences: list[Evidence] = field(default_factory=list)
    references: list[Evidence] = field(default_factory=list)
    payload: bytes = b""
    said: Statements | None = None

    def refused(self, entry: str, **facts: Fact) -> BundleError:
        """The error of this bundle, with its entry of the catalogues."""
        return refused(entry, self.source.name, **facts)


def runs(case: BundleCase) -> list[Message]:
    """Every run directory reads back by the rules of `r8.evidence.reader`."""
    case.evidences = [read_run(path) for path in run_paths(case.tree, RUNS)]
    case.references = [read_run(path) for path in run_paths(case.tree, REFERENCE)]
    if not case.evidences:
        raise case.refused("seal-no-run")
    for one in (*case.evidences, *case.references):
        if one.path.name != one.run.run_id or one.path.parent.name != one.run.scenario:
            raise case.refused("seal-other-run", folder=one.path.name, run=one.run.run_id)
    versions = sorted({one.run.schema_version for one in case.evidences})
    facts: dict[str, Fact] = {
        "runs": len(case.evidences),
        "references": len(case.references),
        "versions": ", ".join(map(str, versions)),
    }
    return [Message(id="seal-runs", facts=facts)]


def contents(case: BundleCase) -> list[Message]:
    """What bundle.json says of the bundle is what lies in it."""
    stated = read_json(case, BUNDLE)
    if stated.get("format") != FORMAT:
        raise case.refused("seal-other-format", format=stated.get("format"), ours=FORMAT)
    found = inventory(case.tree, case.evidences)
    for key in ("r8_version", "judge_sha256", "claims_sha256"):
        found[key] = stated[key]  # of the R8 that sealed it; this one may be another
    for key in sorted({*found, *stated}):
        if found.get(key) != stated.get(key):
            raise case.refused("seal-inventory-differs", key=key)
    facts = {"version": stated["r8_version"]}
    if stated["judge_sha256"] == judge_digest():
        return [Message(id="seal-sealed-by-same-code", facts=facts)]
    return [Message(id="seal-sealed-by-other-code", facts=facts)]


def complete(case: BundleCase) -> list[Message] | Unknown:
    """Every cell the campaigns planned is there, and the plans are those they declared."""
    require_declared(case.evidences)
    parts = []
    plans = plans_of(case.evidences)
    for plan in plans:
        about: dict[str, Fact] = {"campaign": plan.campaign_id, "planned": len(plan.cells)}
        source = Message(id=plan.source)
        absent = missing_cells(plan, case.evidences)
        if absent:
            named = ", ".join(absent)
            raise case.refused("seal-cells-left-out", n=len(absent), cells=named, **about)
        strangers = unplanned_cells(plan, case.evidences)
        if strangers:
            raise case.refused("seal-cell-unplanned", cell=strangers[0], **about)
        parts += [Message(id="seal-cells", facts=about), source]
    if _redacted(case) and any(plan.source == BY_RUNS for plan in plans):
        return Unknown((Message(id="seal-plan-withheld"),))
    return parts


def recomputed(part: str, keys: str) -> Callable[[BundleCase], list[Message]]:
    """A check that one part of stated.json follows from the raw rows."""

    def check(case: BundleCase) -> list[Message]:
        if case.said is None:
            case.said = state(case.evidences, case.claims, case.references)
        stated = read_json(case, STATED)[part]
        if part == "verdicts" and read_json(case, BUNDLE)["claims_sha256"] != claims_digest():
            raise case.refused("seal-other-claims")
        _same(part, stated, json.loads(canonical(case.said.stated[part])), keys, case)
        return [Message(id="seal-recomputed", facts={"rows": len(stated)})]

    return check


def _same(part: str, stated: Any, found: Any, keys: str, case: BundleCase) -> None:
    if len(stated) != len(found):
        raise case.refused("seal-rows-differ", part=part, stated=len(stated), computed=len(found))
    different = [
        " ".join(str(_deep(row, key)) for key in keys.split())
        for row, other in zip(stated, found, strict=True)
        if row != other
    ]
    if different:
        named = ", ".join(different[:SHOWN])
        raise case.refused("seal-values-differ", n=len(different), of=len(stated), rows=named)


def predicate(case: BundleCase) -> list[Message]:
    """The signed statement names the results that were recomputed."""
    if case.said is None:
        raise case.refused("seal-not-recomputed")
    manifest = (case.tree / MANIFEST).read_bytes()
    wanted = statement(manifest, case.said.verdicts, configuration(read_json(case, BUNDLE)))
    if canonical(wanted).encode() != case.payload:
        raise case.refused("seal-other-results")
    predicate = wanted["predicate"]
    facts = {"result": predicate["result"], "reproduced": len(predicate["passedTests"])}
    return [Message(id="seal-results", facts=facts)]


def withheld(case: BundleCase) -> list[Message] | Unknown:
    """What the sealer kept to themselves: what rests on it is unknown here, whatever else holds."""
    if not _redacted(case):
        raw = sum(name.startswith("raw/") for one in case.evidences for name in one.manifest)
        return [Message(id="seal-nothing-withheld", facts={"files": raw})]
    done = read_json(case, REDACTION)
    runs = Message(id="seal-originals-withheld", facts={"runs": len(done["manifests_before"])})
    files = [
        Message(id="seal-raw-withheld", facts={"kind": kind, "n": count})
        for kind, count in done["withheld_files"].items()
    ]
    plans: dict[str, Fact] = {"runs": done["withheld_plan_digests"]}
    changed = [Message(id="seal-plan-digest-withheld", facts=plans)] if plans["runs"] else []
    return Unknown((runs, *files, *changed))


def redaction(case: BundleCase) -> list[Message]:
    """Nothing travels that is not declared, and no form of a name or a key is in what does."""
    if not _redacted(case):
        return [Message(id="seal-not-redacted")]
    done = read_json(case, REDACTION)
    names = relative_files(case.tree)
    for name in names:
        if not _TRAVELS.fullmatch(name):
            raise case.refused("seal-file-left", file=name)
    looked = Counter(text.file for text in _looked_at(case))
    taken = [
        Message(id="seal-taken-out", facts={"kind": kind, "n": count})
        for kind, count in done["pseudonyms"].items()
    ]
    columns = sum(name.endswith(")") for name in looked)
    facts: dict[str, Fact] = {"texts": looked.total(), "files": len(names), "columns": columns}
    return [*taken, Message(id="seal-redacted", facts=facts)]


def _looked_at(case: BundleCase) -> Iterator[Text]:
    """Every text of the bundle, looked at by the finder that is not the redaction's own."""
    known = _digests(case) | claimed(case.claims)
    names = "\n".join(relative_files(case.tree))
    own = set(citation().splitlines())
    for text in (Text(file="file names", line=1, text=names), *texts_of(case.tree)):
        words = text.text
        if text.file == ENVELOPE:
            words = case.payload.decode()
            for named in (STATEMENT_TYPE, PREDICATE_TYPE):
                words = words.replace(named, "")
        elif text.file == CITATION:
            words = "\n".join(line for line in words.splitlines() if line not in own)
        if text.file != SIGNER:  # whose it is they want to be known
            for kind, found in left_in(words, known):
                raise case.refused("seal-name-left", kind=kind, found=found, file=text.file)
        yield text


def _digests(case: BundleCase) -> frozenset[str]:
    """SHA-256 that name files, code or a plan that travels."""
    tree = case.tree
    found = digests_in([*tree.rglob(MANIFEST), tree / BUNDLE, tree / REDACTION])
    plans = {one.run.plan_sha256 for one in (*case.evidences, *case.references)} - {None}
    return found | {sha256_file(tree / MANIFEST)} | {str(one) for one in plans}


def _redacted(case: BundleCase) -> bool:
    return (case.tree / REDACTION).is_file()


def read_json(case: BundleCase, name: str) -> Any:
    """A JSON file of the bundle, in the form that R8 writes; else an EvidenceError."""
    form, limit = _FORMS[name]
    data = door.read(case.tree, name, limit=limit)
    return sealed_json(data, form, what=name, where=case.source.name, limit=limit)


def _deep(row: Any, key: str) -> Any:
    for part in key.split("."):
        row = row[part]
    return row
