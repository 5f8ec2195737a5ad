"""The command line; `python -m probes --help` lists its verbs."""

from __future__ import annotations

import argparse
import json
import socket
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .block.place import place_of
from .block.sysfs import Sysfs
from .cache.known_read import known_read
from .cache.residency import evict_all, measure, summary
from .catalogue import PROBES
from .errors import EXIT_INCOMPLETE, EXIT_INTERNAL, EXIT_OK, EXIT_USAGE, ProbeError
from .gpu.behind import TOOL_HERE, behind, read_words
from .gpu.snapshot import cards_now, take_snapshots
from .host.environment import capture, differences, load_capture
from .host.environment import summary as environment_summary
from .plan import Plan, make_plan, read_plan
from .record.iostat import IOSTAT
from .record.journal import Journal
from .record.recorder import record
from .status import status
from .tool import run_tool

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Parser(argparse.ArgumentParser):
    """Ends with one line and this instrument's exit code instead of argparse's 2."""

    def error(self, message: str) -> NoReturn:
        raise ProbeError(message, where="command line", next_step=f"see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m probes", description="Raw counters for evidence.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verb = verbs.add_parser("record", help="sample until interrupted")
    verb.description = "Ends on SIGINT, SIGTERM, end of a piped stdin, or after --for seconds."
    verb.add_argument("--plan", default="{}", metavar="FILE|JSON", help="what to record")
    verb.add_argument("--out", type=Path, help="run directory (default: rows to stdout)")
    verb.add_argument("--for", type=float, dest="for_s", metavar="SECONDS")
    verb.epilog = f"Keys of a plan: host, rates_hz, {', '.join(one.key for one in _settings())}."
    verb = verbs.add_parser("residency", help="page-cache residency of every file below --dir")
    verb.add_argument("--dir", type=Path, required=True)
    verb.add_argument("--moment", required=True, help="name of this moment, e.g. after_drop")
    verb.add_argument("--host", default=socket.gethostname(), help="name of this host in the rows")
    verb.add_argument("--out", type=Path, help="append rows to this file (default: stdout)")
    verb = verbs.add_parser("evict", help="write back and evict every file below --dir")
    verb.add_argument("--dir", type=Path, required=True)
    verb = verbs.add_parser("topology", help="which block device a path lies on, as JSON")
    verb.add_argument("--path", type=Path, required=True)
    verb = verbs.add_parser("status", help="which probes work here, and why not")
    verb.add_argument("--dir", type=Path, help="directory to try residency in (default: temp)")
    verb.add_argument("--metrics", help="URL of an engine's /metrics to try")
    verb.add_argument("--json", action="store_true", help="JSON instead of a table")
    verb = verbs.add_parser("environment", help="capture this host's settings, or compare two")
    what = verb.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, help="write a capture to this new file")
    what.add_argument("--diff", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    verb = verbs.add_parser("gpus", help="every card once, of every vendor's tool, as JSON")
    verb.add_argument(
        "--behind",
        metavar="JSON",
        help=f"words that run a command elsewhere, {TOOL_HERE} for the command; tools alone",
    )
    verb = verbs.add_parser("read", help="read a known number of bytes with O_DIRECT")
    verb.add_argument("--path", type=Path, required=True, help="file or block device")
    verb.add_argument("--bytes", type=int, required=True, dest="size_bytes")
    return parser


def _settings() -> list[Any]:
    return [*(setting for probe in PROBES for setting in probe.settings), IOSTAT]


def _plan(values: dict[str, Any], where: str) -> Plan:
    return make_plan(values, where, {probe.name: probe.rate_hz for probe in PROBES}, _settings())


def _record(args: argparse.Namespace) -> int:
    return record(_plan(*read_plan(args.plan)), args.out, for_s=args.for_s)


def _residency(args: argparse.Namespace) -> int:
    rows = list(measure(args.dir, args.moment, host=args.host, sysfs=Sysfs()))
    journal = Journal.open(args.out) if args.out else Journal(sys.stdout.fileno(), "stdout")
    journal.append_rows(asdict(row) for row in rows)
    journal.sync()
    if args.out:
        journal.close()
        print(json.dumps(summary(rows)))
    return EXIT_OK


def _evict(args: argparse.Namespace) -> int:
    failures = evict_all(args.dir)
    left = summary(list(measure(args.dir, "after_evict", host="", sysfs=Sysfs())))
    print(json.dumps({**left, "failed": failures}))
    return EXIT_INCOMPLETE if failures else EXIT_OK


def _topology(args: argparse.Namespace) -> int:
    print(json.dumps(place_of(args.path, Sysfs()), indent=2))
    return EXIT_OK


def _status(args: argparse.Namespace) -> int:
    metrics = {"metrics": {"status": args.metrics}} if args.metrics else {}
    found = status(_plan(metrics, "--metrics"), args.dir)
    if args.json:
        rows = [{"probe": name, **asdict(one)} for name, one in found.items()]
        print(json.dumps(rows, indent=2))
    else:
        for name, one in found.items():
            print(f"{name:<10} {one.works:<7} {one.detail}")
    return EXIT_OK


def _environment(args: argparse.Namespace) -> int:
    if args.diff:
        before, after = (load_capture(path) for path in args.diff)
        found = [asdict(one) for one in differences(before, after)]
        print(json.dumps(found, indent=2))
        return EXIT_INCOMPLETE if found else EXIT_OK
    taken = capture()
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


def _gpus(args: argparse.Namespace) -> int:
    words = read_words(args.behind) if args.behind else None
    snapshots = take_snapshots(behind(words) if words else run_tool)
    cards = cards_now(snapshots, None if words else Path("/sys"))
    tools = [{"tool": one.source, "reason": one.parsed.reason} for one in snapshots]
    print(json.dumps({"tools": tools, "cards": [asdict(one) for one in cards]}, indent=1))
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
    "gpus": _gpus,
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
    except Exception:  # noqa: BLE001 - a fault of ours; who started this keeps what it says
        traceback.print_exc()
        return EXIT_INTERNAL
