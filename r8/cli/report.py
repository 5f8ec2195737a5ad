"""`r8 report RUN...`: what the runs say, for people to read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.claims.reader import load_claims
from r8.cli.run_arguments import add_reference, add_runs, evidences, references
from r8.console import page as print_page
from r8.console import print_json
from r8.errors import UsageError
from r8.metrics.measure import measurements
from r8.report.document import as_markdown, asked, sections
from r8.report.html import page
from r8.report.words import LANGUAGES
from r8.verdict.judge import headline, judge_session
from r8.verdict.session import open_session

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from r8.evidence.reader import Evidence
    from r8.model import Claim, Verdict
    from r8.verdict.session import Session

HTML, MARKDOWN = ".html", ".md"


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `report`."""
    verb = subparsers.add_parser("report", help="the whole report as Markdown, or HTML with charts")
    add_runs(verb)
    words = "write here instead of standard output; *.html gives the page with charts, and its "
    words += "Markdown twin beside it"
    form = verb.add_mutually_exclusive_group()
    form.add_argument("-o", "--out", type=Path, help=words)
    words = "what the report is made of: verdicts, certificate and metrics, every row in full"
    form.add_argument("--json", action="store_true", help=words)
    words = "language of the text; the HTML page opens in it and holds both"
    verb.add_argument("--lang", choices=LANGUAGES, default="en", help=words)
    add_reference(verb)
    verb.set_defaults(func=_report)


def twins(
    runs: Sequence[Evidence], reference_runs: Sequence[Evidence], language: str = "en"
) -> tuple[str, str]:
    """The report as Markdown and as HTML: the same content, the second with charts."""
    claims, session, verdicts = _judged(runs, reference_runs)
    reports = {one: sections(session, verdicts, claims, one) for one in LANGUAGES}
    return as_markdown(reports["en"]), page(reports, session, verdicts, first=language)


def _judged(
    runs: Sequence[Evidence], reference_runs: Sequence[Evidence]
) -> tuple[tuple[Claim, ...], Session, tuple[Verdict, ...]]:
    claims = load_claims()
    session = open_session(runs)
    reference = open_session(reference_runs) if reference_runs else None
    return claims, session, judge_session(session, claims, reference)


def _report(args: argparse.Namespace) -> int:
    if args.out is not None and args.out.suffix not in {HTML, MARKDOWN}:
        raise UsageError(
            "a report is Markdown or HTML", where=str(args.out), next_step="name it *.md or *.html"
        )
    runs = evidences(args.runs)
    reference_runs = references(args.reference, runs)
    if args.json:
        _, session, verdicts = _judged(runs, reference_runs)
        print_json(_facts(session, verdicts))
        return 0
    if args.out is not None and args.out.suffix == HTML:
        text, html = twins(runs, reference_runs, args.lang)
        args.out.write_text(html, encoding="utf-8")
        args.out.with_suffix(MARKDOWN).write_text(text, encoding="utf-8")
        return 0
    claims, session, verdicts = _judged(runs, reference_runs)
    text = as_markdown(sections(session, verdicts, claims, args.lang))
    if args.out is None:
        print_page(text, end="")
    else:
        args.out.write_text(text, encoding="utf-8")
    return 0


def _facts(session: Session, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The report for a machine, in its own order: verdicts, certificate, metrics."""
    here, elsewhere = asked(session, verdicts)
    names = ("run_id", "campaign_id", "scenario", "arm", "concurrency", "block", "basis")
    return {
        "headline": headline(here),
        "runs": [{name: getattr(run, name) for name in names} for run in session.runs],
        "verdicts": [asdict(one) for one in here],
        "claims_not_asked": [one.claim.claim_id for one in elsewhere],
        "certificate": [asdict(one) for one in session.findings],
        "metrics": [asdict(one) for one in measurements(session.connection)],
    }
