"""The patch series as data: which LMCache files are known, and what is added to them."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r8.errors import PatchError

SERIES_DIR = Path(__file__).parents[3] / "patches" / "lmcache-parallel-read"
CLEAN_CHECKOUT = "take patches/ from a clean checkout"
# A zero-context diff that only adds: nothing of the file it changes stands in it.
HUNK = re.compile(r"@@ -(?P<after>\d+),0 \+(?P<first>\d+),(?P<count>\d+) @@")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEntry:
    """One LMCache file this patch supports; `hook` is the text appended to it."""

    name: str
    versions: tuple[str, ...]
    what: str
    base_sha256: str
    patched_sha256: str
    base_lines: int
    hook: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """A file of another patch, recognised so that it can be named."""

    name: str
    sha256: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Everything in `series.toml`, with the module's bytes; `target` is relative to the package."""

    target: str
    module: str
    module_sha256: str
    module_bytes: bytes
    entries: tuple[SeriesEntry, ...]
    foreign: tuple[ForeignFile, ...]


def read_series(directory: Path = SERIES_DIR) -> Series:
    """Read and check the series; raises PatchError when module and digest disagree."""
    path = directory / "series.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        patch = table["patch"]
        module_bytes = (directory / patch["module"]).read_bytes()
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise PatchError(
            f"the patch series cannot be read: {error}", where=str(path), next_step=CLEAN_CHECKOUT
        ) from error
    found = hashlib.sha256(module_bytes).hexdigest()
    if found != patch["module_sha256"]:
        raise PatchError(
            f"{patch['module']} has SHA-256 {found}, the series says {patch['module_sha256']}",
            where=str(path),
            next_step=CLEAN_CHECKOUT,
        )
    return Series(
        target=patch["target"],
        module=patch["module"],
        module_sha256=found,
        module_bytes=module_bytes,
        entries=tuple(_entry(directory, row) for row in table["series"]),
        foreign=tuple(ForeignFile(**row) for row in table["foreign"]),
    )


def diff_path(name: str, directory: Path = SERIES_DIR) -> Path:
    """The zero-context diff of one entry."""
    return directory / f"{name}.diff"


def _entry(directory: Path, row: dict[str, Any]) -> SeriesEntry:
    hook = added_text(diff_path(row["name"], directory), row["base_lines"])
    return SeriesEntry(**{**row, "versions": tuple(row["versions"]), "hook": hook})


def added_text(path: Path, base_lines: int) -> str:
    """What the diff appends after line `base_lines`; PatchError when it does anything else."""
    lines = path.read_text(encoding="utf-8").splitlines()
    hunk = HUNK.fullmatch(lines[2]) if len(lines) > 2 else None  # noqa: PLR2004 - two header lines
    added = lines[3:]
    if (
        hunk is None
        or int(hunk["after"]) != base_lines
        or int(hunk["count"]) != len(added)
        or not all(line.startswith("+") for line in added)
    ):
        raise PatchError(
            f"not a diff that only adds lines after line {base_lines}",
            where=str(path),
            next_step=CLEAN_CHECKOUT,
        )
    return "".join(line[1:] + "\n" for line in added)
