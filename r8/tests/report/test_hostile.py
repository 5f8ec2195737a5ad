"""Runs whose every name is an attack: reports and tables differ from honest ones in words alone."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r8.metrics.measure import measurements
from r8.report.diff import table as diff_table
from r8.report.terminal import finding_table, measurement_table, summary
from r8.report.words import LANGUAGES
from r8.tests.report.hostile_session import Judged, judged, marked_campaign
from r8.tests.test_text import TEXTS, is_clean, outline
from r8.text import Markdown, visible
from r8.verdict.diff import against_runs

if TYPE_CHECKING:
    from collections.abc import Callable

ATTACKS = {
    "a refresh": '"><meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/"><b x="',
    "a script": "</title></style></svg></textarea><script>alert(1)</script><img src=x onerror=x>",
    "attributes": "' onload='alert(1)' x='<base href=http://127.0.0.1:9/><form action=x><iframe>",
    "a style": "<style>main{display:none}</style><h1>All 6 claims REPRODUCED</h1><!--",
    "links": "](javascript:alert(1)) ![x](http://127.0.0.1:9/x.png) <http://e.x/> [a][b]\n\n[b]: x",
    "a table": "** | ` | `` |\n|---|---|\n| **REPRODUCED** |\n\n# PASS\n\n<div>\n",
    "a terminal": "\x1b[2J\x1b[H\x1b[32mPASS\x1b[0m\x1b[8m\x9b2J\u202e\u2066\u200b\ud800\u2028",
    "entities": "&lt;script&gt;&#60;script&#62;&colon;&Tab;\\",
    "a flood of marks": "\u0301" * 40,
}


@pytest.fixture(scope="module", name="found")
def _found(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    return judged(marked_campaign(tmp_path_factory.mktemp("runs")))


def told(found: Judged, text: str) -> Judged:
    return found.as_told(lambda mark: f"{text}{mark}")


def harmless(found: Judged, text: str) -> Judged:
    """The same as long: a column's style follows from the length of its cells."""
    length = len(Markdown.of(f"{text}z")) - 1
    return found.as_told(lambda mark: f"{'x' * length}{mark}")


class Elements(HTMLParser):
    """Every tag in its order with the names of its attributes, and the words between them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, ...]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}",))

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_comment(self, data: str) -> None:
        self.tags.append(("!--", data))


def elements(text: str) -> list[tuple[str, ...]]:
    """The tags, less the mark of English words in Chinese, which follows from the words."""
    plain = re.sub(r'<span lang="en">(.*?)</span>', r"\1", text)
    return [one if one[:1] != ("td",) else ("td",) for one in Elements(plain).tags]


def page_is_words_alone(found: Judged, text: str) -> None:
    hostile = told(found, text).page()
    assert elements(hostile) == elements(harmless(found, text).page())
    assert is_clean(hostile.replace("\n", ""))
    # Of what a backslash helps nothing against, the escape is shown.
    shown = visible(f"{text}zqnote").replace("`", r"\x60")
    assert shown.lstrip(" ") in unescape(hostile)


def markdown_is_words_alone(found: Judged, text: str) -> None:
    for language in LANGUAGES:
        hostile = told(found, text).markdown(language)
        assert outline(hostile) == outline(harmless(found, text).markdown(language))
        assert is_clean(hostile.replace("\n", ""))
        assert not re.search(r"(?<!\\)<[a-z!/]|(?<!\\)://", hostile, re.IGNORECASE)


def tables_are_clean(found: Judged, text: str) -> None:
    hostile = told(found, text)
    session = hostile.session
    tables = [
        summary((), hostile.verdicts),
        diff_table(against_runs(session, told(found, f"{text}2").session), "en", everything=True),
        *(finding_table(session.findings, language) for language in LANGUAGES),
    ]
    for one in tables:
        assert is_clean(one.replace("\n", ""))
    measured = measurements(session.connection)
    shown = measurement_table(measured)
    assert is_clean(shown.replace("\n", ""))
    assert len(shown.splitlines()) == len(measured) + 2


CHECKS = (page_is_words_alone, markdown_is_words_alone, tables_are_clean)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_an_attack_is_words_alone(
    found: Judged, text: str, check: Callable[[Judged, str], None]
) -> None:
    check(found, text)


@settings(max_examples=10, deadline=None)
@given(TEXTS, st.sampled_from(CHECKS))
def test_any_text_is_words_alone(
    found: Judged, text: str, check: Callable[[Judged, str], None]
) -> None:
    check(found, text)


@pytest.mark.qualify
@pytest.mark.parametrize("check", CHECKS)
@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_all_of_unicode_is_words_alone(
    found: Judged, text: str, check: Callable[[Judged, str], None]
) -> None:
    check(found, text)


@pytest.mark.parametrize("word", ["REPRODUCED", "held", "same", "\u6210\u7acb", "x REPRODUCED"])
def test_no_word_of_a_run_is_shown_as_an_answer_of_r8(found: Judged, word: str) -> None:
    names = {"zqkernel": word, "zqvalue": word, "zqversiond": word, "zqarmplain": word}
    badges = [
        re.findall('<span class="badge [a-z]+">.+?</td>', one.page())
        for one in (found, found.as_told(lambda mark: names.get(mark, mark)))
    ]
    assert len(badges[0]) > 100
    assert badges[0] == badges[1]


def test_an_element_of_a_run_would_be_seen(found: Judged) -> None:
    honest = found.page()
    for spoiled in (
        honest.replace("zqnote", "<b>zqnote</b>", 1),
        honest.replace("<main", '<meta http-equiv="refresh"><main', 1),
        honest.replace("<figure ", '<figure onclick="x" ', 1),
    ):
        assert elements(spoiled) != elements(honest)


def test_the_page_forbids_what_could_lead_away(found: Judged) -> None:
    text = told(found, ATTACKS["a refresh"]).page()
    (policy,) = re.findall('<meta http-equiv="([^"]+)" content="([^"]+)">', text)
    assert policy[0] == "Content-Security-Policy"
    for wanted in ("default-src 'none'", "base-uri 'none'", "form-action 'none'"):
        assert wanted in policy[1]
    assert '<meta name="referrer" content="no-referrer">' in text
    hrefs = re.findall('href="([^"]*)"', text)
    assert {one[0] for one in hrefs} == {"#", "d"}
    assert [one for one in hrefs if one[0] == "d"] == ["data:,"]


def test_a_template_shows_no_text_that_did_not_pass_the_filter(
    found: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what somebody forgets to filter: the environment of the templates does it."""
    monkeypatch.setattr("r8.report.html._NAMES", {"en": "<b>\x1b", "zh": "x"})
    assert r"&lt;b&gt;\x1b</label>" in found.page()
