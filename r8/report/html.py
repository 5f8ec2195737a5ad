"""A report as one HTML file that asks nothing of the network: pictures, tables, two languages.

It is the Markdown report with charts put into it: whatever the page says, its twin says as well. No
script runs in it; the language is chosen by two radio buttons, light or dark by the reader's
own setting.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from r8.evidence.database import add_views, probes_of
from r8.report.charts.claims import claims_chart
from r8.report.charts.runs import throughput_chart, ttft_chart
from r8.report.charts.timeline import not_recorded, timeline_chart, window_of
from r8.report.chinese import LANGUAGES, translated
from r8.report.markdown import Section, body, inline, sections
from r8.report.style import style_sheet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from r8.model import Verdict
    from r8.verdict.session import Session

# What a browser may load for this page: nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_TAGS = {"en": "en", "zh": "zh-CN"}
_NAMES = {"en": "English", "zh": "\u4e2d\u6587"}
VERDICTS, ARMS, CERTIFICATE = "Verdicts", "Arms, block by block", "Certificate"
TIMELINES = "What happened, run by run"


def page(
    texts: Mapping[str, str], session: Session, verdicts: Sequence[Verdict], *, first: str = "en"
) -> str:
    """The page of a report.

    Args:
        texts: the Markdown report of the same session by language.
        session: what it was made from; its connection gets the views of timelines.
        verdicts: of every claim, in the report's order.
        first: the language shown on opening, one of `LANGUAGES`.

    """
    add_views(session.connection)
    mains = "\n".join(
        _main(sections(texts[language]), session, verdicts, language) for language in LANGUAGES
    )
    choices = "".join(
        f'<label lang="{_TAGS[one]}"><input type="radio" name="language" id="show-{one}"'
        f"{' checked' if one == first else ''}>{_NAMES[one]}</label>"
        for one in LANGUAGES
    )
    title = escape(sections(texts[first])[0].title)
    return (
        f'<!doctype html>\n<html lang="{_TAGS[first]}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>\n{style_sheet()}\n</style>\n</head>\n<body>\n"
        '<header class="top"><span>R8</span><form><fieldset><legend>Language / '
        f"\u8bed\u8a00</legend>{choices}</fieldset></form></header>\n{mains}\n</body>\n</html>\n"
    )


def _main(
    parts: Sequence[Section], session: Session, verdicts: Sequence[Verdict], language: str
) -> str:
    def say(words: str) -> str:
        return translated(words, language) or words

    charts = _charts(session, verdicts, say, f"{language}-")
    titles = [part.title for part in parts[1:]]
    titles.insert(titles.index(CERTIFICATE) if CERTIFICATE in titles else len(titles), TIMELINES)
    links = "".join(
        f'<li><a href="#{language}-{number}">{inline(title, language)}</a></li>'
        for number, title in enumerate(titles)
    )
    by_title = {part.title: part for part in parts[1:]}
    blocks = []
    for number, title in enumerate(titles):
        lines = by_title[title].lines if title in by_title else ()
        heading = f'<h2 id="{language}-{number}">{inline(title, language)}</h2>'
        blocks.append(f"{heading}\n{body(lines, language)}\n{charts.get(title, '')}")
    return (
        f'<main lang="{_TAGS[language]}">\n<h1>{inline(parts[0].title, language)}</h1>\n'
        f"{_lead(parts[0], language)}\n"
        f'<nav aria-label="{escape(say("contents"))}"><ul>{links}</ul></nav>\n'
        + "\n".join(blocks)
        + f"\n<footer><p>{escape(say(_FOOT))}</p></footer>\n</main>"
    )


_FOOT = (
    "Every number here is computed by the shared SQL from raw rows of hash-checked runs; "
    "r8 verify and r8 sql let anybody do it again."
)


def _lead(head: Section, language: str) -> str:
    """The first lines of the report; what makes every number modelled stands out."""
    blocks = [line for line in head.lines if line]
    return "\n".join(
        f'<p class="{"note" if line.startswith("**") else "lead"}">{inline(line, language)}</p>'
        for line in blocks
    )


def _charts(
    session: Session, verdicts: Sequence[Verdict], say: Callable[[str], str], prefix: str
) -> dict[str, str]:
    """Figures by the title of the section they close."""
    levels = sorted({run.concurrency for run in session.runs})
    claims = _figure(
        claims_chart(verdicts, say, prefix),
        say("Published against measured"),
        say(
            "1 is the stated value, the grey bar what its tolerance allows. A line is the interval "
            "over blocks, its dot the estimate; without a line the claim was not judged by numbers."
        ),
    )
    requests = [
        _figure(
            ttft_chart(session, level, say, prefix),
            f"{say('Time to first token, every request')}, c{level}",
            say("Requests of one burst share a queue, so their marks often fall on one another."),
        )
        for level in levels
    ]
    throughput = _figure(
        throughput_chart(session, say, prefix),
        say("Output throughput against offered concurrency"),
        say("A mark is a run; a bar with a number is the mean of an arm's blocks."),
    )
    return {
        VERDICTS: claims,
        ARMS: "\n".join([*requests, throughput]),
        TIMELINES: _timelines(session, say, prefix),
    }


def _timelines(session: Session, say: Callable[[str], str], prefix: str) -> str:
    window = window_of(session)
    words = say(
        "Time counts from the moment the cold read began; all runs share one axis. Blue ground: "
        "the cold read. Yellow ground: the same sessions again, warm. When the device delivers "
        "first and the tokens come after, KV was read from it; in the warm read the device stays "
        "silent."
    )
    figures = [f"<p>{escape(words)}</p>"]
    for run in session.runs:
        with probes_of(run.run_id, session.connection):
            absent = [say(_ABSENT[name]) for name in not_recorded(session, run)]
            chart = timeline_chart(session, run, window, say, prefix)
        title = f"{run.arm} c{run.concurrency}, {say('block')} {run.block}"
        figures.append(_figure(chart, title, " ".join([run.run_id, *absent])))
    return "\n".join(figures)


_ABSENT = {
    "nic": "No network adapter was recorded.",
    "gpu": "No GPU was recorded.",
}


def _figure(svg: str, title: str, words: str) -> str:
    caption = f"<figcaption><b>{escape(title)}</b>{escape(words)}</figcaption>"
    return f'<figure tabindex="0">{caption}\n{svg}\n</figure>'
