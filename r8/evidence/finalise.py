"""From journals to a sealed run directory, in steps that may be interrupted at any instant.

    <run_id>.partial       journals, run.json and raw/, as the run wrote them
    <run_id>.finalising    Parquet, raw/, run.json, MANIFEST.sha256 last; everything fsynced
    <run_id>               the same, renamed: only now does the run exist for a reader
    <run_id>.spent         the partial directory on its way out, renamed before it is deleted

Values of secrets are replaced on the way (`r8.sensitive`): in run.json, in every text of a table,
and in every file of raw/ but packed ones, which hold what a server answered to the load client.

Whatever stopped it, calling it again either starts the second directory afresh or, when the run is
already sealed, only clears away what is left. A sealed run is never written to.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from typing import TYPE_CHECKING

from r8.errors import EvidenceError, SiteError
from r8.evidence import door
from r8.evidence.budgets import BUDGETS
from r8.evidence.journal import (
    RUN_FILE,
    lock_directory,
    run_from_json,
    run_to_json,
    sync_directory,
    write_json_atomic,
)
from r8.evidence.manifest import MANIFEST, manifest_text, sha256_file
from r8.evidence.strict_json import strict_json
from r8.evidence.tables import write_table
from r8.schema import TABLES
from r8.sensitive import masked, masked_json

if TYPE_CHECKING:
    from pathlib import Path

    from r8.model import Run

PARTIAL_SUFFIX = ".partial"
FINALISING_SUFFIX = ".finalising"
SPENT_SUFFIX = ".spent"
# What the sealed run was made from; tells our own half-cleared directory from a second run that
# took the same id.
SOURCE_DIGESTS = "raw/journals.sha256"
# Journals of days have no size that would be too much: they are read a block at a time.
_OF_JOURNALS = dataclasses.replace(BUDGETS, file_bytes=1 << 62, run_bytes=1 << 62)
_BLOCK_CHARS = 4 << 20
_KEY_CHARS = 16 << 10  # more than the longest private key in use


def finalise(partial_dir: Path, *, complete: bool) -> Path:
    """Seal a run: the path of its final directory, which is on the disk when this returns.

    `complete` is what the caller knows of the run. Torn last lines are dropped, counted in the
    run's note, and make it incomplete: a run that lost rows is no measurement.

    Raises EvidenceError naming file and line for a journal that is not one (a torn line in the
    middle, an unknown key), when the final directory already holds another run, or when the run
    is still being written. Nothing is lost by an error: the partial directory stays.
    """
    return _seal(partial_dir, complete=complete, recovered=False)


def recover(partial_dir: Path) -> Path:
    """Seal what an interrupted run journalled, marked incomplete, with a note of what is missing.

    Raises as `finalise`, and EvidenceError for a link, a pipe or a device in the directory: nobody
    knows who brought it here.
    """
    if partial_dir.is_dir():
        door.files(partial_dir, _OF_JOURNALS)
    return _seal(partial_dir, complete=False, recovered=True)


def _seal(partial: Path, *, complete: bool, recovered: bool) -> Path:
    if not partial.name.endswith(PARTIAL_SUFFIX):
        raise EvidenceError(
            f"not a directory of an unfinished run: its name does not end in {PARTIAL_SUFFIX}",
            where=str(partial),
            next_step=f"name the <run_id>{PARTIAL_SUFFIX} directory",
        )
    final = partial.with_name(partial.name.removesuffix(PARTIAL_SUFFIX))
    sealed_already = (final / MANIFEST).is_file()
    if not partial.is_dir() and sealed_already:
        _discard(final)
        return final
    if not partial.is_dir():
        raise EvidenceError(
            "there is no such unfinished run", where=str(partial), next_step="ls its folder"
        )
    lock = lock_directory(partial, exclusive=True)
    try:
        if final.exists():
            _refuse_other_run(partial, final)
        else:
            _build(partial, final, complete=complete, recovered=recovered)
        partial.rename(final.with_name(final.name + SPENT_SUFFIX))
    except OSError as error:
        raise SiteError(
            f"the run cannot be sealed: {error}",
            where=str(final),
            next_step=f"free space or fix the disk, then `r8 recover {partial}`; nothing is lost",
        ) from error
    finally:
        os.close(lock)
    _discard(final)
    return final


def _discard(final: Path) -> None:
    """Delete what a sealed run leaves beside it."""
    for suffix in (SPENT_SUFFIX, FINALISING_SUFFIX):
        leftover = final.with_name(final.name + suffix)
        if leftover.is_dir():
            shutil.rmtree(leftover)
    sync_directory(final.parent)


def _refuse_other_run(partial: Path, final: Path) -> None:
    """Pass only when `final` was made from exactly this partial directory."""
    source = final / SOURCE_DIGESTS
    if source.is_file() and source.read_text() == _source_digests(partial):
        return
    raise EvidenceError(
        "a run of this id is already sealed, and evidence is never overwritten",
        where=str(final),
        next_step=f"keep both: rename {partial.name}, and give the run in it an id of its own",
    )


def _build(partial: Path, final: Path, *, complete: bool, recovered: bool) -> None:
    work = final.with_name(final.name + FINALISING_SUFFIX)
    if work.exists():
        shutil.rmtree(work)
    work.mkdir()
    run = _read_plan(partial, final.name)
    _copy_raw(partial, work)
    torn = {name: write_table(partial, work, name, run.run_id) for name in TABLES}
    note = _note(partial, run.note, torn, recovered=recovered)
    whole = complete and not any(torn.values())
    sealed_run = dataclasses.replace(run, complete=whole, note=note)
    write_json_atomic(work / RUN_FILE, masked_json(run_to_json(sealed_run)))
    _sync_tree(work)
    _write_synced(work / MANIFEST, manifest_text(work))
    sync_directory(work)
    work.rename(final)
    sync_directory(final.parent)


def _read_plan(partial: Path, run_id: str) -> Run:
    where = partial / RUN_FILE
    try:
        content = door.read(where, limit="json_bytes")
        value = strict_json(content, what="the run's plan", where=str(where))
    except EvidenceError as error:
        raise EvidenceError(
            f"the run's plan cannot be read: {error.what}",
            where=str(where),
            next_step="without its plan no row belongs to a run; read the journals as text",
        ) from error
    run = run_from_json(value, where=str(where))
    if run.run_id != run_id:
        raise EvidenceError(
            f"run_id is {run.run_id!r}, the directory says {run_id!r}",
            where=str(where),
            next_step="give the directory its own name back",
        )
    return run


def _note(
    partial: Path, planned: str | None, torn: dict[str, int], *, recovered: bool
) -> str | None:
    parts = [planned] if planned else []
    parts += [f"{n} torn last line dropped from {name}.jsonl" for name, n in torn.items() if n]
    if recovered:
        journals = [name for name in TABLES if name != "engine_log"]
        absent = [name for name in journals if not (partial / f"{name}.jsonl").is_file()]
        parts += [f"no {name}.jsonl" for name in absent]
        parts.append("recovered from journals; the run did not end by itself")
    return "; ".join(parts) or None


def _copy_raw(partial: Path, work: Path) -> None:
    """Copy raw/, and into it whatever else lies beside the journals, so that nothing is lost."""
    raw = work / "raw"
    raw.mkdir()
    if (partial / "raw").is_dir():
        shutil.copytree(partial / "raw", raw, copy_function=_copy_masked, dirs_exist_ok=True)
    ours = {RUN_FILE, *(f"{name}.jsonl" for name in TABLES)}
    for path in sorted(partial.iterdir()):
        if path.is_file() and path.name not in ours and not path.name.startswith("."):
            _copy_masked(path, raw / path.name)
    (work / SOURCE_DIGESTS).write_text(_source_digests(partial))


def _copy_masked(source: Path | str, target: Path | str) -> None:
    """Copy a file byte for byte but for values of secrets; blocks end where a key block does."""
    if str(source).endswith(".gz"):
        shutil.copyfile(source, target)
        return
    # Latin-1 and untranslated ends of lines: every byte comes out as it went in.
    with (
        open(source, encoding="latin-1", newline="") as lines,  # noqa: PTH123 - names of copytree
        open(target, "w", encoding="latin-1", newline="") as copy,  # noqa: PTH123
    ):
        while block := "".join(lines.readlines(_BLOCK_CHARS)):
            if "PRIVATE KEY" in block[-_KEY_CHARS:]:
                block += "".join(lines.readlines(_KEY_CHARS))
            copy.write(masked(block))


def _source_digests(partial: Path) -> str:
    names = [RUN_FILE, *(f"{name}.jsonl" for name in TABLES)]
    present = [name for name in names if (partial / name).is_file()]
    return "".join(f"{sha256_file(partial / name)}  {name}\n" for name in present)


def _write_synced(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_tree(directory: Path) -> None:
    for path in sorted(directory.rglob("*")):
        if path.is_dir():
            sync_directory(path)
        elif path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_directory(directory)
