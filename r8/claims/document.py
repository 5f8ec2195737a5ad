"""A TOML file of `data/published`: read whole, its format checked, its faults told in one line."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from r8.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def read_document(path: Path, wanted: int) -> dict[str, Any]:
    """The tables of a file whose `format` is `wanted`.

    Raises:
        UsageError: no such file, no TOML, or another format.

    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise bad_document(path, f"the file cannot be read: {error}") from error
    if document.get("format") != wanted:
        raise bad_document(path, f"format {document.get('format')!r}, this R8 reads {wanted}")
    return document


def bad_document(path: Path, fault: object) -> UsageError:
    """One line about a file, or about one table of it."""
    return UsageError(str(fault), where=str(path), next_step="correct the file")
