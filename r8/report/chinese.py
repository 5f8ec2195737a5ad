"""The report's words in Chinese: whole sentences, sentences with fields, and sentences in a row.

`data/published/words-report.toml` pairs the report's own words, `words-certificate.toml` what the
certificate's checks print. A text that is in neither stays English and is marked so in the page:
names, an engine's own lines and reasons of the judge are evidence and are not retold.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache

from r8.resources import published_path

LANGUAGES = ("en", "zh")
CATALOGUES = ("words-report.toml", "words-certificate.toml")
_FIELD = re.compile(r"\\\{(\w+)\\\}")
# What a field of a kind may be filled with; any other name may be anything.
_KINDS = {"n": r"(?:None|-?\d[\d.]*(?:e[+-]?\d+)?%?)", "w": r"\S+"}
_ANYTHING = r".+?"
# Fields whose text has words of its own.
_WORDS = "words_"
_MARKED = re.compile(r"(.+) (\[(?:refuted|unknown|does not apply)\])", re.DOTALL)
# A finding in a list: its rule, its answer and its run come before its arithmetic.
_LED = re.compile(r"(`\w+` [\w ]+ in `[^`]+`): (.+)", re.DOTALL)
# Texts a page may hold, some tens of thousands, most of them several times.
_REMEMBERED = 1 << 16


@cache
def _pairs() -> tuple[dict[str, str], tuple[tuple[re.Pattern[str], str], ...]]:
    rows = [
        row
        for name in CATALOGUES
        for row in tomllib.loads(published_path(name).read_text(encoding="utf-8"))["word"]
    ]
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
    return text if language == "en" else _chinese(text)


@lru_cache(_REMEMBERED)
def _chinese(text: str) -> str | None:
    if not re.search("[A-Za-z]", text):
        return None
    led = _LED.fullmatch(text)
    if led:
        head, tail = _one(led[1]), _chinese(led[2])
        return f"{head}\uff1a{tail}" if head and tail else None
    # A form may end in words of any kind: what follows it is looked for first.
    return _exact(text) or _in_a_row(text, "; ", "\uff1b") or _sentences(text) or _one(text)


def _exact(text: str) -> str | None:
    return _pairs()[0].get(text)


def _one(text: str) -> str | None:
    """One text, with the mark of its answer behind it."""
    marked = _MARKED.fullmatch(text)
    if marked:
        wordless = not re.search("[A-Za-z]", marked[1])
        words, mark = marked[1] if wordless else _one(marked[1]), _exact(marked[2])
        return f"{words}{mark}" if words and mark else None
    return _exact(text) or _matched(text)


def _matched(text: str) -> str | None:
    for pattern, words in _pairs()[1]:
        match = pattern.fullmatch(text)
        if match:
            return words.format_map(
                {
                    name: (_chinese(part) or part) if name.startswith(_WORDS) else part
                    for name, part in match.groupdict().items()
                }
            )
    return None


def _in_a_row(text: str, between: str, joined: str) -> str | None:
    """Texts that stand one after another, each with a translation; a text may hold the mark too."""
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
