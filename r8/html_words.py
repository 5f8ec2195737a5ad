"""The report's fixed words in Chinese: whole sentences, and sentences with fields.

`data/published/words-report.toml` pairs them. A text that is not there stays English and is marked
so in the page: numbers, arithmetic and reasons of the judge are evidence and are not retold.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache

from r8.resources import published_path

LANGUAGES = ("en", "zh")
CATALOGUE = "words-report.toml"
_FIELD = re.compile(r"\\\{(\w+)\\\}")


@cache
def _pairs() -> tuple[dict[str, str], tuple[tuple[re.Pattern[str], str], ...]]:
    rows = tomllib.loads(published_path(CATALOGUE).read_text(encoding="utf-8"))["word"]
    exact = {row["en"]: row["zh"] for row in rows if "{" not in row["en"]}
    patterns = tuple(
        (re.compile(_FIELD.sub(r"(?P<\1>.+?)", re.escape(row["en"]))), row["zh"])
        for row in rows
        if "{" in row["en"]
    )
    return exact, patterns


def translated(text: str, language: str) -> str | None:
    """The text in that language; None when it has no translation."""
    if language == "en":
        return text
    exact, patterns = _pairs()
    if text in exact:
        return exact[text]
    for pattern, words in patterns:
        match = pattern.fullmatch(text)
        if match:
            return words.format_map(match.groupdict())
    return None
