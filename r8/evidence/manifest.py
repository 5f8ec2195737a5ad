"""The list of a run directory's files and their SHA-256, in the format of sha256sum(1)."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from r8.errors import EvidenceError, TamperedRunError
from r8.evidence import door

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "MANIFEST.sha256"
_HASH_BLOCK_BYTES = 1 << 20
_LINE = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<name>.+)")


def sha256_file(path: Path) -> str:
    """SHA-256 of a file of our own, in hex; of a stranger's: `r8.evidence.door.digest`."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def sha256_json(value: object) -> str:
    """SHA-256 of a value as JSON, in hex: equal values have one digest, whatever their layout."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def relative_files(directory: Path) -> list[str]:
    """Names of every file below `directory`, less the manifest; sorted.

    Raises EvidenceError as `r8.evidence.door.files` for anything that is no regular file.
    """
    return [name for name in door.files(directory) if name != MANIFEST]


def manifest_text(directory: Path) -> str:
    """What `sha256sum` prints for every file below `directory` but the manifest, sorted by name.

    Raises EvidenceError for a name that the format would have to escape.
    """
    names = relative_files(directory)
    for name in names:
        if "\\" in name:
            raise EvidenceError(
                f"the file name {name!r} cannot stand in a manifest",
                where=str(directory),
                next_step="rename the file in the partial directory and repeat",
            )
    return "".join(f"{sha256_file(directory / name)}  {name}\n" for name in names)


def parse_manifest(directory: Path) -> dict[str, str]:
    """File name -> digest, as the manifest in `directory` lists them; raises as `entries_of`."""
    return entries_of(door.read(directory, MANIFEST, limit="manifest_bytes"), directory)


def entries_of(content: bytes, directory: Path) -> dict[str, str]:
    """File name -> digest, from the content of the manifest in `directory`.

    Raises TamperedRunError for a line of another form, a name listed twice or one outside.
    """
    path = directory / MANIFEST
    entries: dict[str, str] = {}
    text = content.decode("utf-8", errors="replace")
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        match = _LINE.fullmatch(line)
        if match is None or match["name"] in entries or _outside(match["name"]):
            raise _bad_manifest(f"line {number} is not a file of this run: {line[:100]!r}", path)
        entries[match["name"]] = match["digest"]
    if text and not text.endswith("\n"):
        raise _bad_manifest("the last line is torn", path)
    return entries


def _outside(name: str) -> bool:
    return name.startswith("/") or ".." in name.split("/")


def _bad_manifest(what: str, path: Path) -> TamperedRunError:
    return TamperedRunError(
        what,
        where=str(path),
        next_step="fetch the directory again from where it was made; do not repair it",
    )
