"""`r8 report RUN...`: what the runs say, for people to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r8.claims import load_claims
from r8.report import report
from r8.runs_verbs import add_reference, add_runs, evidences, references

if TYPE_CHECKING:
    import argparse


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `report`."""
    verb = subparsers.add_parser("report", help="the whole report as Markdown")
    add_runs(verb)
    verb.add_argument("-o", "--out", type=Path, help="write here instead of standard output")
    add_reference(verb)
    verb.set_defaults(func=_report)


def _report(args: argparse.Namespace) -> int:
    runs = evidences(args.runs)
    text = report(runs, load_claims(), references=references(args.reference, runs))
    if args.out is None:
        print(text, end="")
    else:
        args.out.write_text(text, encoding="utf-8")
    return 0
