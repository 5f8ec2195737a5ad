"""The `r8` command: the judge's verbs always, the lab's verbs where the checkout is."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import duckdb

from r8 import __version__
from r8.claims.reader import load_claims
from r8.cli import audit as audit_verbs
from r8.cli import power as power_verbs
from r8.cli import recover as recover_verbs
from r8.cli import report as report_verbs
from r8.cli import rounds as rounds_verbs
from r8.cli import seal as seal_verbs
from r8.cli import sql as sql_verbs
from r8.cli.help_map import LAB_VERBS, READING_VERBS, help_map, verb_of
from r8.cli.limits import behind
from r8.cli.run_arguments import (
    RUNS_ROOT,
    add_language,
    add_reference,
    add_runs,
    evidences,
    one_evidence,
    references,
)
from r8.console import complain, line, page, print_json, table
from r8.errors import (
    EXIT_BROKEN_PIPE,
    EXIT_INTERRUPTED,
    EXIT_INVALID,
    EXIT_USAGE,
    BundleError,
    EvidenceError,
    R8Error,
    SiteFileError,
    UsageError,
)
from r8.evidence.database import MEMORY_MAX
from r8.evidence.reader import find_runs, read_run
from r8.forensics.certificate import certify, connect_settled
from r8.forensics.gate import refusals
from r8.metrics.measure import measure
from r8.report.explain import explain, explained
from r8.report.terminal import finding_table, measurement_table, summary
from r8.report.words import render
from r8.verdict.judge import exit_code, headline, judge

if TYPE_CHECKING:
    from collections.abc import Sequence


LAB_MODULES = ("r8.lab.verbs", "r8.lab.patching.verbs")
# Verbs that stand in modules of their own, in the order `r8 --help` lists them.
VERB_MODULES = (
    report_verbs,
    rounds_verbs,
    power_verbs,
    audit_verbs,
    seal_verbs,
    sql_verbs,
    recover_verbs,
)


class _Parser(argparse.ArgumentParser):
    """Usage errors are one line and R8's own exit code."""

    def error(self, message: str) -> NoReturn:
        complain(f"{message} -> {self.prog} --help")
        sys.exit(EXIT_USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns its exit code. No traceback for anything a person can mend."""
    try:
        args = _parse(argv)
        code: int = args.func(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader left; the interpreter must not complain about it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (R8Error, duckdb.Error, OSError, MemoryError) as error:
        return _complain(_for_people(error))
    return code


def _for_people(error: Exception) -> R8Error:
    """The error as one of R8's own: a limit that was hit comes first, whatever it looks like.

    Raises a MemoryError again where R8 has no limit: nobody's budget was hit.
    """
    system = error if isinstance(error, OSError | MemoryError) else error.__cause__
    if isinstance(error, duckdb.OutOfMemoryException) and " used)" not in str(error):
        system = MemoryError()
    if isinstance(system, OSError | MemoryError) and (budget := behind(system)):
        return budget
    if isinstance(error, R8Error):
        return error
    if isinstance(error, duckdb.OutOfMemoryException):
        what = f"queries need more than the budget memory_limit = {MEMORY_MAX} allows"
        return EvidenceError(what, where="DuckDB", next_step="name fewer runs at once")
    if isinstance(error, duckdb.Error):
        what, hint = str(error).splitlines()[0], "the run holds rows R8 cannot read"
        return EvidenceError(what, where="a table", next_step=hint)
    if isinstance(error, OSError):
        where = str(error.filename or "-")
        return UsageError(error.strerror or str(error), where=where, next_step="check the path")
    raise error


def _complain(error: R8Error) -> int:
    if isinstance(error, BundleError):
        error = EvidenceError(render(error.reason), where=error.where, next_step=error.next_step)
    # A site file's faults take a line each; every other error is one line.
    faults = error.lines if isinstance(error, SiteFileError) else ()
    complain(f"{error.what} [{error.where}] -> {error.next_step}", *faults)
    return error.exit_code


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser(verb_of(sys.argv[1:] if argv is None else argv))
    args, unknown = parser.parse_known_args(argv)
    # A verb that is not here answers for itself, whatever was typed after it.
    if unknown and args.func is not _needs_checkout:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def _parser(verb: str | None) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="r8",
        usage="r8 VERB ... [-h] [--version]",
        description="Measure, prove and judge external KV-cache tiers.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"r8 {__version__}")
    verbs = parser.add_subparsers(
        dest="verb", metavar="VERB", required=True, help=argparse.SUPPRESS, prog="r8"
    )
    _add_judge_verbs(verbs)
    for module in VERB_MODULES:
        module.add_verbs(verbs)
    # A verb that reads needs nothing of the lab, and whoever sent the bundle meets none of it.
    if verb not in READING_VERBS:
        _add_lab_verbs(verbs)
    # What argparse keeps of each verb for its own list, which the map replaces.
    parser.epilog = help_map({one.dest: one.help or "" for one in verbs._choices_actions})  # noqa: SLF001
    return parser


def _add_judge_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verb = verbs.add_parser("judge", help="a verdict for every claim; owns the exit codes")
    add_runs(verb)
    verb.add_argument("--json", action="store_true", help="every verdict in full")
    add_reference(verb)
    verb.set_defaults(func=_judge)

    verb = verbs.add_parser("certificate", help="every rule of one run, with its arithmetic")
    verb.add_argument("run", type=Path, metavar="RUN")
    verb.add_argument("--json", action="store_true")
    add_language(verb)
    verb.set_defaults(func=_certificate)

    verb = verbs.add_parser("explain", help="what a rule is for, reads, and allows")
    verb.add_argument("rule", metavar="RULE", help="for example C4, or A1 of the audit")
    verb.add_argument("--json", action="store_true")
    add_language(verb)
    verb.set_defaults(func=_explain)

    verb = verbs.add_parser("metrics", help="every metric, as the shared SQL gives it")
    add_runs(verb)
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_metrics)

    verb = verbs.add_parser("runs", help="finished runs below a folder")
    verb.add_argument("root", type=Path, nargs="?", default=RUNS_ROOT, metavar="ROOT")
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_runs)


def _add_lab_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The lab's own verbs where its modules are; elsewhere verbs that say what is missing."""
    missing = "this R8 was installed without the lab"
    if find_spec("r8.lab") is not None:
        try:
            modules = [importlib.import_module(name) for name in LAB_MODULES if find_spec(name)]
        except ImportError as error:
            missing = f"the lab does not load: {error}"
        else:
            for module in modules:
                module.add_verbs(verbs)
            return
    for name in LAB_VERBS:
        verb = verbs.add_parser(name, help="needs the checkout", add_help=False)
        verb.set_defaults(func=_needs_checkout, missing=missing)


def _needs_checkout(args: argparse.Namespace) -> int:
    raise UsageError(
        f"`r8 {args.verb}` acts on machines, and {args.missing}",
        where="r8",
        next_step="run it in the R8 checkout, with `python -m r8` and its `lab` dependencies",
    )


def _judge(args: argparse.Namespace) -> int:
    runs = evidences(args.runs)
    others = references(args.reference, runs)
    verdicts = judge(runs, load_claims(), references=others)
    code = exit_code(verdicts)
    if args.json:
        rows = [dataclasses.asdict(verdict) for verdict in verdicts]
        print_json({"exit_code": code, "verdicts": rows})
    else:
        page(summary(runs, verdicts))
        line(f"{headline(verdicts)}; exit code {code}")
        if not others:
            line("no reference runs: claims against them are not judged; name some by --reference")
    return code


def _certificate(args: argparse.Namespace) -> int:
    evidence = one_evidence(args.run)
    with connect_settled([evidence]) as connection:
        findings = certify(evidence.run, connection)
    refused = refusals(findings)
    if args.json:
        print_json([dataclasses.asdict(one) for one in findings])
    else:
        page(finding_table(findings, args.lang))
        line(f"{evidence.run.run_id}: {len(refused)} rules refuse this run")
    return EXIT_INVALID if refused else 0


def _explain(args: argparse.Namespace) -> int:
    if args.json:
        print_json(explained(args.rule))
    else:
        page(explain(args.rule, args.lang), end="")
    return 0


def _metrics(args: argparse.Namespace) -> int:
    found = measure(evidences(args.runs))
    if args.json:
        print_json([dataclasses.asdict(one) for one in found])
        return 0
    page(measurement_table(found))
    return 0


def _runs(args: argparse.Namespace) -> int:
    rows = [_run_row(path) for path in find_runs(args.root)]
    headers = ["run", "scenario", "block", "arm", "level", "basis", "state", "path"]
    if args.json:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    elif rows:
        page(table(rows, headers))
    else:
        line(f"no finished runs below {args.root}")
    return 0


def _run_row(path: Path) -> list[str]:
    try:
        run = read_run(path).run
    except EvidenceError as error:
        return [path.name, *[""] * 5, f"cannot be trusted: {error.what}", str(path)]
    state = "complete" if run.complete else "recovered, measures nothing"
    level = f"c{run.concurrency}"
    cells = [run.run_id, run.scenario, str(run.block), run.arm, level, str(run.basis)]
    return [*cells, state, str(path)]
