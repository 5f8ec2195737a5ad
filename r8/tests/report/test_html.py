"""The page: nothing from outside, both languages whole, the same bytes, readable by everybody."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from r8.claims.reader import load_claims
from r8.cli import main as cli
from r8.cli.report import twins
from r8.report import style as html_style
from r8.report.charts.draw import ARM_STYLES, Drawing, Scale, coordinate, label
from r8.report.document import report
from r8.report.markdown import body, inline
from r8.report.words import LANGUAGES
from r8.tests.report.test_document import campaign
from r8.text import Markdown

if TYPE_CHECKING:
    from pathlib import Path

    from r8.evidence.reader import Evidence

# WCAG 2.1, 1.4.3 (text) and 1.4.11 (what a chart is made of).
TEXT_CONTRAST, SHAPE_CONTRAST = 4.5, 3.0
VOID = {"meta", "link", "input", "br"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Evidence]:
    return campaign(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def pair(runs: list[Evidence]) -> tuple[str, str]:
    return twins(runs, ())


@pytest.fixture(scope="module")
def page(pair: tuple[str, str]) -> str:
    return pair[1]


class Outline(HTMLParser):
    """Tags in order, those left open, ids, and words by language."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.faults: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack.pop() != tag:
            self.faults.append(tag)


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    found = Outline()
    found.feed(page)
    return found


def test_the_page_is_the_same_to_the_byte(runs: list[Evidence], pair: tuple[str, str]) -> None:
    assert twins(list(reversed(runs)), ()) == pair


def test_every_element_is_closed_and_every_id_is_unique(outline: Outline) -> None:
    assert outline.faults == []
    assert outline.stack == []
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_loads_nothing_and_runs_nothing(outline: Outline, page: str) -> None:
    assert {tag for tag, _ in outline.tags} & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
    } == set()
    for tag, attributes in outline.tags:
        for name in ("src", "href", "srcset", "data", "action", "xlink:href"):
            address = attributes.get(name)
            assert address is None or address.startswith(("#", "data:")), (tag, address)
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_links_of_the_contents_lead_somewhere(outline: Outline) -> None:
    ids = {attributes.get("id") for _, attributes in outline.tags}
    links = [attributes["href"] for tag, attributes in outline.tags if tag == "a"]
    assert links
    assert {str(link)[1:] for link in links} <= ids


def test_every_chart_is_there_in_both_languages_with_a_title_of_its_own(page: str) -> None:
    for language in LANGUAGES:
        for name in ("claims", "ttft-c16", "throughput", "time-c-b0-patched-c16"):
            assert f'id="{language}-{name}-t"' in page
    charts = re.findall(r"<svg.+?</svg>", page, re.DOTALL)
    assert len(charts) == 2 * (3 + 6)
    for chart in charts:
        root = ET.fromstring(chart)  # noqa: S314 - made here
        title, about = root.find("title"), root.find("desc")
        assert title is not None
        assert about is not None
        assert title.text
        assert about.text
        assert root.get("role") == "img"
        assert root.get("aria-labelledby") == f"{title.get('id')} {about.get('id')}"


def test_a_chart_holds_no_number_that_is_none(page: str) -> None:
    for chart in re.findall(r"<svg.+?</svg>", page, re.DOTALL):
        assert not re.search(r"nan|inf\b|None", chart)


def test_the_verdicts_come_first_and_every_section_of_the_twin_is_in_the_page(
    pair: tuple[str, str],
) -> None:
    text, page = pair
    english = page[page.index('<main lang="en">') : page.index('<main lang="zh-CN">')]
    titles = [re.sub("<.+?>", "", one) for one in re.findall(r"<h2 .+?>(.+?)</h2>", english)]
    assert titles[0] == "Verdicts"
    wanted = [one.replace("`", "") for one in re.findall("^## (.+)$", text, re.MULTILINE)]
    assert [title for title in titles if title in wanted] == wanted
    assert set(titles) - set(wanted) == {"What happened, run by run"}


def test_every_number_of_the_twin_is_in_the_page(pair: tuple[str, str]) -> None:
    text, page = pair
    words = re.sub("<.+?>", " ", page).replace("&gt;", ">").replace("&lt;", "<")
    numbers = set(re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", text))
    assert len(numbers) > 60
    assert [one for one in numbers if one not in words] == []


def test_the_twin_carries_every_rule_with_its_arithmetic(pair: tuple[str, str]) -> None:
    text = pair[0]
    section = text[text.index("## Certificate, with its arithmetic") :]
    assert section.count("### c-b") == 6
    assert "loop0 read 16 MiB" in section or "engine hit" in section


def test_the_chinese_report_has_the_numbers_and_sections_of_the_english(
    runs: list[Evidence], pair: tuple[str, str]
) -> None:
    chinese = report(runs, load_claims(), language="zh")
    assert chinese.count("\n## ") == pair[0].count("\n## ")
    assert chinese.count("|---") == pair[0].count("|---")
    numbers = [re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", one) for one in (pair[0], chinese)]
    assert numbers[0] == numbers[1]
    titles = re.findall("^##? (.+)$", chinese, re.MULTILINE)
    assert [one for one in titles if not re.search("[\u4e00-\u9fff]", one)] == []


def test_what_stays_english_inside_chinese_says_so() -> None:
    assert inline(Markdown("no such sentence"), "zh") == '<span lang="en">no such sentence</span>'
    assert inline(Markdown("1.5"), "zh") == "1.5"


def test_the_page_opens_in_the_language_that_was_asked_for(
    runs: list[Evidence], tmp_path: Path
) -> None:
    out = tmp_path / "report.html"
    assert cli.main(["report", str(runs[0].path.parent), "--lang", "zh", "-o", str(out)]) == 0
    text = out.read_text()
    assert text.startswith('<!doctype html>\n<html lang="zh-CN">')
    assert 'id="show-zh" checked' in text
    assert out.with_suffix(".md").read_text().startswith("# R8 report")


def test_a_report_under_a_strange_name_is_a_usage_error(
    runs: list[Evidence], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(runs[0].path), "-o", str(tmp_path / "r.pdf")]) == 4
    assert "*.md or *.html" in capsys.readouterr().err


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["LIGHT", "DARK"])
def test_text_and_shapes_stand_out_from_their_ground(theme: str) -> None:
    colours = getattr(html_style, theme)
    texts = [("ink", "ground"), ("ink", "panel"), ("quiet", "ground"), ("link", "ground")]
    texts += [("ink", "cold"), ("ink", "warm"), ("quiet", "cold"), ("quiet", "allowed")]
    texts += [(one, f"{one}-ground") for one in ("good", "bad", "open", "none")]
    for one, testbed in texts:
        assert contrast(colours[one], colours[testbed]) >= TEXT_CONTRAST, (one, testbed)
    shapes = [(f"a{number}", "ground") for number in range(ARM_STYLES)]
    shapes += [("a0", "cold"), ("a1", "cold"), ("a0", "warm"), ("a1", "warm")]
    for one, testbed in shapes:
        assert contrast(colours[one], colours[testbed]) >= SHAPE_CONTRAST, (one, testbed)


def test_two_arms_differ_in_grey_in_mark_and_in_dash() -> None:
    sheet = html_style.style_sheet()
    dashes = {
        n: re.search(rf"\.series\.a{n} {{[^}}]*stroke-dasharray: ([^;]+);", sheet)
        for n in range(ARM_STYLES)
    }
    shown = [found.group(1) if found else "solid" for found in dashes.values()]
    assert len(set(shown)) == ARM_STYLES
    drawing = Drawing(name="n", title="t", about="a", height=10)
    for number in range(ARM_STYLES):
        drawing.mark(0, 0, number)
    shapes = {re.sub(r' class="[^"]+"', "", part) for part in drawing.parts}
    assert len(shapes) == ARM_STYLES


def test_words_from_a_run_cannot_become_markup() -> None:
    hostile = "| a | b |\n|---|---|\n| <script>x</script> | `<b>` |"
    html = body(Markdown(hostile), "en")
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    drawing = Drawing(name="n", title="<script>", about="&", height=10)
    drawing.text(0, 0, "</text><script>")
    assert "<script>" not in drawing.svg()


def test_a_bar_inside_a_cell_stays_in_its_cell() -> None:
    html = body(Markdown("| a | b |\n|---|---|\n| x\\|y | 1 |"), "en")
    assert ">x|y</td>" in html


@pytest.mark.parametrize(
    ("value", "text"), [(-0.01, "0"), (1.25, "1.2"), (100.0, "100"), (-3.04, "-3")]
)
def test_coordinates_are_short_and_never_minus_nothing(value: float, text: str) -> None:
    assert coordinate(value) == text


def test_a_large_number_on_an_axis_is_read_as_it_is_written() -> None:
    drawing = Drawing(name="n", title="t", about="a", height=10)
    drawing.text(0, 0, label(123456))
    assert ">123 456</text>" in drawing.svg()


def test_a_scale_keeps_what_lies_outside_on_its_edge() -> None:
    scale = Scale(low=1, high=100, begin=0, end=200, log=True)
    assert [scale(0.5), scale(10), scale(1e9)] == pytest.approx([0, 100, 200])
    assert Scale(low=0, high=0, begin=0, end=10)(0) == 5
    assert Scale(low=0.8, high=1.3, begin=0, end=1, log=True).ticks()


def test_a_column_is_set_right_only_when_all_of_it_is_numbers() -> None:
    html = body(Markdown("| a | b |\n|---|---|\n| 1.5 | 7 |\n| about 5 | inf |"), "en")
    assert '<td class="short">1.5</td>' in html
    assert '<td class="num short">inf</td>' in html
