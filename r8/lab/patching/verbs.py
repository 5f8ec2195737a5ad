"""`r8 patch status|apply|revert|show`: the patch from the command line."""

from __future__ import annotations

import dataclasses
import shlex
from typing import TYPE_CHECKING

from r8.console import line, page, print_json
from r8.lab.patching import patching

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

ACTIONS: dict[str, tuple[Callable[[patching.PatchTarget], patching.PatchStatus], str]] = {
    "status": (patching.status, "say which patch state an LMCache is in, by digest"),
    "apply": (patching.apply, "patch an LMCache, by exact digest"),
    "revert": (patching.revert, "give an LMCache its original bytes back"),
}


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `patch` and its four verbs; each sets `func`, which returns the exit code."""
    parser = subparsers.add_parser("patch", help="the LMCache parallel-read patch")
    verbs = parser.add_subparsers(dest="patch_verb", required=True)
    for name, (_, words) in ACTIONS.items():
        verb = verbs.add_parser(name, help=words, description=words)
        verb.add_argument(
            "--python", default="python3", help="the engine's Python, with its exec prefix"
        )
        verb.add_argument("--lmcache", metavar="DIR", help="put in front of sys.path")
        verb.add_argument("--json", action="store_true", help="print one JSON object")
        verb.set_defaults(func=_act)
    show = verbs.add_parser("show", help="print what the series knows, and the diff")
    show.add_argument("version", help="an LMCache version, or the SHA-256 of a file")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    show.set_defaults(func=_show)


def _act(args: argparse.Namespace) -> int:
    action, _ = ACTIONS[args.patch_verb]
    env = {"PYTHONPATH": args.lmcache} if args.lmcache else {}
    target = patching.PatchTarget(command=tuple(shlex.split(args.python)), env=env)
    _print(action(target), as_json=args.json)
    return 0


def _show(args: argparse.Namespace) -> int:
    status = patching.show(args.version)
    _print(status, as_json=args.json)
    if status.path and not args.json:
        page(patching.diff(status.name or ""), end="")
    return 0


def _print(status: patching.PatchStatus, *, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(status))
        return
    line(f"{status.state}: {status.what}")
    for field in dataclasses.fields(status):
        value = getattr(status, field.name)
        if field.name not in {"state", "what", "duplicate_methods"} and value:
            line(f"  {field.name:16} {value}")
