"""The filters for text: nothing of a stranger reaches a target as anything but words."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from r8 import console
from r8.report.html import _PAGES as PAGES
from r8.text import (
    ELLIPSIS,
    MARKS_MAX,
    STRING_CHARS_MAX,
    Markdown,
    Visible,
    csv_cell,
    html,
    html_id,
    json_text,
    page,
    visible,
)

ROOT = Path(__file__).resolve().parents[1]
# All of Unicode, lone surrogates among it, and often what is dangerous in some target.
PIECES = st.sampled_from(
    [
        *("\x1b[2J", "\x1b]0;t\x07", "\x9b31m", "\x7f", "\r", "\n", "\t", "\x00", "\u2028"),
        *("\u202e", "\u2066", "\u200b", "\ufeff", "\ud800", "\udfff", "\u05d0", "\u0661"),
        *("\u0301" * 9, "\ufe0f", "\u3164", "\U000e0041", "\ue000", "\u3000"),
        *("<meta http-equiv=refresh>", '"><style>', "<!--", "&lt;", "&#x3c;", "<a:b>", "<h@e.x>"),
        *("![i](http://e.x/i)", "[a](b)", "[a]", "[a]: b", "http://e.x", "www.e.x", "**", "*"),
        *("_", "__", "~~", "`", "``", "```", "|", "\\", "\\\\", "\\|", "#", "# ", "- ", "1. "),
        *(">", "=", "-", "+", "@", "'", '"', " ", "a", "b ", "\u4e2d", "\u00e9", "=1+1", "\uff1d"),
    ]
)
CHARS = st.characters(exclude_categories=())
TEXTS = st.lists(st.one_of(PIECES, CHARS), max_size=12).map("".join)
FEW = settings(max_examples=150, deadline=None)


def is_clean(text: str) -> bool:
    """Whether a terminal shows every character, and each where it stands."""
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.category(char) in {"Mn", "Me"} else 0
        if not char.isprintable() or marks > MARKS_MAX:
            return False
        if unicodedata.bidirectional(char) in {"R", "AL", "AN"}:
            return False
    return True


@pytest.mark.parametrize("text", ["\x1b", "\n", "\x9b", "\u202e", "\u05d0", "e" + "\u0301" * 5])
def test_what_a_terminal_obeys_is_not_clean(text: str) -> None:
    assert not is_clean(text)


@FEW
@given(TEXTS)
def test_what_is_visible_is_one_clean_line_and_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    assert is_clean(shown)
    assert visible(shown) == shown
    assert page(f"{shown}\n\t{text}").split("\n\t", 1)[0] == shown
    shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b[HPASS", r"\x1b[2J\x1b[HPASS"),
        ("a\nb\tc\r\x7f\x9b", r"a\nb\tc\r\x7f\x9b"),
        ("\u202egnp.exe\u2066", r"\u202egnp.exe\u2066"),
        ("a\u200bb\ufeff\u2028", r"a\u200bb\ufeff\u2028"),
        ("\ud800", r"\ud800"),
        ("\u05e9\u05dc 12", r"\u05e9\u05dc 12"),
        ("\u0301a", r"\u0301a"),
        ("e" + "\u0301" * 6, "e" + "\u0301" * 4 + r"\u0301" * 2),
        ("\u7f13\u5b58 caf\u00e9 \u2264 \u2713", "\u7f13\u5b58 caf\u00e9 \u2264 \u2713"),
        ("Vie\u0302\u0323t", "Vie\u0302\u0323t"),
        ("a\u3164b\ufe0f", r"a\u3164b\ufe0f"),
    ],
)
def test_an_escape_is_shown_and_a_letter_is_left(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_string_without_end_is_cut_and_says_so() -> None:
    assert visible("x" * STRING_CHARS_MAX) == "x" * STRING_CHARS_MAX
    assert visible("x" * (STRING_CHARS_MAX + 1)) == "x" * STRING_CHARS_MAX + ELLIPSIS
    assert len(page("x" * (STRING_CHARS_MAX + 1))) == STRING_CHARS_MAX + 1
    cell = console.table([["x" * 5000]], ["h"]).splitlines()[-1]
    assert cell == "x" * console.CELL_CHARS_MAX + ELLIPSIS


# R8's own Markdown around a string of a run, as the catalogues and the reports have it.
AROUND = (
    "{}",
    "`Q1` REFUTED in `{}`: **{}**, {} [0.1, 0.2] (n = {}).",
    "* `{}`: {} <= 3\n* **{} / {}**",
    "# Report: {}\n\n{}\n\nCampaign `{}`:",
    "| a | {} |\n|---|---|\n| `{}` | {} |",
)
HARD = MarkdownIt("gfm-like", {"html": True, "linkify": False})


def outline(text: str) -> list[tuple[str, str]]:
    """The tokens of a Markdown text by type and tag, all words taken together."""
    found: list[tuple[str, str]] = []
    for token in HARD.parse(text):
        for one in token.children if token.type == "inline" and token.children else [token]:
            if one.type not in {"text", "softbreak"} or found[-1:] != [("text", "")]:
                found.append(("text", "") if one.type == "softbreak" else (one.type, one.tag))
    return [one for one in found if one[0] != "text"]


@FEW
@given(TEXTS, st.sampled_from(AROUND))
def test_a_string_in_markdown_changes_no_structure(text: str, around: str) -> None:
    hostile = Markdown(around).format(*[f"x{text}"] * around.count("{}"))
    honest = Markdown(around).format(*["x"] * around.count("{}"))
    assert outline(hostile) == outline(honest)
    assert not re.search(r"(?<!\\)://|www\.", hostile)


def test_what_r8_wrote_in_markdown_stays_and_a_string_is_escaped_once() -> None:
    name = Markdown("**{} / {}**").format("a*b", Markdown("`c`"))
    assert name == r"**a\*b / `c`**"
    assert Markdown("\n").join([name, "<b>"]) == "**a\\*b / `c`**\n\\<b>"
    assert Markdown.of(Visible("a|b")) == r"a\|b"
    assert Markdown.of("device_read_bytes <= 3 & n * t") == "device_read_bytes <= 3 & n * t"


@FEW
@given(TEXTS)
def test_html_and_ids_are_words_and_ids_never_meet(text: str) -> None:
    assert not set(html(text)) & set("<>\"'")
    assert not set(html_id(text)) - set(html_id("").join(map(chr, range(0x21, 0x7F))))
    assert html_id(text) != html_id(text + "%20%") != html_id(text + " ")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " =", "\uff1d", "\uff0b"])
def test_a_formula_in_a_csv_cell_is_a_text(start: str) -> None:
    assert str(csv_cell(f"{start}cmd|' /C calc'!A0")).startswith("'")


@pytest.mark.parametrize("number", [-1, -0.5, True, "-0.5", "+3", "-1e9", None, "c-b0"])
def test_a_number_in_a_csv_cell_stays_a_number(number: object) -> None:
    assert csv_cell(number) == number


@FEW
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_csv_keeps_its_cells(texts: list[str]) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([csv_cell(one) for one in texts])
    assert is_clean(out.getvalue().rstrip("\n"))
    (row,) = csv.reader(io.StringIO(out.getvalue()))
    assert len(row) == len(texts)
    assert not [one for one in row if one[:1] in set("=@\t\r\uff1d\uff0b\uff0d\uff20")]


@FEW
@given(st.lists(TEXTS, max_size=3))
def test_json_is_ascii_without_controls_and_loses_nothing(value: list[str]) -> None:
    text = json_text(value)
    assert text.isascii()
    assert is_clean(text.replace("\n", ""))
    # JSON writes a character beyond the BMP as two halves: two halves that met by chance are one.
    joined = [
        one.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for one in value
    ]
    assert json.loads(text) == joined
    assert json.loads(json_text({"a": value})) == {"a": joined}
    assert json.loads(json_text([float("inf"), (1,)])) == ["inf", [1]]


@FEW
@given(TEXTS)
def test_every_way_to_a_terminal_is_filtered(text: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        patch.setattr("sys.stderr", err)
        console.line(text)
        console.page(console.table([[text, 1]], [text, "n"]))
        console.print_csv([[text]], [text])
        console.print_json({text: text})
        console.complain(text, text)
        console.progress(text)
    for printed in (out.getvalue(), err.getvalue()):
        assert is_clean(printed.replace("\n", ""))
    assert len(err.getvalue().splitlines()) == 3


# Programs of their own, run by another interpreter or before R8's packages are there: they print
# what a program reads, or one line of an installer.
PROGRAMS = {
    *("r8/lab/component/bench.py", "r8/lab/patching/agent.py", "r8/lab/rehearsal/bench_serve.py"),
    *("r8/lab/rehearsal/tiny_model.py", "r8/lab/rehearsal/stack.py"),
    *("r8/lab/rehearsal/teardown.py", "r8/lab/machine/supervisor.py"),
    *("r8/cli/limited.py", "r8/crash.py"),  # where the console cannot be, or is at fault
    "r8/scenarios/smoke_engine.py",
}


def writers(source: str) -> list[int]:
    """Lines of a module that write to a stream by themselves."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id == "print":
            found.append(node.lineno)
        if isinstance(node, ast.Attribute) and re.fullmatch(
            r"sys\.std(out|err)\.(?!flush|fileno|isatty)\w+", ast.unparse(node)
        ):
            found.append(node.lineno)
    return found


def test_only_the_console_prints() -> None:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT.parent).as_posix()
        if name.startswith(("r8/tests/", "r8/scenarios/test_")) or name in PROGRAMS:
            continue
        if name not in {"r8/console.py", "r8/scenarios/conftest.py"}:
            found[name] = writers(path.read_text(encoding="utf-8"))
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_bare_print_and_a_bare_write_are_seen() -> None:
    assert writers("import sys\nprint(1)\nsys.stderr.write('x')\nsys.stdout.flush()\n") == [2, 3]


# Where a text is said to be HTML already, and why it is.
MARKUP = {
    "r8/report/markdown.py": 2,  # of markdown-it, which escapes
    "r8/report/html.py": 2,  # the policy and the style sheet, both of R8
    "r8/report/charts/draw.py": 1,  # its words passed `html`
}


def test_nothing_else_is_said_to_be_html_already() -> None:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT.parent).as_posix()
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Markup"
        ]
        if calls and not name.startswith("r8/tests/"):
            found[name] = len(calls)
    assert found == MARKUP
    assert PAGES.autoescape is True
    for template in ROOT.rglob("*.j2"):
        text = template.read_text(encoding="utf-8")
        assert "safe" not in text
        assert "autoescape" not in text
