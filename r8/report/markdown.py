"""The report's own Markdown as HTML: headings, paragraphs, bullets, tables, bold and code.

The page shows what the Markdown twin says because it is made from it. Only the forms the report
uses are known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from r8.model import Outcome
from r8.report.chinese import translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BOLD = re.compile(r"\*\*(.+?)\*\*")
_CODE = re.compile(r"`(.+?)`")
_CELL = re.compile(r"(?<!\\)\|")
_RULE_LINE = re.compile(r"\|[-|: ]+\|")
_NUMBER = re.compile(r"[-+]?\d[\d.e+-]*( \[.+\])?|>= .+|-|inf")
# A sign beside the colour: grey paper and colour-blind eyes tell outcomes apart as well.
_SIGNS = {
    "REPRODUCED": ("good", "\u2713"),
    "DEVIATES": ("bad", "\u2717"),
    "INVALID": ("bad", "!"),
    "INCONCLUSIVE": ("open", "?"),
    "NOT_COMPARABLE": ("none", "\u2260"),
    "NOT_MEASURED": ("none", "\u25cb"),
    "held": ("good", "\u2713"),
    "REFUTED": ("bad", "\u2717"),
    "unknown": ("open", "?"),
    "not applicable": ("none", "\u2013"),
    "same": ("good", "="),
    "DIFFERS": ("open", "\u2260"),
}
# A column of more characters is given room; one of sentences gets rows of its own when there are
# many columns beside it.
_SHORT_CHARS, _WIDE_CHARS, _SENTENCE_CHARS, _MANY_COLUMNS = 14, 44, 70, 6
_OUTCOMES = {str(one) for one in Outcome}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the report under one heading of the second level."""

    title: str  # as the twin writes it; the first part has its title from the first level
    lines: tuple[str, ...]


def sections(text: str) -> list[Section]:
    """The report cut at its headings of the second level; the head comes first."""
    found: list[Section] = []
    title = ""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(("# ", "## ")):
            if title:
                found.append(Section(title=title, lines=tuple(lines)))
            title, lines = line.lstrip("#").strip(), []
        else:
            lines.append(line)
    return [*found, Section(title=title, lines=tuple(lines))]


def body(lines: Sequence[str], language: str) -> str:
    """The lines of a section as HTML."""
    return "\n".join(_block(block, language) for block in _blocks(lines))


def inline(text: str, language: str) -> str:
    """One text with its bold and code parts; one that stays English inside Chinese says so."""
    words = translated(text, language)
    html = _marked(text if words is None else words)
    if words is None and language != "en" and re.search("[A-Za-z]{2}", text):
        return f'<span lang="en">{html}</span>'
    return html


def _marked(text: str) -> str:
    html = escape(text, quote=False)
    html = _CODE.sub(r"<code>\1</code>", html)
    return _BOLD.sub(r"<strong>\1</strong>", html)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in (*lines, ""):
        if line:
            block.append(line)
        elif block:
            yield block
            block = []


def _block(lines: list[str], language: str) -> str:
    if lines[0].startswith("|"):
        return _table(lines, language)
    if lines[0].startswith("* "):
        items = "".join(f"<li>{inline(line[2:], language)}</li>" for line in lines)
        return f"<ul>{items}</ul>"
    if lines[0].startswith("### "):
        return f"<h3>{inline(lines[0][4:], language)}</h3>"
    return f"<p>{inline(' '.join(lines), language)}</p>"


def _cells(line: str) -> list[str]:
    parts = _CELL.split(line.strip().removeprefix("|").removesuffix("|"))
    return [part.strip().replace("\\|", "|") for part in parts]


def _table(lines: list[str], language: str) -> str:
    headers = _cells(lines[0])
    rows = [_cells(line) for line in lines[1:] if not _RULE_LINE.fullmatch(line.strip())]
    head = "".join(f'<th scope="col">{inline(one, language)}</th>' for one in headers)
    longest = [max((len(row[n]) for row in rows), default=0) for n in range(len(headers))]
    styles = [_column_style([row[n] for row in rows], longest[n]) for n in range(len(headers))]
    if len(headers) > _MANY_COLUMNS and longest[-1] > _SENTENCE_CHARS:
        return _with_sentences(headers, rows, styles, language)
    shown = "".join(f"<tr>{_row(row, styles, language)}</tr>" for row in rows)
    return _framed(f"<table><thead><tr>{head}</tr></thead><tbody>{shown}</tbody></table>", language)


def _column_style(cells: Sequence[str], longest: int) -> str:
    """One style a column: numbers stand under each other only where all of it is numbers."""
    numbers = all(_NUMBER.fullmatch(one) for one in cells)
    kinds = [("num", numbers), ("wide", longest > _WIDE_CHARS), ("short", longest <= _SHORT_CHARS)]
    return " ".join(name for name, on in kinds if on)


def _framed(table: str, language: str) -> str:
    name = escape(translated("table", language) or "table")
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{table}</div>'


def _with_sentences(
    headers: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str], language: str
) -> str:
    """A table whose last column holds sentences: each stands in a row of its own, full width.

    On a phone every row becomes a card, its cells named by the column they are of.
    """
    names = [inline(one, language) for one in headers]
    head = "".join(f'<th scope="col">{one}</th>' for one in names[:-1])
    shown = []
    for row in rows:
        kept = [" ".join(s for s in style.split() if s != "wide") for style in styles[:-1]]
        cells = [_cell(cell, one, language) for cell, one in zip(row[:-1], kept, strict=True)]
        labels = [re.sub(r"<[^>]+>", "", one) for one in names]
        named = "".join(
            cell.replace("<td", f'<td data-label="{escape(label)}"', 1)
            for cell, label in zip(cells, labels, strict=False)
        )
        sentence = f'<td colspan="{len(headers) - 1}">{inline(row[-1], language)}</td>'
        shown.append(f'<tr class="facts">{named}</tr><tr class="sentence">{sentence}</tr>')
    body_rows = "".join(shown)
    table = f"<thead><tr>{head}</tr></thead><tbody>{body_rows}</tbody>"
    return _framed(f'<table class="cards">{table}</table>', language)


def _row(cells: Sequence[str], styles: Sequence[str], language: str) -> str:
    return "".join(_cell(cell, style, language) for cell, style in zip(cells, styles, strict=True))


def _cell(text: str, style: str, language: str) -> str:
    plain = text.strip("*")
    if plain in _SIGNS:
        mark, sign = _SIGNS[plain]
        words = translated(plain, language) or plain
        if plain in _OUTCOMES:
            code = "" if language == "en" else f' <span lang="en">{plain}</span>'
            words += code
        return (
            f'<td><span class="badge {mark}"><i aria-hidden="true">{sign}</i> {words}</span></td>'
        )
    kind = f' class="{style}"' if style else ""
    return f"<td{kind}>{inline(text, language)}</td>"
