"""The list of a run directory's files and their SHA-256, in the format of sha256sum(1)."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from r8.errors import EvidenceError, TamperedRunError

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "MANIFEST.sha256"
_HASH_BLOCK_BYTES = 1 << 20
_LINE = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<name>.+)")


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
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
    """Names of everything below `directory` that is not a directory, less the manifest; sorted.

    Symbolic links are among them: a manifest lists regular files, so a link never goes unnoticed.
    """
    names = (
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )
    return sorted(name for name in names if name != MANIFEST)


def manifest_text(directory: Path) -> str:
    """What `sha256sum` prints for every file below `directory` but the manifest, sorted by name.

    Raises EvidenceError for a name that the format would have to escape.
    """
    names = relative_files(directory)
    for name in names:
        if any(character in name for character in "\n\r\\"):
            raise EvidenceError(
                f"the file name {name!r} cannot stand in a manifest",
                where=str(directory),
                next_step="rename the file in the partial directory and repeat",
            )
    return "".join(f"{sha256_file(directory / name)}  {name}\n" for name in names)


def parse_manifest(directory: Path) -> dict[str, str]:
    """File name -> digest, as the manifest in `directory` lists them.

    Raises TamperedRunError for a line of another form, a name listed twice or one outside.
    """
    path = directory / MANIFEST
    entries: dict[str, str] = {}
    text = path.read_bytes().decode("utf-8", errors="replace")
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
