"""The command line: `record`, `residency`, `evict`, `topology`, `status`, `environment`, `read`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .environment import capture, differences, load_capture
from .environment import summary as environment_summary
from .errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_USAGE, ProbeError
from .journal import Journal
from .known_read import known_read
from .place import place_of
from .plan import Plan, load_plan
from .record import record
from .residency import evict_all, measure, summary
from .status import as_rows, status, table
from .topology import Sysfs

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Parser(argparse.ArgumentParser):
    """Ends with one line and this instrument's exit code instead of argparse's 2."""

    def error(self, message: str) -> NoReturn:
        raise ProbeError(message, where="command line", next_step=f"see {self.prog} --help")


def _pairs(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m probes", description="Raw counters for evidence.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _record_parser(verbs.add_parser("record", help="sample until interrupted"))
    verb = verbs.add_parser("residency", help="page-cache residency of every file below --dir")
    verb.add_argument("--dir", type=Path, required=True)
    verb.add_argument("--moment", required=True, help="name of this moment, e.g. after_drop")
    verb.add_argument("--out", type=Path, help="append rows to this file (default: stdout)")
    verb = verbs.add_parser("evict", help="write back and evict every file below --dir")
    verb.add_argument("--dir", type=Path, required=True)
    verb = verbs.add_parser("topology", help="which block device a path lies on, as JSON")
    verb.add_argument("--path", type=Path, required=True)
    verb = verbs.add_parser("status", help="which probes work here, and why not")
    verb.add_argument("--dir", type=Path, help="directory to try residency in (default: temp)")
    verb.add_argument("--metrics", help="URL of an engine's /metrics to try")
    verb.add_argument("--json", action="store_true", help="JSON instead of a table")
    _context_parsers(verbs)
    return parser


def _context_parsers(verbs: Any) -> None:
    verb = verbs.add_parser("environment", help="what this host is like, or what changed")
    verb.add_argument("--out", type=Path, help="write a capture to this new file")
    verb.add_argument("--diff", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    verb.add_argument("--identify", action="store_true", help="serials and names as they are")
    verb = verbs.add_parser("read", help="read a known number of bytes with O_DIRECT")
    verb.add_argument("--path", type=Path, required=True, help="file or block device")
    verb.add_argument("--bytes", type=int, required=True, dest="size_bytes")


def _record_parser(verb: argparse.ArgumentParser) -> None:
    verb.description = "Ends on SIGINT, SIGTERM, end of a piped stdin, or after --for seconds."
    verb.add_argument("--plan", type=Path, help="JSON file; the flags below override its keys")
    verb.add_argument("--out", type=Path, help="run directory (default: rows to stdout)")
    verb.add_argument("--for", type=float, dest="for_s", metavar="SECONDS")
    verb.add_argument("--host", help="name of this host in the rows")
    verb.add_argument("--devices", dest="block_devices", metavar="NAME[,NAME..]")
    verb.add_argument("--engine", type=_pairs, action="append", metavar="INSTANCE=PID")
    verb.add_argument("--metrics", type=_pairs, action="append", metavar="INSTANCE=URL")
    verb.add_argument("--rate", type=_pairs, action="append", metavar="PROBE=HZ")
    verb.add_argument("--nics", metavar="NAME[,NAME..]", help="network interfaces")
    for flag in ("--iostat", "--gpu", "--nvme"):
        verb.add_argument(flag, action=argparse.BooleanOptionalAction, default=None)


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text  # the plan's own check says what is wrong with it


def _plan(args: argparse.Namespace) -> Plan:
    flags: dict[str, Any] = {key: getattr(args, key) for key in ("host", "iostat", "gpu", "nvme")}
    if args.nics is not None:
        flags["nics"] = args.nics.split(",")
    if args.block_devices is not None:
        flags["block_devices"] = args.block_devices.split(",")
    if args.engine:
        flags["engines"] = {name: _number(pid) for name, pid in args.engine}
    if args.metrics:
        flags["metrics"] = dict(args.metrics)
    if args.rate:
        flags["rates_hz"] = {name: _number(rate) for name, rate in args.rate}
    plan = load_plan(args.plan) if args.plan else Plan()
    given = {key: value for key, value in flags.items() if value is not None}
    return plan.with_overrides(given, "command line")


def _record(args: argparse.Namespace) -> int:
    return record(_plan(args), args.out, for_s=args.for_s)


def _residency(args: argparse.Namespace) -> int:
    rows = list(measure(args.dir, args.moment, sysfs=Sysfs()))
    journal = Journal.open(args.out) if args.out else Journal(sys.stdout.fileno(), "stdout")
    journal.append_rows(row.row() for row in rows)
    journal.sync()
    if args.out:
        journal.close()
        print(json.dumps(summary(rows)))
    return EXIT_OK


def _evict(args: argparse.Namespace) -> int:
    failures = evict_all(args.dir)
    left = summary(list(measure(args.dir, "after_evict", sysfs=Sysfs())))
    print(json.dumps({**left, "failed": failures}))
    return EXIT_INCOMPLETE if failures else EXIT_OK


def _topology(args: argparse.Namespace) -> int:
    print(json.dumps(place_of(args.path, Sysfs()), indent=2))
    return EXIT_OK


def _status(args: argparse.Namespace) -> int:
    found = status(args.dir, args.metrics)
    print(json.dumps(as_rows(found), indent=2) if args.json else table(found))
    return EXIT_OK


def _environment(args: argparse.Namespace) -> int:
    if args.diff:
        before, after = (load_capture(path) for path in args.diff)
        found = [one.row() for one in differences(before, after)]
        print(json.dumps(found, indent=2))
        return EXIT_INCOMPLETE if found else EXIT_OK
    if args.out is None:
        raise ProbeError(
            "nowhere to write the capture", where="environment", next_step="give --out or --diff"
        )
    taken = capture(identify=args.identify)
    try:
        with args.out.open("x", encoding="utf-8") as file:
            json.dump(taken, file, indent=1, sort_keys=True)
    except OSError as error:
        raise ProbeError(
            f"cannot write the capture: {error.strerror}",
            where=str(args.out),
            next_step="give --out a new file in a directory that exists",
        ) from error
    print(json.dumps(environment_summary(taken)))
    return EXIT_OK


def _read(args: argparse.Namespace) -> int:
    print(json.dumps(asdict(known_read(args.path, args.size_bytes))))
    return EXIT_OK


_VERBS = {
    "record": _record,
    "residency": _residency,
    "evict": _evict,
    "topology": _topology,
    "status": _status,
    "environment": _environment,
    "read": _read,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; an error meant for a person is one line on stderr and exit code 4."""
    try:
        args = _parser().parse_args(arguments)
        return _VERBS[args.verb](args)
    except ProbeError as error:
        print(f"probes: {error}", file=sys.stderr)
        return EXIT_USAGE
