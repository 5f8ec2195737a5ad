"""Run directories read back: hash-checked, schema-checked, frozen. No network, subprocess or clock.

What is accepted is exactly what the finaliser seals: every file the manifest lists, with its
digest, and no file besides; `run.json` strictly a Run, named as its directory; every table with the
schema of this version and within the budgets of `r8.evidence.budgets`. What is computed from later
is a copy of the tables that was made while they were hashed (`r8.evidence.door`).
The reference runs of the schema before are read through `r8.evidence.upgrade`.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from r8.errors import EvidenceError, IncompleteRunError, TamperedRunError
from r8.evidence import door
from r8.evidence.journal import RUN_FILE, run_from_json
from r8.evidence.manifest import MANIFEST, entries_of
from r8.evidence.strict_json import strict_json
from r8.evidence.table_check import check_table, unreadable
from r8.evidence.upgrade import FROM_VERSION, upgrade
from r8.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from r8.model import Run

# A directory under one of these names is somebody's work in progress, whatever it holds.
UNFINISHED_SUFFIXES = (".partial", ".finalising", ".spent")
# What is copied, and computed from; every other file is hashed and left where it is.
COPIED = (RUN_FILE, *(f"{table}.parquet" for table in TABLES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A run directory that was checked when it was read."""

    run: Run
    path: Path
    manifest: Mapping[str, str]  # relative file name -> SHA-256 in hex
    tables: Path  # where run.json and the tables lie as they were checked: a copy of ours

    def table_path(self, name: str) -> Path:
        """The Parquet file of one table of `r8.schema.TABLES`."""
        return self.tables / f"{TABLES[name].name}.parquet"

    def table(self, name: str) -> pa.Table:
        """One table in memory."""
        try:
            return pq.read_table(self.table_path(name), partitioning=None)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(error, f"{self.path}/{name}.parquet") from error


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
    try:
        return _checked(path)
    except OSError as error:
        raise EvidenceError(
            f"it cannot be read: {error.strerror or error}",
            where=str(path),
            next_step="fetch the directory again from where it was made",
        ) from error


def _checked(path: Path) -> Evidence:
    present = door.files(path)
    if MANIFEST not in present:
        # A run is sealed before it gets its name: it lost its seal on the way here.
        raise IncompleteRunError(
            f"the run has no {MANIFEST}",
            where=str(path),
            next_step="fetch the directory again from where it was made",
        )
    content = door.read(path, MANIFEST, limit="manifest_bytes")
    manifest = entries_of(content, path)
    _check_names(path, manifest, set(present) - {MANIFEST})
    digest = hashlib.sha256(content).hexdigest()
    tables = _copied(path, manifest, digest)
    where = str(path / RUN_FILE)
    written = _run_file(tables, where)
    old = isinstance(written, dict) and written.get("schema_version") == FROM_VERSION
    if old:
        tables = upgrade(path, tables, digest)
        written = _run_file(tables, where)
    run = run_from_json(written, where=where)
    if run.run_id != path.name:
        raise EvidenceError(
            f"run_id is {run.run_id}, the directory says {path.name}",
            where=str(path),
            next_step="give the directory its own name back",
        )
    for table in () if old else TABLES.values():
        file = f"{table.name}.parquet"
        check_table(tables / file, table, run.run_id, where=str(path / file))
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
    return [
        path
        for path in door.folders_with(root, MANIFEST)
        if not path.name.endswith(UNFINISHED_SUFFIXES)
    ]


def _check_names(path: Path, manifest: Mapping[str, str], present: set[str]) -> None:
    for name in sorted(present - set(manifest)):
        raise _tampered(f"{name} is not in the manifest", path)
    for name in manifest:
        if name not in present:
            raise _tampered(f"{name} is missing", path)
    for name in COPIED:
        if name not in manifest:
            raise _tampered(f"{name} is missing", path)


def _copied(path: Path, manifest: Mapping[str, str], digest: str) -> Path:
    """Hash every file; where the tables lie, copied while they were hashed.

    One manifest is copied once: what it lists is the same each time, or it is refused.
    """
    target = door.home() / digest
    half = None if target.exists() else Path(tempfile.mkdtemp(dir=door.home()))
    for name, wanted in manifest.items():
        copy = half / name if half is not None and name in COPIED else None
        if door.digest(path, name, copy=copy) != wanted:
            raise _tampered(f"{name} differs from its manifest", path)
    return target if half is None else half.rename(target)


def _tampered(what: str, path: Path) -> TamperedRunError:
    return TamperedRunError(
        what,
        where=str(path),
        next_step="fetch the directory again from where it was made; do not repair it",
    )


def _run_file(tables: Path, where: str) -> object:
    content = door.read(tables, RUN_FILE, limit="json_bytes")
    return strict_json(content, what=RUN_FILE, where=where)
