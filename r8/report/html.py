"""A report as one HTML file that asks nothing of the network: pictures, tables, two languages.

It is the Markdown report with charts put into it: whatever the page says, its twin says as well. No
script runs in it; the language is chosen by two radio buttons, light or dark by the reader's
own setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from r8.evidence.database import add_views, probes_of
from r8.report.charts.claims import claims_chart
from r8.report.charts.runs import throughput_chart, ttft_chart
from r8.report.charts.timeline import not_recorded, timeline_chart, window_of
from r8.report.document import asked
from r8.report.markdown import body, inline
from r8.report.style import style_sheet
from r8.report.words import LANGUAGES, InMarkdown, say
from r8.text import Markdown, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from r8.model import Verdict
    from r8.report.charts.draw import Say
    from r8.report.document import Section
    from r8.verdict.session import Session

# What a browser may load for this page: nothing; where its addresses and forms lead: nowhere.
_POLICY = Markup(
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
_TAGS = {"en": "en", "zh": "zh-CN"}
_NAMES = {"en": "English", "zh": "\u4e2d\u6587"}
_ABSENT = {"nic": "figure-no-nic", "gpu": "figure-no-gpu"}


def _seen(value: object) -> object:
    """What a template shows: R8's own markup, or a text whose every character is visible."""
    return value if isinstance(value, Markup) else visible(str(value))


_PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    finalize=_seen,
    undefined=StrictUndefined,
    trim_blocks=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    title: str
    words: str
    svg: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    title: Markup
    body: Markup
    figures: Sequence[_Figure] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Main:
    """The whole page in one language."""

    language: str
    title: Markup
    lead: Markup
    contents: str
    parts: Sequence[_Part]
    foot: str


def page(
    reports: Mapping[str, Sequence[Section]],
    session: Session,
    verdicts: Sequence[Verdict],
    *,
    first: str = "en",
) -> str:
    """The page of a report.

    Args:
        reports: the sections of the same session by language.
        session: what they were made from; its connection gets the views of timelines.
        verdicts: of every claim.
        first: the language shown on opening, one of `LANGUAGES`.

    """
    add_views(session.connection)
    here = asked(session, verdicts)[0]
    mains = [_main(reports[language], session, here, language) for language in LANGUAGES]
    return _PAGES.get_template("page.html.j2").render(
        first=first,
        tags=_TAGS,
        names=_NAMES,
        policy=_POLICY,
        style=Markup(style_sheet()),  # noqa: S704 - a file of this package
        title=mains[LANGUAGES.index(first)].title.striptags(),
        mains=mains,
    )


def _main(
    sections: Sequence[Section], session: Session, verdicts: Sequence[Verdict], language: str
) -> _Main:
    figures = _figures(session, verdicts, partial(say, language), f"{language}-")
    head, *rest = sections
    parts = [
        _Part(
            title=inline(one.title, language),
            body=body(one.text, language),
            figures=figures.get(one.key, ()),
        )
        for one in rest
    ]
    keys = [one.key for one in rest]
    timelines = _Part(
        title=inline(_markdown(language, "title-timelines"), language),
        body=body(_markdown(language, "figure-timelines"), language),
        figures=list(_timelines(session, partial(say, language), f"{language}-")),
    )
    parts.insert(keys.index("title-certificate"), timelines)
    return _Main(
        language=language,
        title=inline(head.title, language),
        lead=body(head.text, language, lead=True),
        contents=say(language, "word-contents"),
        parts=parts,
        foot=say(language, "note-foot"),
    )


def _markdown(language: str, entry: str) -> Markdown:
    return Markdown.of(say(InMarkdown(language), entry))


def _figures(
    session: Session, verdicts: Sequence[Verdict], words: Say, prefix: str
) -> dict[str, list[_Figure]]:
    """Figures by the section they close."""
    levels = sorted({run.concurrency for run in session.runs})
    claims = _Figure(
        svg=claims_chart(verdicts, words, prefix),
        title=words("figure-claims"),
        words=words("figure-claims-about"),
    )
    requests = [
        _Figure(
            svg=ttft_chart(session, level, words, prefix),
            title=f"{words('chart-ttft')}, c{level}",
            words=words("figure-ttft-about"),
        )
        for level in levels
    ]
    throughput = _Figure(
        svg=throughput_chart(session, words, prefix),
        title=words("chart-throughput"),
        words=words("figure-throughput-about"),
    )
    return {"title-verdicts": [claims], "title-arms": [*requests, throughput]}


def _timelines(session: Session, words: Say, prefix: str) -> Iterator[_Figure]:
    window = window_of(session)
    for run in session.runs:
        with probes_of(run.run_id, session.connection):
            absent = [words(_ABSENT[name]) for name in not_recorded(session, run)]
            chart = timeline_chart(session, run, window, words, prefix)
        title = f"{run.arm} c{run.concurrency}, {words('word-block')} {run.block}"
        yield _Figure(svg=chart, title=title, words=" ".join([run.run_id, *absent]))
