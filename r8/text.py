"""The one filter for text: what a run brings becomes words of a page, a table or a terminal.

A run's strings are a stranger's: ids, names, log lines, reasons, texts of errors. Each target has
its function here, and whatever R8 prints or writes for people passes one of them:

    terminal   `visible` (one line), `page` (lines that R8 laid out)
    Markdown   `Markdown.of`
    HTML, SVG  `html` after `visible`; an id is `html_id`
    CSV        `csv_cell`
    JSON       `json_text`

What cannot be seen, or changes how others are seen, is shown as the escape Python would write it
with: control and format characters, blanks other than the space, private and unassigned ones, lone
surrogates, letters from right to left (a terminal sets R8's own numbers around them in another
order), marks without a letter or in a pile on one. JSON alone keeps every character.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Self

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Iterable

# Of one string of a run: a path has up to 4096 bytes; nothing longer is read by a person.
STRING_CHARS_MAX = 4096
ELLIPSIS = "\u2026"
# Marks on one letter: Vietnamese and Thai need two, Tibetan four; a flood covers other lines.
MARKS_MAX = 4
_MARKS = {"Mn", "Me"}
_RIGHT_TO_LEFT = {"R", "AL", "AN"}
# Letters, marks and symbols by category, and nothing to see: fillers, selectors, an empty pattern.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U000e0100-\U000e01ef]"
)
# What could begin or end Markdown: always, or only where the characters around it let it.
_MARKDOWN = re.compile(
    r"""[\[\]|~]
    |(?<!\s)\*|\*(?!\s)              # emphasis; never alone between blanks
    |\\(?=[!-/:-@\[-`{-~]|$)          # a backslash that would escape
    |(?<![^\W_])_|_(?![^\W_])         # emphasis; never inside a word
    |<(?=[A-Za-z/!?]|$)               # a tag, an autolink
    |&(?=[#\w]|$)                     # an entity
    |!(?=\[|$)                        # an image
    |:(?=//)|(?<=www)\.               # what GitHub makes a link of
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A backslash helps nothing against a backtick inside `code`, or a blank next to `**`.
_NO_BACKSLASH = re.compile("`|^ +| +$")
# Spreadsheets take a cell that begins so as a formula, or skip the blank before it.
_FORMULA = re.compile("\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_ID_REST = re.compile(r"[^A-Za-z0-9._-]")


class Visible(str):
    """Text that has passed the filter; joined and formatted with what has not, which passes it."""

    __slots__ = ()

    @classmethod
    def of(cls, value: object) -> Self:
        """The value as text of this target; unchanged where it is that already."""
        return value if isinstance(value, cls) else cls(cls._filtered(str(value)))

    @classmethod
    def _filtered(cls, text: str) -> str:
        return visible(text)

    def join(self, parts: Iterable[object], /) -> Self:
        """The parts, each filtered where it was not."""
        return type(self)(str.join(self, map(self.of, parts)))

    def format(self, *values: object) -> Self:  # type: ignore[override]  # by place alone
        """The values in the places `{}`, each filtered where it was not."""
        return type(self)(str.format(self, *map(self.of, values)))


class Markdown(Visible):
    """Markdown: what R8 wrote as it is; what a run brings, in a line or a cell, is words."""

    __slots__ = ()

    @classmethod
    def _filtered(cls, text: str) -> str:
        shown = _NO_BACKSLASH.sub(lambda one: f"\\x{ord(one[0][0]):x}" * len(one[0]), visible(text))
        return _MARKDOWN.sub(lambda one: "\\" + one[0], shown)


def visible(text: str, chars_max: int = STRING_CHARS_MAX) -> str:
    """One line of printable characters, at most `chars_max` of the text."""
    return _seen(text if len(text) <= chars_max else text[:chars_max] + ELLIPSIS)


def _seen(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = MARKS_MAX  # nothing to stand on at the beginning, or on an escape
    for char in text:
        marks = marks + 1 if unicodedata.category(char) in _MARKS else 0
        if marks <= MARKS_MAX and _is_seen(char):
            shown.append(char)
        else:
            shown.append(char.encode("unicode_escape").decode())
            marks = MARKS_MAX
    return "".join(shown)


def _is_seen(char: str) -> bool:
    left_to_right = unicodedata.bidirectional(char) not in _RIGHT_TO_LEFT
    return char.isprintable() and left_to_right and not _UNSEEN.match(char)


def page(text: str) -> str:
    r"""Lines that R8 laid out, whole: only its own `\n` and tabs are kept as they are."""
    return "\n".join("\t".join(map(_seen, line.split("\t"))) for line in text.split("\n"))


def html(text: str) -> Markup:
    """Text between tags or inside an attribute."""
    return escape(visible(text))


def html_id(text: str) -> str:
    """An id of an element: no blank, and two texts have never the same one."""
    return _ID_REST.sub(lambda one: f"%{ord(one[0]):x}%", text)


def csv_cell(value: object) -> object:
    """A cell of a CSV file: numbers as they are; text visible, an apostrophe before a formula."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return visible(f"'{text}" if formula else text)


def json_text(value: Any) -> str:
    """One JSON value in ASCII, no control character among it; a number without end is text."""
    text = json.dumps(_plain(value), indent=1, allow_nan=False, default=str)
    return text.replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
