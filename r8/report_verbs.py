"""`r8 report RUN...`: what the runs say, for people to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r8.claims import load_claims
from r8.errors import UsageError
from r8.html import page
from r8.html_words import LANGUAGES
from r8.report import asked, report_text
from r8.report_pages import with_pages
from r8.runs_verbs import add_reference, add_runs, evidences, references
from r8.verdict import judge_session
from r8.verdict_session import open_session

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from r8.evidence import Evidence

HTML = ".html"


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `report`."""
    verb = subparsers.add_parser("report", help="the whole report as Markdown, or HTML with charts")
    add_runs(verb)
    words = "write here instead of standard output; *.html gives the page with charts, and its "
    words += "Markdown twin beside it"
    verb.add_argument("-o", "--out", type=Path, help=words)
    words = "language the HTML page opens in; it holds both"
    verb.add_argument("--lang", choices=LANGUAGES, default="en", help=words)
    add_reference(verb)
    verb.set_defaults(func=_report)


def twins(
    runs: Sequence[Evidence], reference_runs: Sequence[Evidence], language: str = "en"
) -> tuple[str, str]:
    """The report as Markdown and as HTML: the same content, the second with charts."""
    claims = load_claims()
    session = open_session(runs)
    reference = open_session(reference_runs) if reference_runs else None
    verdicts = judge_session(session, claims, reference)
    text = with_pages(report_text(session, verdicts), session, claims)
    return text, page(text, session, asked(session, verdicts)[0], first=language)


def _report(args: argparse.Namespace) -> int:
    runs = evidences(args.runs)
    text, html = twins(runs, references(args.reference, runs), args.lang)
    if args.out is None:
        print(text, end="")
    elif args.out.suffix == HTML:
        args.out.write_text(html, encoding="utf-8")
        args.out.with_suffix(".md").write_text(text, encoding="utf-8")
    elif args.out.suffix == ".md":
        args.out.write_text(text, encoding="utf-8")
    else:
        raise UsageError(
            "a report is Markdown or HTML", where=str(args.out), next_step="name it *.md or *.html"
        )
    return 0
