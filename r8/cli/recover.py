"""`r8 recover DIR...`: seal what interrupted runs journalled, marked as incomplete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r8.console import complain, line, print_json
from r8.errors import R8Error, UsageError
from r8.evidence import door
from r8.evidence.finalise import FINALISING_SUFFIX, PARTIAL_SUFFIX, SPENT_SUFFIX, recover

if TYPE_CHECKING:
    import argparse


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `recover`."""
    verb = subparsers.add_parser(
        "recover", help="seal what an interrupted run journalled; it is kept as incomplete"
    )
    verb.add_argument(
        "directories",
        metavar="DIR",
        type=Path,
        nargs="+",
        help="a <run_id>.partial directory, or a folder with some below it",
    )
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_recover)


def _recover(args: argparse.Namespace) -> int:
    """Recover each directory; one that cannot be recovered does not stop the others."""
    exit_code, rows = 0, []
    for directory in args.directories:
        for partial in unfinished(directory):
            try:
                final = recover(partial)
                rows.append({"partial": str(partial), "recovered": str(final), "error": None})
                if not args.json:
                    line(f"recovered {final} (incomplete)")
            except R8Error as error:
                rows.append({"partial": str(partial), "recovered": None, "error": str(error)})
                complain(str(error), by="r8 recover")
                exit_code = exit_code or error.exit_code
    if args.json:
        print_json({"exit_code": exit_code, "runs": rows})
    return exit_code


def unfinished(directory: Path) -> list[Path]:
    """The partial directories that `directory` names or holds, sorted.

    Any of a run's working directories (`.finalising`, `.spent`) names its partial one. Raises
    UsageError when there is nothing to recover.
    """
    for suffix in (PARTIAL_SUFFIX, FINALISING_SUFFIX, SPENT_SUFFIX):
        if directory.name.endswith(suffix):
            stem = directory.name.removesuffix(suffix)
            return [directory.with_name(stem + PARTIAL_SUFFIX)]
    found = door.folders(directory, PARTIAL_SUFFIX)
    if not found:
        raise UsageError(
            "there is no unfinished run",
            where=str(directory),
            next_step=f"ls its folder; an unfinished run is a directory *{PARTIAL_SUFFIX}",
        )
    return found
