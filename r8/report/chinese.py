"""The report's words in Chinese: whole sentences, sentences with fields, and sentences in a row.

`data/published/words-report.toml` pairs the report's own words. A text that is not in it and has no
Chinese of its own stays English and is marked so in the page: names, an engine's own lines and
reasons of the judge are evidence and are not retold.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache

from r8.resources import published_path

LANGUAGES = ("en", "zh")
CATALOGUE = "words-report.toml"
_FIELD = re.compile(r"\\\{(\w+)\\\}")
_HAN = re.compile("[\u3400-\u9fff]")
# What a field of a kind may be filled with; any other name may be anything.
_KINDS = {"n": r"(?:None|-?\d[\d.]*(?:e[+-]?\d+)?%?)", "w": r"\S+"}
_ANYTHING = r".+?"
# Texts a page may hold, some tens of thousands, most of them several times.
_REMEMBERED = 1 << 16


@cache
def _pairs() -> tuple[dict[str, str], tuple[tuple[re.Pattern[str], str], ...]]:
    rows = tomllib.loads(published_path(CATALOGUE).read_text(encoding="utf-8"))["word"]
    exact = {row["en"]: row["zh"] for row in rows if "{" not in row["en"]}
    # The most telling form first: where two fit, it has more words of its own.
    forms = sorted((row for row in rows if "{" in row["en"]), key=lambda row: -_telling(row["en"]))
    return exact, tuple((_pattern(row["en"]), row["zh"]) for row in forms)


def _telling(words: str) -> int:
    return len(re.sub(r"\{\w+\}", "", words))


def _pattern(words: str) -> re.Pattern[str]:
    def field(found: re.Match[str]) -> str:
        kind = found[1].partition("_")[0] if "_" in found[1] else ""
        return f"(?P<{found[1]}>{_KINDS.get(kind, _ANYTHING)})"

    return re.compile(_FIELD.sub(field, re.escape(words)))


def translated(text: str, language: str) -> str | None:
    """The text in that language; None when it has no translation."""
    # What is made from the catalogues is in that language already.
    return text if language == "en" or _HAN.search(text) else _chinese(text)


@lru_cache(_REMEMBERED)
def _chinese(text: str) -> str | None:
    if not re.search("[A-Za-z]", text):
        return None
    # A form may end in words of any kind: what follows it is looked for first.
    return _exact(text) or _in_a_row(text, "; ", "\uff1b") or _sentences(text) or _one(text)


def _exact(text: str) -> str | None:
    return _pairs()[0].get(text)


def _one(text: str) -> str | None:
    exact = _exact(text)
    if exact:
        return exact
    for pattern, words in _pairs()[1]:
        match = pattern.fullmatch(text)
        if match:
            return words.format_map(match.groupdict())
    return None


def _in_a_row(text: str, between: str, joined: str) -> str | None:
    """Texts that stand one after another, each with a translation; one may hold the separator."""
    parts = text.split(between)
    for end in range(1, len(parts)):
        first = between.join(parts[:end])
        head = _one(first)
        tail = _chinese(between.join(parts[end:])) if head else None
        if head and tail:
            return f"{head}{joined}{tail}"
    return None


def _sentences(text: str) -> str | None:
    """Sentences after one another, the first perhaps without a full stop of its own."""
    for found in re.finditer(r"\. ", text):
        whole, bare, rest = text[: found.start() + 1], text[: found.start()], text[found.end() :]
        tail = _chinese(rest) if rest else ""
        if tail is None:
            continue
        head = _chinese(whole)
        if head:
            return head + tail
        head = _chinese(bare)
        if head:
            return f"{head}\u3002{tail}"
    return None
