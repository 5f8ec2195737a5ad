"""`r8 sql` and `r8 dictionary`: ask the runs anything, and what every column means."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from r8.claims.reader import load_claims
from r8.cli.remote_sql import connect_remote, is_remote
from r8.cli.run_arguments import REFERENCE_ROOT, RUNS_ROOT, evidences, references
from r8.console import complain, line, page, print_csv, print_json, table
from r8.errors import UsageError
from r8.evidence.database import add_views
from r8.evidence.reader import find_runs
from r8.metrics.dictionary import as_markdown, describing, dictionary
from r8.verdict.judge import judge_session
from r8.verdict.session import open_session

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from r8.message import Check, Fact
    from r8.model import Finding

PROMPT, MORE = "r8> ", "..> "


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `sql` and `dictionary`."""
    verb = subparsers.add_parser("sql", help="DuckDB with every view over runs, figures, bundles")
    words = "one or more statements; without: from standard input, or asked one by one"
    verb.add_argument("statements", nargs="?", metavar="SQL", help=words)
    words = (
        "run directories, folders, bundles, or s3:// and https:// paths, behind the SQL (default: "
    )
    words += "data/runs, and data/reference of the checkout)"
    verb.add_argument("--runs", nargs="+", default=[], metavar="RUN", help=words)
    words = "a directory that statements may read and write, as in COPY (...) TO 'DIR/rows.csv'"
    verb.add_argument(
        "--allow-files", type=Path, action="append", default=[], metavar="DIR", help=words
    )
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="rows as JSON objects")
    form.add_argument(
        "--csv", action="store_true", help="rows as CSV; an apostrophe before a formula"
    )
    verb.set_defaults(func=_sql)

    verb = subparsers.add_parser("dictionary", help="every column: type, unit, meaning")
    verb.add_argument("relation", nargs="?", metavar="TABLE", help="one table or view")
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true", help="data/queries/DICTIONARY.md")
    verb.set_defaults(func=_dictionary)


def open_database(runs: list[str], allowed: Sequence[Path] = ()) -> duckdb.DuckDBPyConnection:
    """A connection with every view; over local runs also what the judge says of them.

    That is `findings` (a rule of a run), `checks` (a comparison of a finding), `claims` and
    `verdicts`. Beyond these, statements reach the directories `allowed` alone: no other file, and
    no network but what remote runs are read through.
    Raises UsageError when no run is named or found, or local and remote ones are mixed.
    """
    remote = [path for path in runs if is_remote(path)]
    if remote:
        if len(remote) < len(runs):
            raise UsageError(
                "remote and local runs in one question", where="r8 sql", next_step="name one kind"
            )
        complain("remote runs: nobody compared them with their manifests, or checked their tables")
        return connect_remote(remote, [one.resolve() for one in allowed])
    paths = [Path(path) for path in runs] or [
        root for root in (RUNS_ROOT, REFERENCE_ROOT) if find_runs(root)
    ]
    if not paths:
        raise UsageError(
            "there are no runs here", where=str(RUNS_ROOT), next_step="name some with --runs"
        )
    found = evidences(paths)
    session = open_session(found, allowed=[one.resolve() for one in allowed])
    claims = load_claims()
    reference = references(None, found)
    verdicts = judge_session(session, claims, open_session(reference) if reference else None)
    connection = session.connection
    add_views(connection)
    names = ("run_id", "rule_id", "answer")
    rows = [{name: getattr(one, name) for name in names} for one in session.findings]
    _add_table(connection, "findings", rows)
    rows = [_compared(one, check) for one in session.findings for check in one.checks]
    _add_table(connection, "checks", rows)
    _add_table(connection, "claims", [_flat(dataclasses.asdict(one)) for one in claims])
    rows = [
        {
            "claim_id": one.claim.claim_id,
            **_flat(dataclasses.asdict(one), leave=("claim", "reasons")),
            "reasons": json.dumps([dataclasses.asdict(reason) for reason in one.reasons]),
        }
        for one in verdicts
    ]
    _add_table(connection, "verdicts", rows)
    return connection


def _compared(finding: Finding, check: Check) -> dict[str, Any]:
    """A row of `checks`: numbers in columns of their own, words of both sides among the facts."""
    ends = check.limit if isinstance(check.limit, tuple) else (check.limit,)
    numbers = [_number(one) for one in (check.measured, ends[0], ends[-1])]
    sides = {"measured": check.measured, "limit": list(ends)} if None in numbers else {}
    return {
        "run_id": finding.run_id,
        "rule_id": finding.rule_id,
        "quantity": check.quantity,
        "measured": numbers[0],
        "op": check.op,
        "low": numbers[1],
        "high": numbers[2],
        "unit": check.unit,
        "answer": check.answer,
        "message": check.message,
        "facts": json.dumps({**check.facts, **sides}, sort_keys=True),
    }


def _number(value: Fact) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _flat(row: dict[str, Any], leave: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        key: json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
        for key, value in row.items()
        if key not in leave
    }


def _add_table(
    connection: duckdb.DuckDBPyConnection, name: str, rows: list[dict[str, Any]]
) -> None:
    plain = [{key: _text(value) for key, value in row.items()} for row in rows]
    connection.register(f"r8_{name}", pa.Table.from_pylist(plain))
    connection.execute(f"CREATE TEMP TABLE {name} AS FROM r8_{name}")
    connection.unregister(f"r8_{name}")


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value


def _sql(args: argparse.Namespace) -> int:
    interactive = args.statements is None and sys.stdin.isatty()
    text = "" if interactive else (args.statements or sys.stdin.read())
    with open_database(args.runs, args.allow_files) as connection:
        if interactive:
            return _ask(connection, args)
        try:
            for statement in duckdb.extract_statements(text):
                _answer(connection, statement.query, args)
        except duckdb.Error as error:
            raise _wrong(error) from error
    return 0


def _ask(connection: duckdb.DuckDBPyConnection, args: argparse.Namespace) -> int:
    """Statements one by one, each ended by a semicolon, until end of input."""
    line("every table and view: SHOW TABLES; what a column means: r8 dictionary. Ctrl-D ends.")
    pending = ""
    while True:
        try:
            pending += input(MORE if pending else PROMPT) + "\n"
        except EOFError:
            line("")
            return 0
        if pending.strip().endswith(";"):
            try:
                _answer(connection, pending, args)
            except duckdb.Error as error:
                complain(str(_wrong(error)))
            pending = ""


def _wrong(error: duckdb.Error) -> UsageError:
    lines = str(error).splitlines()
    hint = "SHOW TABLES, or r8 dictionary TABLE"
    if isinstance(error, duckdb.PermissionException):
        hint = "name the directory with --allow-files DIR; there is no network"
    return UsageError(lines[0], where="SQL", next_step=hint)


def _answer(
    connection: duckdb.DuckDBPyConnection, statement: str, args: argparse.Namespace
) -> None:
    answer = connection.execute(statement)
    if answer.description is None:
        return
    headers = [one[0] for one in answer.description]
    rows = answer.fetchall()
    if args.json:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    elif args.csv:
        print_csv(rows, headers)
    else:
        page(table(rows, headers))
        line(f"{len(rows)} rows")


def _dictionary(args: argparse.Namespace) -> int:
    with describing() as connection:
        entries = dictionary(connection)
    chosen = [one for one in entries if args.relation in {None, one.relation}]
    if not chosen:
        known = ", ".join(dict.fromkeys(one.relation for one in entries))
        raise UsageError(f"no table or view {args.relation}", where="r8", next_step=known)
    if args.markdown:
        page(as_markdown(chosen), end="")
    elif args.json:
        print_json([dataclasses.asdict(one) for one in chosen])
    else:
        rows = [[one.relation, one.column, one.type, one.unit, one.meaning] for one in chosen]
        headers = ["table", "column", "type", "unit", "meaning"]
        page(table(rows, headers, widths=[None, None, 24, None, 60]))
    return 0
