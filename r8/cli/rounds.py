"""`r8 rounds RUN... --against RUN...`: whether one round of a matrix is the other one again."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from r8.cli.run_arguments import add_runs, evidences
from r8.console import page, print_json
from r8.report.terminal import summary
from r8.verdict.judge import exit_code, headline
from r8.verdict.rounds import compare_rounds, spread

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from r8.evidence.reader import Evidence
    from r8.model import Verdict


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `rounds`."""
    verb = subparsers.add_parser("rounds", help="compare two rounds of a matrix, metric by metric")
    add_runs(verb)
    verb.add_argument(
        "--against", nargs="+", type=Path, required=True, metavar="RUN", help="the round before"
    )
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_rounds)


def _rounds(args: argparse.Namespace) -> int:
    second = evidences(args.runs)
    verdicts = compare_rounds(evidences(args.against), second)
    code = exit_code(verdicts)
    if args.json:
        rows = [dataclasses.asdict(one) for one in verdicts]
        print_json({"exit_code": code, "spread": spread(verdicts), "verdicts": rows})
    else:
        page(table(second, verdicts))
    return code


def table(second: Sequence[Evidence], verdicts: Sequence[Verdict]) -> str:
    """The verdicts, what the rounds spread, and one line to end with."""
    worst = ", ".join(f"{name} {share:.2%}" for name, share in spread(verdicts).items())
    lines = [summary(second, verdicts), f"largest difference between the rounds: {worst or 'none'}"]
    return "\n".join([*lines, f"rounds: {headline(verdicts)}"])
