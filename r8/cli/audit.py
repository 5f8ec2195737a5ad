"""The auditor's verbs over published figures: `audit`, `checklist`, `diff`, `gate`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r8.audit.checklist import checklist
from r8.audit.finding import AuditFinding
from r8.audit.rules import audit
from r8.claims.ledger import load_ledger
from r8.claims.reports import load_reports
from r8.cli.run_arguments import add_language, evidences
from r8.console import line, page, print_json
from r8.errors import (
    EXIT_DEVIATES,
    EXIT_INCONCLUSIVE,
    EXIT_INVALID,
    EXIT_NOTHING_COMPARABLE,
    EXIT_REPRODUCED,
    UsageError,
)
from r8.model import Outcome
from r8.report.audit import as_markdown, as_text, checklist_markdown
from r8.report.diff import as_rows, table
from r8.report.words import render_reasons, say
from r8.units import BYTES_PER_GBIT
from r8.verdict.diff import against_report, against_runs
from r8.verdict.gates import GATES, gate
from r8.verdict.judge import exit_code
from r8.verdict.session import open_session

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from r8.evidence.reader import Evidence
    from r8.verdict.gates import GateItem

# 2: checks as data, no sentence; 1: one sentence a finding in each language.
FORMAT = 2
# Worst first; a gate with an unmeasured item is not passed, but nothing speaks against it.
_GATE_CODES = (
    (Outcome.INVALID, EXIT_INVALID),
    (Outcome.DEVIATES, EXIT_DEVIATES),
    (Outcome.INCONCLUSIVE, EXIT_INCONCLUSIVE),
)


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the verbs."""
    verb = subparsers.add_parser("audit", help="which published numbers follow from which others")
    verb.add_argument("--report", metavar="R2", help="findings that touch this report")
    verb.add_argument("--all", action="store_true", help="show what follows as well")
    verb.add_argument("--ledger", type=Path, metavar="DIR", help="another folder of figures")
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--md", action="store_true")
    add_language(verb)
    verb.set_defaults(func=_audit)

    verb = subparsers.add_parser("checklist", help="five checks of a report, from the ledger")
    verb.add_argument("report", metavar="REPORT", help="for example R2")
    verb.add_argument("--json", action="store_true")
    add_language(verb)
    verb.set_defaults(func=_checklist)

    verb = subparsers.add_parser("diff", help="runs against a report, or against other runs")
    verb.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    words = "a report such as R2, or runs, or a folder of them; may be repeated"
    verb.add_argument("--against", required=True, action="append", metavar="R2|RUN", help=words)
    verb.add_argument("--all", action="store_true", help="show figures R8 cannot measure as well")
    verb.add_argument("--json", action="store_true")
    add_language(verb)
    verb.set_defaults(func=_diff)

    verb = subparsers.add_parser("gate", help="a gate of the joint test, from runs")
    verb.add_argument("gate", choices=GATES, type=str.upper)
    verb.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    words = "rate of the line to the array (default: the published port, on the published array)"
    words_newest = "only the campaign that started last, of those given"
    verb.add_argument("--newest", action="store_true", help=words_newest)
    verb.add_argument("--line-gbit", type=float, metavar="GBIT", help=words)
    verb.add_argument("--json", action="store_true")
    add_language(verb)
    verb.set_defaults(func=_gate)


def _audit(args: argparse.Namespace) -> int:
    found = audit(load_ledger(args.ledger), args.report)
    if args.json:
        print_json({"format": FORMAT, "findings": [_finding(one) for one in found]})
    elif args.md:
        page(as_markdown(found, args.lang, everything=args.all), end="")
    else:
        page(as_text(found, args.lang, everything=args.all), end="")
    return EXIT_REPRODUCED


def _checklist(args: argparse.Namespace) -> int:
    reports = load_reports()
    items = checklist(load_ledger(), reports, args.report)
    if args.json:
        print_json(
            [
                {
                    "status": one.status,
                    "check": dataclasses.asdict(one.check),
                    "lines": [
                        _finding(line)
                        if isinstance(line, AuditFinding)
                        else dataclasses.asdict(line)
                        for line in one.lines
                    ],
                }
                for one in items
            ]
        )
    else:
        page(checklist_markdown(items, reports, args.report, args.lang), end="")
    return EXIT_REPRODUCED


def _finding(one: AuditFinding) -> dict[str, Any]:
    """Numbers and ids of a finding; `relation` is the kind of the one that asked for it."""
    return {
        "rule": one.rule_id,
        "figures": one.figures,
        "reports": one.reports,
        "pages": one.pages,
        "relation": None if one.relation is None else one.relation.kind,
        "check": dataclasses.asdict(one.check),
        "leads": [dataclasses.asdict(lead) for lead in one.leads],
    }


def _diff(args: argparse.Namespace) -> int:
    ledger, reports = load_ledger(), load_reports()
    session = open_session(evidences(args.runs))
    if len(args.against) == 1 and args.against[0] in ledger.reports():
        rows = against_report(session, ledger, reports, args.against[0])
    else:
        theirs = evidences([_existing(one) for one in args.against])
        rows = against_runs(session, open_session(theirs))
    code = exit_code(row.verdict for row in rows if row.verdict is not None)
    if args.json:
        print_json({"exit_code": code, "rows": as_rows(rows)})
    else:
        page(table(rows, args.lang, everything=args.all), end="")
    return code


def _existing(text: str) -> Path:
    if not Path(text).exists():
        raise UsageError(
            f"{text!r} is neither a report with figures nor a directory",
            where="r8 diff --against",
            next_step=f"choose one of {', '.join(load_ledger().reports())}, or a run",
        )
    return Path(text)


def _gate(args: argparse.Namespace) -> int:
    rate = None if args.line_gbit is None else args.line_gbit * BYTES_PER_GBIT
    runs = evidences(args.runs)
    session = open_session(newest(runs) if args.newest else runs)
    items = gate(args.gate, session, load_ledger(), load_reports(), rate)
    code = gate_code(items)
    if args.json:
        rows = [
            {
                "item": one.name,
                "outcome": one.outcome,
                "reasons": [dataclasses.asdict(reason) for reason in one.reasons],
            }
            for one in items
        ]
        print_json({"gate": args.gate, "exit_code": code, "items": rows})
        return code
    for one in items:
        line(f"{one.name}: {one.outcome}: {render_reasons(one.reasons, args.lang)}")
    line(say(args.lang, "gate-last", gate=args.gate, code=code))
    return code


def newest(runs: Sequence[Evidence]) -> list[Evidence]:
    """The runs of the campaign that started last."""
    last = max(runs, key=lambda one: one.run.started_wall_ns).run.campaign_id
    return [one for one in runs if one.run.campaign_id == last]


def gate_code(items: Iterable[GateItem]) -> int:
    """0 only when every item held; the worst item decides, an unmeasured one gives 5."""
    outcomes = {one.outcome for one in items}
    for outcome, code in _GATE_CODES:
        if outcome in outcomes:
            return code
    return EXIT_REPRODUCED if outcomes == {Outcome.REPRODUCED} else EXIT_NOTHING_COMPARABLE
