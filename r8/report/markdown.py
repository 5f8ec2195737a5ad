"""The report's Markdown as HTML: read by markdown-it, its tables laid out for a screen.

The page shows what the Markdown twin says because it is made from it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from r8.report.tables import answered
from r8.report.words import say
from r8.text import Markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

_NUMBER = re.compile(r"[-+]?\d[\d.e+-]*( \[.+\])?|>= .+|-|inf")
# A sign beside the colour: grey paper and colour-blind eyes tell outcomes apart as well.
_SIGNS = {
    "outcome-REPRODUCED": ("good", "\u2713"),
    "outcome-DEVIATES": ("bad", "\u2717"),
    "outcome-INVALID": ("bad", "!"),
    "outcome-INCONCLUSIVE": ("open", "?"),
    "outcome-NOT_COMPARABLE": ("none", "\u2260"),
    "outcome-NOT_MEASURED": ("none", "\u25cb"),
    "answer-held": ("good", "\u2713"),
    "answer-refuted": ("bad", "\u2717"),
    "answer-unknown": ("open", "?"),
    "answer-not-applicable": ("none", "\u2013"),
    "word-same": ("good", "="),
    "word-differs": ("open", "\u2260"),
}
# A column of more characters is given room; one of sentences gets rows of its own when there are
# many columns beside it.
_SHORT_CHARS, _WIDE_CHARS, _SENTENCE_CHARS, _MANY_COLUMNS = 14, 44, 70, 6


@cache
def _reader() -> MarkdownIt:
    # Words of a run are words: no HTML of theirs, no links, no pictures.
    reader = MarkdownIt("zero", {"html": False})
    return reader.enable(["heading", "list", "table", "backticks", "emphasis", "escape", "newline"])


def body(text: Markdown, language: str, *, lead: bool = False) -> Markup:
    """A section as HTML; paragraphs of the `lead` stand out, bold ones as a note."""
    tokens = _reader().parse(text)
    parts: list[str] = []
    while tokens:
        token = tokens[0]
        if token.type == "table_open":
            end = next(n for n, one in enumerate(tokens) if one.type == "table_close")
            parts.append(_table(tokens[:end], language))
            tokens = tokens[end + 1 :]
            continue
        if lead and token.type == "paragraph_open":
            kind = "note" if tokens[1].content.startswith("**") else "lead"
            token.attrSet("class", kind)
        parts.append(_reader().renderer.render([token], _reader().options, {}))
        tokens = tokens[1:]
    return Markup("".join(parts).strip())  # noqa: S704 - made by markdown-it, which escapes


def inline(text: Markdown, language: str) -> Markup:
    """One line with its bold and code parts; English inside Chinese says so."""
    html = _reader().renderInline(text)
    if (
        language != "en"
        and re.search("[A-Za-z]{2}", text)
        and not re.search("[\u3400-\u9fff]", text)
    ):
        html = f'<span lang="en">{html}</span>'
    return Markup(html)  # noqa: S704 - made by markdown-it, which escapes


def _table(tokens: Sequence[Token], language: str) -> str:
    rows: list[list[Markdown]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(Markdown(token.content))
    headers, *cells = rows
    head = "".join(f'<th scope="col">{inline(one, language)}</th>' for one in headers)
    longest = [max((len(row[n]) for row in cells), default=0) for n in range(len(headers))]
    styles = [_column_style([row[n] for row in cells], longest[n]) for n in range(len(headers))]
    if len(headers) > _MANY_COLUMNS and longest[-1] > _SENTENCE_CHARS:
        return _with_sentences(headers, cells, styles, language)
    shown = "".join(f"<tr>{_row(row, styles, language)}</tr>" for row in cells)
    return _framed(f"<table><thead><tr>{head}</tr></thead><tbody>{shown}</tbody></table>", language)


def _column_style(cells: Sequence[str], longest: int) -> str:
    """One style a column: numbers stand under each other only where all of it is numbers."""
    numbers = all(_NUMBER.fullmatch(one) for one in cells)
    kinds = [("num", numbers), ("wide", longest > _WIDE_CHARS), ("short", longest <= _SHORT_CHARS)]
    return " ".join(name for name, on in kinds if on)


def _framed(table: str, language: str) -> str:
    name = escape(say(language, "word-table"))
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{table}</div>\n'


def _with_sentences(
    headers: Sequence[Markdown],
    rows: Sequence[Sequence[Markdown]],
    styles: Sequence[str],
    language: str,
) -> str:
    """A table whose last column holds sentences: each stands in a row of its own, full width.

    On a phone every row becomes a card, its cells named by the column they are of.
    """
    head = "".join(f'<th scope="col">{inline(one, language)}</th>' for one in headers[:-1])
    kept = [" ".join(s for s in style.split() if s != "wide") for style in styles[:-1]]
    shown = []
    for row in rows:
        cells = [_cell(cell, one, language) for cell, one in zip(row[:-1], kept, strict=True)]
        named = "".join(
            cell.replace("<td", f'<td data-label="{escape(label)}"', 1)
            for cell, label in zip(cells, headers, strict=False)
        )
        sentence = f'<td colspan="{len(headers) - 1}">{inline(row[-1], language)}</td>'
        shown.append(f'<tr class="facts">{named}</tr><tr class="sentence">{sentence}</tr>')
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(shown)}</tbody>"
    return _framed(f'<table class="cards">{table}</table>', language)


def _row(cells: Sequence[Markdown], styles: Sequence[str], language: str) -> str:
    return "".join(_cell(cell, style, language) for cell, style in zip(cells, styles, strict=True))


def _cell(text: Markdown, style: str, language: str) -> str:
    if answer := answered(text):
        entry, behind = answer
        mark, sign = _SIGNS[entry]
        badge = f'<i aria-hidden="true">{sign}</i> {escape(say(language, entry))}'
        badge += f' <span lang="en">{behind}</span>' if behind else ""
        return f'<td><span class="badge {mark}">{badge}</span></td>'
    kind = f' class="{style}"' if style else ""
    return f"<td{kind}>{inline(text, language)}</td>"
