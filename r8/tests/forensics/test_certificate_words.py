"""The certificate is in both languages: every text a check can print, and the page as a whole."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from r8.cli.report import twins
from r8.forensics.rules import RULES
from r8.report.chinese import translated
from r8.resources import published_path
from r8.tests.report.test_document import campaign
from r8.tests.support.forensic_texts import printed_texts, texts_of

if TYPE_CHECKING:
    from pathlib import Path

    from r8.forensics.rule import Rule

FIELD = re.compile(r"\{(\w+)\}")
# Three words in a row are a sentence, or the wreck of one.
ENGLISH = re.compile(r"[A-Za-z]+'?[a-z]* [A-Za-z]+'?[a-z]* [A-Za-z]+")
TEXTS = printed_texts()


@pytest.mark.parametrize("text", sorted(TEXTS))
def test_every_text_of_a_check_has_both_languages(text: str) -> None:
    words = translated(text, "zh")
    assert words is not None, f"{TEXTS[text]}: add it to data/published/words-certificate.toml"
    assert not ENGLISH.search(_told(words)), f"{TEXTS[text]}: {words}"


def test_the_rules_print_as_many_texts_as_they_have_checks() -> None:
    """Reading texts out of the source has not quietly found nothing."""
    assert len(TEXTS) > 200
    assert "7 of 7 requests failed (7)" in TEXTS
    assert "7: 7 fatal of 7 lines that matter, first in line 7: 7" in TEXTS


def test_a_new_text_without_chinese_is_seen() -> None:
    source = (
        "def rule(case):\n"
        "    line = f'{case.n} moons seen'\n"
        "    line += f', {case.m} of them full' if case.m else ''\n"
        "    return [Check(arithmetic=line, otherwise='There is one moon.'),\n"
        "            missing('no moon', _why(case))]\n"
        "def _why(case) -> str:\n"
        "    return 'Clouds.' if case.clouds else 'It is day.'\n"
    )
    found = {text for text, _ in texts_of(source)}
    assert found == {
        "7 moons seen",
        "7 moons seen, 7 of them full",
        "There is one moon.",
        "no moon",
        "Clouds.",
        "It is day.",
    }
    assert {translated(text, "zh") for text in found} == {None}


@pytest.mark.parametrize("name", ["words-certificate.toml", "words-report.toml"])
def test_both_languages_of_a_form_have_the_same_fields(name: str) -> None:
    rows = tomllib.loads(published_path(name).read_text())["word"]
    for row in rows:
        assert set(FIELD.findall(row["en"])) == set(FIELD.findall(row["zh"])), row["en"]
        assert len(FIELD.findall(row["en"])) == len(set(FIELD.findall(row["en"]))), row["en"]
    assert len({row["en"] for row in rows}) == len(rows)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule_id)
def test_every_rule_has_a_chinese_title(rule: Rule) -> None:
    assert translated(rule.title, "zh") is not None


def test_marks_joined_checks_and_what_follows_them_are_told_apart() -> None:
    arithmetic = "drop returned 1 [refuted]; residency between drop and measurement not known"
    detail = "The drop failed: sh: drop: not found. No residency rows there."
    words = translated(f"`C3` REFUTED in `run-1`: {arithmetic} [unknown]. {detail}", "zh")
    assert words is not None
    assert words.startswith("`run-1` 的 `C3` 被推翻")
    assert "【被推翻】" in words
    assert "【未知】" in words
    # The host's own words stay as they are, in quotation marks.
    assert "「sh: drop: not found」" in words


def test_an_engines_line_is_quoted_and_does_not_swallow_what_follows() -> None:
    line = "a: 1 fatal of 5 lines that matter, first in line 3: ERROR: fell back; all is well"
    words = translated(f"{line} [refuted]; b: no engine log [unknown]", "zh")
    assert words is not None
    assert "「ERROR: fell back; all is well」【被推翻】" in words
    assert words.endswith("没有引擎日志【未知】")


def _told(html: str) -> str:
    """The text of a page without quotations, names in code, and markup."""
    plain = re.sub(r"「.*?」|<code>.*?</code>|`.*?`", " # ", html)
    return re.sub(r"<.+?>", " # ", plain)


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Chinese half of a report in which several rules are refuted."""
    root: Path = tmp_path_factory.mktemp("runs")
    runs = campaign(root, failures=2, resident_share=0.5, kv_mount_device="loop9")
    page = twins(runs, ())[1]
    return page[page.index('<main lang="zh-CN">') :]


@pytest.mark.parametrize("title", ["Certificate", "Certificate, with its arithmetic"])
def test_the_certificate_of_a_chinese_report_has_no_english_sentence(
    chinese: str, title: str
) -> None:
    heading = translated(title, "zh")
    begin = re.search(rf"<h2 [^>]+>{heading}</h2>", chinese)
    assert begin
    section = chinese[begin.end() :].partition("<h2 ")[0]
    assert "被推翻" in section
    # What is marked as English is the name of a run: it is the same in every language.
    left = re.findall(r'<span lang="en">(.+?)</span>', section)
    assert [one for one in left if not re.fullmatch(r"(\w+-)+c\d+|b\d+ [\w-]+ c\d+", one)] == []
    assert ENGLISH.findall(_told(section)) == []
    assert ENGLISH.search(_told("<td>the page cache was dropped</td>")), "this would be seen"
