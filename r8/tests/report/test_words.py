"""The catalogues: complete in both languages by id, and every id is one that the code uses."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fluent.syntax import ast as ftl
from fluent.syntax import parse
from fluent.syntax.visitor import Visitor

from r8.audit.rules import RULES as AUDIT_RULES
from r8.forensics.rules import RULES
from r8.message import Check, Fact, Message, Op, compared, missing, not_applicable
from r8.model import Basis, Outcome
from r8.report.words import (
    CATALOGUES,
    LANGUAGES,
    OF_EVERY_CHECK,
    OTHERWISE,
    InMarkdown,
    render,
    render_check,
    render_otherwise,
    render_part,
    render_reason,
    shown,
)
from r8.resources import query_names, query_text
from r8.text import Markdown

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parents[2]
MAKERS = {
    "Message": 0,
    "compared": 2,
    "missing": 1,
    "not_applicable": 1,
    "say": 1,
}  # where the id stands
KEYWORDS = {"message", "id"}


class Variables(Visitor):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_VariableReference(self, node: ftl.VariableReference) -> None:  # noqa: N802
        self.names.add(node.id.name)


def variables(pattern: ftl.Pattern) -> frozenset[str]:
    found = Variables()
    found.visit(pattern)
    return frozenset(found.names)


Entries = dict[str, dict[str, frozenset[str]]]


def entries(language: str) -> Entries:
    """Id to its texts ("" and attributes), each with the facts it names."""
    found: Entries = {}
    for path in sorted((CATALOGUES / language).glob("*.ftl")):
        for entry in parse(path.read_text(encoding="utf-8")).body:
            assert not isinstance(entry, ftl.Junk), f"{path.name}: {entry.content}"
            if isinstance(entry, ftl.Message):
                assert entry.id.name not in found, f"{path.name}: {entry.id.name} is there twice"
                assert entry.value is not None, entry.id.name
                texts = {"": variables(entry.value)}
                texts |= {one.id.name: variables(one.value) for one in entry.attributes}
                found[entry.id.name] = texts
    return found


def ids_used(source: str) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Ids that a module's text makes messages of, with the facts it gives where it lists them."""
    tree = ast.parse(source)
    ours = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
    makers = {"r8.message", "r8.report.words"}
    names = {alias.name for one in ours if one.module in makers for alias in one.names}
    if not names & {"Check", *MAKERS}:
        return
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        keywords = {one.arg: one.value for one in call.keywords}
        if name in {"missing", "not_applicable", "say"}:
            given = None if None in keywords else frozenset(one for one in keywords if one)
        else:
            given = _keys(keywords.get("facts"))
        nodes = [keywords[one] for one in KEYWORDS if one in keywords]
        if name in MAKERS and len(call.args) > MAKERS[name]:
            nodes.append(call.args[MAKERS[name]])
        for node in nodes:
            yield from ((one, given) for one in constants(node))


def _keys(node: ast.expr | None) -> frozenset[str] | None:
    if node is None:
        return frozenset()
    if not isinstance(node, ast.Dict):
        return None
    keys = [one.value for one in node.keys if isinstance(one, ast.Constant)]
    return frozenset(map(str, keys)) if len(keys) == len(node.keys) else None


def constants(node: ast.AST) -> set[str]:
    """Texts an expression can be: both branches of a choice, not its condition."""
    if isinstance(node, ast.IfExp):
        return constants(node.body) | constants(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def reasons_used(sql: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Ids that a query file makes reasons of, with the facts it gives."""
    for found in re.finditer(r"\brefuse(_some)?\(\s*'([^']+)'", sql):
        if found[1]:
            yield found[2], frozenset({"n", "of"})
        else:
            call = sql[found.end() : _end_of_call(sql, found.end())]
            yield found[2], frozenset(re.findall(r"'\s*(\w+)='", call))


def _end_of_call(sql: str, at: int) -> int:
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(sql[at], 0)
        at += 1
    return at


def product() -> list[Path]:
    return sorted(one for one in PACKAGE.rglob("*.py") if "tests" not in one.parts)


ENTRIES = {language: entries(language) for language in LANGUAGES}
USED = [
    (f"{path.relative_to(PACKAGE)}", entry, given)
    for path in product()
    for entry, given in ids_used(path.read_text(encoding="utf-8"))
]
REASONS = [
    (name, entry, given)
    for name in query_names()
    for entry, given in reasons_used(query_text(name))
]
USED += REASONS


def test_both_languages_have_the_same_entries_texts_and_facts() -> None:
    english, chinese = ENTRIES["en"], ENTRIES["zh"]
    assert set(english) == set(chinese)
    assert {one: english[one] for one in english if english[one] != chinese[one]} == {}
    files = [sorted(one.name for one in (CATALOGUES / each).iterdir()) for each in LANGUAGES]
    assert files[0] == files[1]


def test_every_id_in_the_code_is_in_the_catalogues() -> None:
    assert [one for one in USED if one[1] not in ENTRIES["en"]] == []


def test_every_fact_an_entry_names_is_given() -> None:
    lacking = [
        (where, entry, sorted(wanted - given))
        for where, entry, given in USED
        if given is not None
        for wanted in [frozenset().union(*ENTRIES["en"][entry].values()) - set(OF_EVERY_CHECK)]
        if not wanted <= given
    ]
    assert lacking == []


def test_no_entry_is_left_that_nothing_uses() -> None:
    texts = {
        node.value
        for path in product()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    rules = {rule.entry for rule in (*RULES, *AUDIT_RULES)}
    reasons = {entry for _, entry, _ in REASONS}
    # One entry a word of these two lists, by its own name.
    words = {f"outcome-{one}" for one in Outcome} | {f"basis-{one}" for one in Basis}
    assert words <= set(ENTRIES["en"])
    assert set(ENTRIES["en"]) - texts - rules - reasons - words == set()


def test_the_reasons_of_a_query_are_seen_where_they_are_made() -> None:
    sql = "refuse('a_b', n < (1 + 2), 'n=' || n || ' load_s=' || s) refuse_some('c_d', k, n)"
    assert list(reasons_used(sql)) == [
        ("a_b", frozenset({"n", "load_s"})),
        ("c_d", frozenset({"n", "of"})),
    ]
    assert len(REASONS) > 40


def test_a_reason_is_printed_after_what_it_is_about() -> None:
    text = "requests_without_lookup n=2 of=16"
    assert render_reason(text) == "2 of 16 measured requests have no lookup line"
    assert render_reason('no_values on="warm ttft"') == "warm ttft: no values in this phase"
    assert (
        render_reason("no_sample_after on=a:1:10", "zh") == "a:1:10\uff1a阶段结束时刻及之后没有采样"
    )


def test_a_new_id_is_seen_where_it_is_made() -> None:
    source = (
        "from r8.message import Check, Message, missing\n"
        "Check(quantity='q', message='c99-a' if many else 'c99-b', facts={'n': 1})\n"
        "missing('q', 'c99-gone', device=name)\n"
        "compared('q', (n, '<=', 1), 'c99-most', facts={'n': 1})\n"
        "Message(id='c99-word', facts=found)\n"
    )
    assert set(ids_used(source)) == {
        ("c99-a", frozenset({"n"})),
        ("c99-b", frozenset({"n"})),
        ("c99-gone", frozenset({"device"})),
        ("c99-most", frozenset({"n"})),
        ("c99-word", None),
    }


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_048_575, "bytes", "1048575 B"),
        (1_048_576, "bytes", "1 MiB"),
        (805_310_784, "bytes", "768 MiB"),
        (805_355_520.4, "bytes", "768.05 MiB"),
        (1_073_741_823, "bytes", "1024 MiB"),
        (1_610_612_736, "bytes", "1.5 GiB"),
        (-2_097_152, "bytes", "-2 MiB"),
        (999_999_999, "ns", "1000.000 ms"),
        (1_000_000_000, "ns", "1.000 s"),
        (0.05, "share", "5%"),
        (0.001, "share", "0.1%"),
        (0.99994, "ratio", "0.9999"),
        (123_400_000.0, "bytes/s", "123.4 MB/s"),
        (16, "tokens", "16"),
        (0.1234567, "", "0.123457"),
        (True, "", "true"),
        (None, "bytes", "?"),
        ("loop0", "bytes", "loop0"),
    ],
)
def test_a_value_is_written_with_its_unit(value: Fact, unit: str, text: str) -> None:
    assert shown(value, unit) == text


@pytest.mark.parametrize(
    ("measured", "op", "limit", "sides"),
    [
        (33_554_432, "==", 33_554_432, "32 MiB = 32 MiB"),
        (33_554_431, "==", 33_554_432, "33554431 B = 33554432 B"),
        (25_165_824, "==", 33_554_432, "24 MiB = 32 MiB"),
    ],
)
def test_rounded_sizes_never_hide_that_two_sides_differ(
    measured: int, op: Op, limit: int, sides: str
) -> None:
    facts = {"instance": "a"}
    check = compared("bytes", (measured, op, limit), "c11-read-bytes", unit="bytes", facts=facts)
    assert sides in render_check(check)
    for language in LANGUAGES:
        assert all(side in render_check(check, language) for side in sides.split(" = "))


def test_a_range_that_rounds_to_what_was_measured_is_written_in_bytes() -> None:
    facts: dict[str, Fact] = {"device": "md0", "read_bytes": 33_554_432}
    limit = (33_554_433, 33_554_440)
    check = compared(
        "bytes", (33_554_432, "within", limit), "c4-members", unit="bytes", facts=facts
    )
    assert "33554432 B" in render_check(check)
    assert "33554433 B to 33554440 B" in render_check(check)


def test_what_is_not_in_the_catalogues_is_no_text() -> None:
    with pytest.raises(LookupError, match="no entry 'c99-none'"):
        render(Message(id="c99-none"))
    with pytest.raises(LookupError, match="has no because"):
        render_part("mark-unknown", "because", {})
    with pytest.raises(ValueError, match="entry 'c3-drop' of 'en': Unknown external: measured"):
        render(Message(id="c3-drop"))


@pytest.mark.parametrize(
    ("check", "english", "chinese"),
    [
        (missing("x", "mark-unknown"), "[unknown] [unknown]", "【未知】 【未知】"),
        (not_applicable("x", "mark-unknown"), "[unknown] [does not apply]", "【未知】 【不适用】"),
    ],
)
def test_a_check_is_marked_by_its_answer(check: Check, english: str, chinese: str) -> None:
    assert (render_check(check, "en"), render_check(check, "zh")) == (english, chinese)


def test_a_check_that_held_needs_no_explanation() -> None:
    held = Check(quantity="x", measured=1, op="==", limit=1, message="mark-unknown")
    assert (render_check(held), render_otherwise(held)) == ("[unknown]", "")
    assert OTHERWISE not in ENTRIES["en"]["mark-unknown"]
    assert render_otherwise(missing("x", "mark-unknown")) == ""


def test_facts_that_are_words_pass_the_filter_of_their_target() -> None:
    facts = {"id": "a`b\x1b[2J\n*c*"}
    plain = render(Message(id="note-campaign", facts=facts))
    assert plain == "Campaign `a`b\\x1b[2J\\n*c*`:"
    marked = render(Message(id="note-campaign", facts=facts), InMarkdown("en"))
    assert marked == "Campaign `a\\x60b\\x1b\\[2J\\n\\*c\\*`:"
    assert isinstance(marked, Markdown)


def test_what_is_rendered_already_is_not_escaped_again() -> None:
    inner = render(Message(id="note-campaign", facts={"id": "x"}), InMarkdown("en"))
    outer = render(Message(id="note-campaign", facts={"id": inner}), InMarkdown("en"))
    assert inner == "Campaign `x`:"
    assert str(inner) in outer


def test_a_name_of_no_letter_ends_where_it_stands_in_markdown() -> None:
    assert render(Message(id="note-campaign", facts={"id": ""}), InMarkdown("en")) == (
        "Campaign `-`:"
    )
