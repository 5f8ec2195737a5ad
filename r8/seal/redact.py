"""A run as it may go to strangers: what is declared travels, names as pseudonyms, all else stays.

`r8.schema` declares the columns and `r8.seal.declared` the rest. Rows, numbers and instants are not
touched, equal names stay equal in the whole bundle, so joins, metrics, rules and verdicts come out
as before. Files of raw/ do not travel. The result is a run directory of its own, with its own
manifest; `redaction.json` records what was done and the digests of the manifests left behind.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from r8.evidence.journal import RUN_FILE, run_to_json
from r8.evidence.layout import ROW_GROUP_ROWS, open_writer
from r8.evidence.manifest import MANIFEST, manifest_text, sha256_file
from r8.model import KvRun
from r8.schema import REQUEST_ID, TABLES, Pseudonymised
from r8.seal.declared import RUN, raw_kind
from r8.seal.names import Names
from r8.seal.plan import recorded_plan
from r8.seal.vocabulary import is_quantity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from r8.evidence.reader import Evidence
    from r8.model import Claim
    from r8.schema import Column, Travels

RAW = "raw"
# Columns whose names are looked for before anything is written.
_FIRST = [
    (table, column)
    for table in TABLES.values()
    for column in table.columns
    if column.name == "host" or (table.name == "requests" and column.travels == REQUEST_ID)
]


@dataclass(slots=True, kw_only=True)
class Redaction:
    """The names of one bundle, and what was left out of it."""

    names: Names
    withheld: Counter[str] = field(default_factory=Counter)  # files of raw/ by kind
    plans_changed: int = 0
    manifests_before: dict[str, str] = field(default_factory=dict)  # by run id as it is now

    def record(self) -> str:
        """What was done, as `redaction.json` of the bundle says it."""
        done = {
            "pseudonyms": self.names.counts,
            "withheld_files": self.withheld,
            "withheld_plan_digests": self.plans_changed,
            "undeclared_facts": self.names.undeclared_facts,
            "manifests_before": self.manifests_before,
        }
        return json.dumps(done, indent=1, sort_keys=True) + "\n"


def begin(evidences: Sequence[Evidence], claims: Sequence[Claim], also: Sequence[str]) -> Redaction:
    """A redaction of these runs: words of claims stay, and their hosts are known from the start.

    A host gets its pseudonym before a log line names it; an id of a request before the log of an
    engine, which an earlier run may hold as well, makes longer ones of it.
    """
    names = Names(known=claimed(claims), also=tuple(also))
    for one in evidences:
        if isinstance(one.run, KvRun) and one.run.patch is not None:
            patch = one.run.patch
            digests = patch.target_sha256, patch.base_sha256, patch.module_sha256
            names.keep(digest for digest in digests if digest)
        for table, column in _FIRST:
            values = pq.read_table(one.table_path(table.name), columns=[column.name]).column(0)
            for text in values.unique().to_pylist():
                if text is not None and column.travels is not None:
                    names.hide(text, column.travels)
    return Redaction(names=names)


def claimed(claims: Sequence[Claim]) -> frozenset[str]:
    """Names of arms and scenarios, and keys of comparability, that published claims speak of."""
    found: set[str] = set()
    for one in claims:
        found |= {one.scenario, one.numerator_arm, one.denominator_arm or "", *one.comparability}
    return frozenset(found - {""})


def redact(evidence: Evidence, root: Path, done: Redaction) -> None:
    """Write the run anew below `root`, as <scenario>/<run_id> with the names it has now."""
    run = _fields(run_to_json(evidence.run), "", done.names)
    plan = recorded_plan(evidence)
    target = root / run["scenario"] / run["run_id"]
    target.mkdir(parents=True)
    for table in TABLES:
        _write_table(evidence, table, target, done.names)
    run["plan_sha256"] = None
    if (digest := evidence.run.plan_sha256) is not None:
        # Of a plan with names it is no digest of what travels, and lets others try names out.
        same = plan is not None and _plan_as_it_travels(plan, done.names) == plan
        run["plan_sha256"] = digest if same else None
        done.names.keep({digest} if same else ())
        done.plans_changed += not same
    (target / RUN_FILE).write_text(json.dumps(run, indent=2, ensure_ascii=False) + "\n")
    (target / MANIFEST).write_text(manifest_text(target))
    done.manifests_before[run["run_id"]] = sha256_file(evidence.path / MANIFEST)
    raw = evidence.path / RAW
    for path in raw.rglob("*"):
        if path.is_file():
            done.withheld[raw_kind(path.relative_to(raw).as_posix())] += 1


def _plan_as_it_travels(plan: dict[str, Any], names: Names) -> Any:
    return json.loads(names.hide(json.dumps(plan), Pseudonymised("text", "facts")))


def _fields(value: Any, key: str, names: Names) -> Any:
    """A part of run.json; texts under a key that is not declared are left out."""
    if isinstance(value, dict):
        inside = {one: f"{key}.{one}" if key else one for one in value}
        if f"{key}.*" in RUN:
            return {
                names.hide(one, Pseudonymised("word")): _fields(value[one], f"{key}.*", names)
                for one in inside
            }
        kept = (one for one in value if key != "host" or inside[one] in RUN)
        return {one: _fields(value[one], inside[one], names) for one in kept}
    if isinstance(value, list | tuple):
        return [_fields(one, key, names) for one in value]
    if not isinstance(value, str):
        return value
    return names.hide(value, RUN[key]) if key in RUN else ""


def _write_table(evidence: Evidence, name: str, target: Path, names: Names) -> None:
    columns, schema = TABLES[name].columns, TABLES[name].arrow()
    with (
        pq.ParquetFile(evidence.table_path(name)) as file,
        open_writer(target / f"{name}.parquet", name) as writer,
    ):
        for batch in file.iter_batches(ROW_GROUP_ROWS):
            arrays = [_hidden(batch.column(one.name), one, names) for one in columns]
            if name == "probes":
                arrays[schema.get_field_index("value")] = _quantities(batch)
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _quantities(batch: pa.RecordBatch) -> Any:
    """Readings of the counters R8 knows as quantities, NULL for others."""
    encoded = batch.column("counter").dictionary_encode()
    known = pa.array([is_quantity(one) for one in encoded.dictionary.to_pylist()], pa.bool_())
    return pc.if_else(known.take(encoded.indices), batch.column("value"), None)


def _hidden(values: Any, column: Column, names: Names) -> Any:
    if column.type not in {"string", "name"}:
        return values
    travels: Travels | None = column.travels
    if travels is None and column.nullable:
        return pa.nulls(len(values), pa.string())
    encoded = values.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    hidden = [names.hide(text, travels or Pseudonymised("word", "whole")) for text in texts]
    return pa.array(hidden, pa.string()).take(encoded.indices)
