"""The list of a run directory's files and their SHA-256, in the format of sha256sum(1)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from r8.errors import EvidenceError

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "MANIFEST.sha256"
_HASH_BLOCK_BYTES = 1 << 20


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def manifest_text(directory: Path) -> str:
    """What `sha256sum` prints for every file below `directory` but the manifest, sorted by name.

    Raises EvidenceError for a name that the format would have to escape.
    """
    lines = []
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        name = path.relative_to(directory).as_posix()
        if name == MANIFEST:
            continue
        if "\n" in name or "\\" in name or "\r" in name:
            raise EvidenceError(
                f"the file name {name!r} cannot stand in a manifest",
                where=str(directory),
                next_step="rename the file in the partial directory and repeat",
            )
        lines.append(f"{sha256_file(path)}  {name}\n")
    return "".join(lines)
