"""Run directories read back: hash-checked, schema-checked, frozen. No network, subprocess or clock.

What is accepted is exactly what the finaliser seals: every file the manifest lists, with its
digest, and no file besides; `run.json` strictly a Run; every table with the schema of this version.
The reference runs of the schema before are read through `r8.evidence.upgrade`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from r8.errors import EvidenceError, IncompleteRunError, TamperedRunError
from r8.evidence.journal import RUN_FILE, run_from_json
from r8.evidence.manifest import MANIFEST, parse_manifest, relative_files, sha256_file
from r8.evidence.upgrade import FROM_VERSION, upgrade
from r8.schema import SCHEMA_VERSION, TABLES, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from r8.model import Run

# A directory under one of these names is somebody's work in progress, whatever it holds.
UNFINISHED_SUFFIXES = (".partial", ".finalising", ".spent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A run directory that was checked when it was read."""

    run: Run
    path: Path
    manifest: Mapping[str, str]  # relative file name -> SHA-256 in hex
    tables: Path  # where run.json and the tables of this schema lie: `path`, unless upgraded

    def table_path(self, name: str) -> Path:
        """The Parquet file of one table of `r8.schema.TABLES`."""
        return self.tables / f"{TABLES[name].name}.parquet"

    def table(self, name: str) -> pa.Table:
        """One table in memory."""
        return pq.read_table(self.table_path(name))


def read_run(path: Path) -> Evidence:
    """Check a run directory and open it.

    Raises IncompleteRunError when it has no seal, TamperedRunError naming a file that is
    changed, missing or not listed, EvidenceError for another schema version or a bad `run.json`.
    """
    path = path.resolve()
    if not path.is_dir():
        raise EvidenceError(
            "there is no such run directory",
            where=str(path),
            next_step="name a directory data/runs/<scenario>/<run_id>",
        )
    if path.name.endswith(UNFINISHED_SUFFIXES):
        raise IncompleteRunError(
            "the run was never finalised", where=str(path), next_step=f"r8 recover {path}"
        )
    if not (path / MANIFEST).is_file():
        # A run is sealed before it gets its name: it lost its seal on the way here.
        raise IncompleteRunError(
            f"the run has no {MANIFEST}",
            where=str(path),
            next_step="fetch the directory again from where it was made",
        )
    manifest = parse_manifest(path)
    _check_files(path, manifest)
    written = _json(path / RUN_FILE)
    old = isinstance(written, dict) and written.get("schema_version") == FROM_VERSION
    tables = upgrade(path) if old else path
    run = run_from_json(_json(tables / RUN_FILE), where=str(path / RUN_FILE))
    for table in TABLES.values():
        _check_table(tables / f"{table.name}.parquet", table, run.run_id)
    return Evidence(run=run, path=path, manifest=manifest, tables=tables)


def read_runs(paths: Iterable[Path]) -> list[Evidence]:
    """Check and open several runs, in the given order; the first that cannot be trusted raises.

    Raises as `read_run`, and EvidenceError when two directories claim one run id.
    """
    runs = [read_run(path) for path in paths]
    seen: dict[str, Path] = {}
    for evidence in runs:
        other = seen.setdefault(evidence.run.run_id, evidence.path)
        if other != evidence.path:
            raise EvidenceError(
                f"run {evidence.run.run_id} is there twice",
                where=f"{other} and {evidence.path}",
                next_step="name one of them",
            )
    return list({evidence.path: evidence for evidence in runs}.values())


def find_runs(root: Path) -> list[Path]:
    """Finished run directories anywhere below `root`, sorted; not yet checked."""
    return sorted(
        manifest.parent
        for manifest in root.rglob(MANIFEST)
        if not manifest.parent.name.endswith(UNFINISHED_SUFFIXES)
    )


def _check_files(path: Path, manifest: Mapping[str, str]) -> None:
    present = set(relative_files(path))
    for name in sorted(present - set(manifest)):
        raise _tampered(f"{name} is not in the manifest", path)
    for name, digest in manifest.items():
        if name not in present:
            raise _tampered(f"{name} is missing", path)
        if sha256_file(path / name) != digest:
            raise _tampered(f"{name} differs from its manifest", path)
    for name in [RUN_FILE, *(f"{table}.parquet" for table in TABLES)]:
        if name not in manifest:
            raise _tampered(f"{name} is missing", path)


def _tampered(what: str, path: Path) -> TamperedRunError:
    return TamperedRunError(
        what,
        where=str(path),
        next_step="fetch the directory again from where it was made; do not repair it",
    )


def _json(path: Path) -> object:
    try:
        found: object = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise EvidenceError(
            f"run.json cannot be read: {error}",
            where=str(path),
            next_step="fetch the run directory again",
        ) from error
    return found


def _check_table(path: Path, table: Table, run_id: str) -> None:
    try:
        schema = pq.ParquetFile(path).schema_arrow
        # As a dictionary: one run id a row, spelled out, would be gigabytes in a long session.
        file = pq.ParquetFile(path, read_dictionary=["run_id"])
        ids = set(file.read(columns=["run_id"]).column("run_id").unique().to_pylist())
    except (OSError, pa.ArrowException) as error:
        raise _bad_table(f"not a readable Parquet file: {error}", path) from error
    version = (schema.metadata or {}).get(b"r8.schema_version", b"none").decode()
    if version != str(SCHEMA_VERSION):
        raise _bad_table(f"schema version is {version}, this R8 reads {SCHEMA_VERSION}", path)
    wanted = table.arrow()
    for field in wanted:
        index = schema.get_field_index(field.name)
        if index < 0 or not schema.field(index).type.equals(field.type):
            raise _bad_table(f"column {field.name} is not there as {field.type}", path)
    if extra := set(schema.names) - set(wanted.names):
        raise _bad_table(f"unknown columns {', '.join(sorted(extra))}", path)
    if ids - {run_id}:
        raise _bad_table(f"rows of another run: {', '.join(map(str, ids - {run_id}))}", path)


def _bad_table(what: str, path: Path) -> EvidenceError:
    return EvidenceError(
        what, where=str(path), next_step="use the R8 release that wrote the run (see run.json)"
    )
