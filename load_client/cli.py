"""The command line: `run`, `calibrate`, `rederive`.

Exit codes: 0 every request ok, 1 some failed (their rows are kept), 4 the client cannot do what was
asked (`calibrate`: a stream failed, or the null server did not stamp every request; no row is
appended then), 128 + signal after a stop by signal (rows of what was in flight are kept).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .clock import Clock
from .errors import EXIT_INTERNAL, EXIT_OK, EXIT_SOME_FAILED, EXIT_USAGE, ClientError
from .phase.progress import PhaseProgress
from .phase.run import run_phase
from .phase.shards import run_shard, run_sharded
from .record.journal import append_lines, append_rows
from .record.raw_stream import SUFFIX, decode_batches
from .record.rows import burst_rows
from .workload.plan import KEYS, flag_of, make_plan, read_plan, wanted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

_SIGNAL_EXIT_BASE = 128


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code."""
    try:
        return _carry_out(command_line().parse_args(arguments))
    except Exception:  # noqa: BLE001 - a fault of ours; who started this keeps what it says
        traceback.print_exc()
        return EXIT_INTERNAL


def _carry_out(options: argparse.Namespace) -> int:
    stopped_by: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        stopped_by.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = int(options.command(options))
    except ClientError as error:
        print(f"load_client: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        code = EXIT_SOME_FAILED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return _SIGNAL_EXIT_BASE + stopped_by[0] if stopped_by else code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(
            f"load_client: {message} [command line] -> {self.prog} --help shows what to type",
            file=sys.stderr,
        )
        sys.exit(EXIT_USAGE)


def command_line() -> argparse.ArgumentParser:
    """The parser of every command."""
    parser = _Parser(prog="python -m load_client", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _run_parser(commands.add_parser("run", help="send one phase of load, append rows to DIR"))
    _calibrate_parser(
        commands.add_parser("calibrate", help="measure this client against its own null server")
    )
    shard = commands.add_parser("shard", help="one process of `run --processes`; started by it")
    shard.add_argument("--out", type=Path, required=True)
    shard.set_defaults(command=_shard)
    again = commands.add_parser("rederive", help="derive rows again from a raw stream file")
    again.add_argument("raw", type=Path, help=f"DIR/raw/client-*{SUFFIX}")
    again.add_argument("--out", type=Path, required=True, help="directory for the derived rows")
    again.set_defaults(command=_rederive)
    return parser


def number_list(text: str) -> list[int]:
    """Numbers of a list of numbers and ranges, such as 0-15,40."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        numbers.extend(range(int(first), int(last if dash else first) + 1))
    return numbers


# Keys whose flag takes something else than a word, a number or a switch.
_FLAGS: dict[str, dict[str, Any]] = {
    "sessions": {"type": number_list, "help": "for example 0-15,40"},
    "vocab": {"type": int, "nargs": 2, "metavar": ("LOW", "HIGH"), "help": "ids in [LOW, HIGH)"},
    "more_instances": {"type": json.loads, "metavar": "JSON", "help": wanted("more_instances")},
    "extra_body": {"type": json.loads, "metavar": "JSON", "help": wanted("extra_body")},
}
_TYPES = {"str": str, "int": int, "float": float}
_WITHOUT_FLAG = {"shard"}  # a process of `--processes` gets it with its plan


def _run_parser(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--plan", type=Path, help="JSON file; flags below override its keys")
    add("--out", type=Path, required=True, help="directory of the journals")
    add("--quiet", action="store_true", help="no progress, warnings only")
    add("--client-cpus", type=number_list, help="CPUs for --processes, in turn")
    for key, item in KEYS.items():
        kind = str(item.type).removesuffix(" | None")
        if key in _FLAGS:
            add(flag_of(key), **_FLAGS[key])
        elif kind == "bool":
            add(flag_of(key), action=argparse.BooleanOptionalAction)
        elif key not in _WITHOUT_FLAG:
            add(flag_of(key), type=_TYPES[kind], metavar=kind.upper(), help=wanted(key))
    parser.set_defaults(command=_run)


def _calibrate_parser(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--concurrency", type=int, required=True)
    add("--request-bytes", type=int, required=True, help="size of each request body")
    add("--out", type=Path, required=True, help="journal the row is appended to")
    add("--ttft-ms", type=float, default=500.0, help="scripted TTFT of the null server")
    add("--chunks", type=int, default=64)
    add("--interval-ms", type=float, default=20.0)
    add("--tls", action="store_true", help="over TLS, with a certificate made on the spot")
    add("--connect", choices=("before", "inside"), default="before")
    add("--limit-up-to", type=int, metavar="N", help="also find where it is no longer exact")
    add("--client-cpus", type=number_list, help="pin the client, for example 1")
    add("--server-cpus", type=number_list, help="pin the null server, for example 0")
    parser.set_defaults(command=_calibrate)


def _run(options: argparse.Namespace) -> int:
    given = vars(options)
    flags = {key: given[key] for key in KEYS if given.get(key) is not None}
    from_file = read_plan(options.plan) if options.plan is not None else {}
    where = str(options.plan) if options.plan is not None else "command line"
    plan = make_plan(from_file | flags, where)
    label = f"{plan.phase} {plan.instance}"
    progress = PhaseProgress(sys.stderr, label, len(plan.sessions), quiet=options.quiet)
    if plan.processes > 1:
        summary = run_sharded(plan, options.out, progress, options.client_cpus)
    else:
        summary = run_phase(plan, options.out, progress, Clock())
    return EXIT_OK if summary.all_ok else EXIT_SOME_FAILED


def _shard(options: argparse.Namespace) -> int:
    plan = make_plan(json.loads(sys.stdin.readline()), "the plan of a shard")
    label = f"{plan.phase} {plan.instance} {plan.shard[0] + 1}/{plan.shard[1]}"
    progress = PhaseProgress(sys.stderr, label, len(plan.sessions), quiet=True)
    summary = run_shard(plan, options.out, progress, Clock())
    return EXIT_OK if summary.all_ok else EXIT_SOME_FAILED


def _calibrate(options: argparse.Namespace) -> int:
    from .calibration.limit import find_limit  # noqa: PLC0415 - a phase starts without them
    from .calibration.measure import CalibrationBurst, calibrate  # noqa: PLC0415 - as above

    asked = CalibrationBurst(
        concurrency=options.concurrency,
        request_bytes=options.request_bytes,
        ttft_ns=round(options.ttft_ms * 1e6),
        chunks=options.chunks,
        interval_ns=round(options.interval_ms * 1e6),
        client_cpus=options.client_cpus,
        server_cpus=options.server_cpus,
        tls=options.tls,
        connect=options.connect,
    )
    found = calibrate(asked)
    shown = found.row | found.detail
    append_rows(options.out, [found.row])
    if options.limit_up_to is not None:
        limit = find_limit(asked, options.limit_up_to)
        append_rows(options.out, limit.rows)
        shown |= {"exact_up_to": limit.exact_up_to, "inexact_at": limit.inexact_at}
        shown["inexact_because"] = limit.reason
    print(json.dumps(shown))
    return EXIT_OK


def _rederive(options: argparse.Namespace) -> int:
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        batches = list(decode_batches(options.raw))
    except OSError as refusal:
        raise ClientError(
            f"cannot read or write: {refusal.strerror}",
            where=str(refusal.filename),
            next_step=f"give a raw/client-*{SUFFIX} and a writable --out",
        ) from refusal
    for clock, captures in batches:
        requests, chunks, _ = burst_rows(captures, clock)
        append_lines(options.out / "chunks.jsonl", "".join(one.lines() for one in chunks))
        append_rows(options.out / "requests.jsonl", requests)
    print(f"{sum(len(captures) for _, captures in batches)} requests in {len(batches)} batches")
    return EXIT_OK
