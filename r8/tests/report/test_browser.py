"""The page in a real browser: Debian's headless Chromium, three widths, both languages.

Needs `chromium` on the path (apt-get install chromium); skipped with that reason elsewhere.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from r8.cli.report import twins
from r8.tests.report.hostile_session import Judged, judged, marked_campaign
from r8.tests.report.test_document import campaign
from r8.tests.report.test_hostile import ATTACKS, harmless, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium"),
]
WIDTHS_PX = (390, 1280, 1920)
MAINS = {"en": 'main[lang="en"]', "zh": 'main[lang="zh-CN"]'}
# A page that is looked at by eye: the pictures go here when it is set.
PICTURES = os.environ.get("R8_BROWSER_PICTURES")

# Every text that is seen, with its contrast against what lies behind it. WCAG 2.1, 1.4.3: 4.5, and
# 3 for text of 24 px, or of 18.66 px in bold.
CONTRASTS = """
() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number);
    return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; };
  const over = (top, low) => [0, 1, 2].map(k => top[k] * top[3] + low[k] * (1 - top[3]));
  const light = c => { const l = c.slice(0, 3).map(v => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
  const behind = element => { const layers = [];
    for (let e = element; e; e = e.parentElement)
      layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((low, top) => over(top, low), [255, 255, 255]); };
  const faults = []; let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    const e = node.parentElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (!node.data.trim() || !box.width || !box.height || style.visibility !== 'visible') continue;
    if (e.closest('title, desc, style, legend')) continue;
    seen += 1;
    const ground = behind(e), ink = e.closest('svg') ? style.fill : style.color;
    const text = over(parse(ink), ground);
    const [a, b] = [light(text), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const words = node.data.trim().slice(0, 40);
    if (ratio < (large ? 3 : 4.5)) faults.push(`${ratio.toFixed(2)}: ${words}`);
  }
  return {seen, faults};
}
"""
# Charts of one language that take up room, and those whose name is missing.
CHARTS = """
main => [...document.querySelectorAll(main + ' svg')].map(svg => ({
  name: svg.querySelector('title')?.textContent || '',
  seen: svg.getBoundingClientRect().width > 200 && svg.getBoundingClientRect().height > 60,
  marks: svg.querySelectorAll('path, rect, circle, line, polygon').length}))
"""
# Every element as the browser built it, with the names of its attributes, and every badge's words.
# The mark of English words inside Chinese follows from the words.
ELEMENTS = """
() => [...document.querySelectorAll('*')].filter(e => !e.matches('span[lang]'))
  .map(e => [e.tagName, ...(e.tagName === 'TD' ? [] : e.getAttributeNames())].join(' '))
"""
BADGES = "() => [...document.querySelectorAll('.badge')].map(e => e.textContent)"
SCROLLS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@dataclass
class Heard:
    """What the browser complained of, and what it asked for."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))


@pytest.fixture(scope="module", name="browser")
def _browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module", name="report")
def _report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a campaign; of a real one where R8_BROWSER_PAGE names its page."""
    named = os.environ.get("R8_BROWSER_PAGE")
    if named:
        return Path(named)
    folder = tmp_path_factory.mktemp("page")
    path = folder / "report.html"
    path.write_text(twins(campaign(folder / "runs"), ())[1], encoding="utf-8")
    return path


def _opened(browser: Browser, path: Path, width: int, heard: Heard, **media: Any) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900}, **media)
    heard.listen(page)
    page.goto(path.as_uri())
    return page


def _picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS_PX)
def test_the_page_is_quiet_whole_and_readable_at_every_width_and_in_both_languages(
    browser: Browser, report: Path, width: int, scheme: str
) -> None:
    heard = Heard()
    page = _opened(browser, report, width, heard, color_scheme=scheme)
    for language, main in MAINS.items():
        page.check(f"#show-{language}")
        assert page.locator(main).is_visible()
        assert sum(page.locator(one).is_visible() for one in MAINS.values()) == 1
        assert page.evaluate(SCROLLS) <= 0
        contrast = page.evaluate(CONTRASTS)
        assert contrast["seen"] > 100
        assert contrast["faults"] == []
        _picture(page, f"{scheme}-{width}-{language}")
    assert heard.complaints == []
    assert heard.requests == [report.as_uri()]
    page.close()


def test_every_chart_is_there_named_and_drawn_in_both_languages(
    browser: Browser, report: Path
) -> None:
    page = _opened(browser, report, 1280, Heard())
    counts = []
    for language, main in MAINS.items():
        page.check(f"#show-{language}")
        charts = page.evaluate(CHARTS, main)
        assert [one for one in charts if not one["seen"] or not one["name"]] == []
        assert min(one["marks"] for one in charts) > 3
        counts.append(len(charts))
    runs = len(set(re.findall(r'id="en-time-([^"]+)-t"', report.read_text(encoding="utf-8"))))
    assert runs
    assert counts[0] == counts[1]
    assert counts[0] >= runs + 3  # claims, TTFT of a level, throughput
    page.close()


@pytest.mark.parametrize("language", list(MAINS))
def test_on_paper_nothing_is_cut_off_and_the_ink_is_dark(
    browser: Browser, report: Path, language: str
) -> None:
    # A4 less the margins of the page, at 96 px an inch.
    page = _opened(browser, report, 703, Heard(), color_scheme="dark")
    page.check(f"#show-{language}")
    page.emulate_media(media="print")
    assert page.evaluate(SCROLLS) <= 0
    assert page.evaluate(CONTRASTS)["faults"] == []
    assert page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor") in {
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    }
    _picture(page, f"print-{language}")
    if PICTURES:
        page.pdf(path=f"{PICTURES}/print-{language}.pdf", prefer_css_page_size=True)
    page.close()


def _spoiled(report: Path, folder: Path, old: str, new: str) -> Path:
    path = folder / "spoiled.html"
    text = report.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def test_pale_words_a_wide_block_a_request_and_an_error_are_all_found(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    """The checks above can fail: each finds what it is there for."""
    body = '<p style="color: #bbb; background: #fff">pale</p><div style="width: 5000px">wide</div>'
    body += '<img src="http://127.0.0.1:9/x.png" alt=""><script>undefined_name()</script>'
    path = _spoiled(report, tmp_path, "<body>", f"<body>{body}")
    heard = Heard()
    page = _opened(browser, path, 1280, heard)
    assert any("pale" in one for one in page.evaluate(CONTRASTS)["faults"])
    assert page.evaluate(SCROLLS) > 0
    # The page's own policy forbids both; that is said on the console.
    assert len(heard.complaints) >= 2
    page.close()


@pytest.fixture(scope="module", name="found")
def _found(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    return judged(marked_campaign(tmp_path_factory.mktemp("marked")))


def _built(browser: Browser, text: str, path: Path) -> tuple[list[str], list[str], Heard]:
    """What the browser made of a page: its elements, its badges, and what was heard meanwhile."""
    path.write_text(text, encoding="utf-8")
    heard = Heard()
    page = browser.new_page()
    heard.listen(page)
    page.on("dialog", lambda dialog: heard.complaints.append(dialog.message))
    page.on("framenavigated", lambda frame: heard.complaints.append(frame.url))
    page.goto(path.as_uri(), wait_until="networkidle")
    built = page.evaluate(ELEMENTS), page.evaluate(BADGES)
    assert page.title()
    page.close()
    return *built, heard


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_names_of_a_run_are_words_to_the_browser(
    browser: Browser, found: Judged, tmp_path: Path, text: str
) -> None:
    """No element, request, navigation, script or dialog of a run; the verdicts are those of R8."""
    path = tmp_path / "page.html"
    honest = _built(browser, harmless(found, text).page(), path)
    elements, badges, heard = _built(browser, told(found, text).page(), path)
    assert elements == honest[0]
    assert badges == honest[1] == _built(browser, found.page(), path)[1]
    assert len(badges) > 100
    assert heard.requests == [path.as_uri()]
    assert heard.complaints == [path.as_uri()]  # the one navigation: the page itself


@pytest.mark.parametrize(
    "markup",
    [
        '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/">',
        "<script>alert(1)</script>",
        "<img src='http://127.0.0.1:9/x.png'>",
        '<b onclick="x">PASS</b>',
    ],
)
def test_what_the_browser_is_asked_about_a_run_can_say_no(
    browser: Browser, found: Judged, tmp_path: Path, markup: str
) -> None:
    """The checks above can fail: markup that gets into the page is seen."""
    path, honest = tmp_path / "page.html", found.page()
    spoiled = honest.replace("<figure ", f"{markup}<figure ", 1)
    elements, _, heard = _built(browser, spoiled, path)
    before, _, quiet = _built(browser, honest, path)
    assert (elements, heard.requests, heard.complaints) != (
        before,
        quiet.requests,
        quiet.complaints,
    )
