"""Every sentence of the audit, the diff and the published tables, in English and Chinese.

One catalogue, `data/published/words.toml`: a key gives the sentence in each language, with the same
`{fields}` in both. Code names a key and gives numbers; it never branches on the language.
"""

from __future__ import annotations

import tomllib
from functools import cache
from typing import TYPE_CHECKING

from r8.resources import published_path

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES = ("en", "zh")
CATALOGUE = "words.toml"


@cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Key to language to sentence."""
    found: dict[str, Mapping[str, str]] = tomllib.loads(
        published_path(CATALOGUE).read_text(encoding="utf-8")
    )
    return found


def say(language: str, key: str, /, **fields: str) -> str:
    """The sentence of a key with its fields filled in; KeyError for one that is not there."""
    return catalogue()[key][language].format_map(fields)
