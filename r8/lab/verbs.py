"""The verbs of `r8` that act on machines: they need the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from r8.console import complain, line, page, print_json, table
from r8.errors import EXIT_USAGE, SiteError
from r8.lab.campaign import status
from r8.lab.campaign.status import RUNS_ROOT
from r8.lab.instruments.probes import CHECKOUT
from r8.lab.machine import supervisor
from r8.lab.preflight.preflight import preflight, scenario_of
from r8.lab.site.load import load_site
from r8.lab.site.matrix import LIFETIME_SUFFIX

if TYPE_CHECKING:
    import argparse

    from r8.lab.preflight.requirement import Requirement

REHEARSAL = CHECKOUT / "data" / "sites" / "rehearsal.toml"
STATES = {
    True: "finished",
    False: "recovered, not a measurement",
    None: "damaged: run.json cannot be read",
}


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `preflight`, `status` and `clean`."""
    verb = subparsers.add_parser("preflight", help="look at a site; start and change nothing")
    verb.add_argument("--site", type=Path, default=REHEARSAL)
    verb.add_argument(
        "--scenario", help="its id, or the report: R1, R2, R3 (default: the site's first)"
    )
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_preflight)

    verb = subparsers.add_parser("status", help="runs done, broken or running; what is left behind")
    verb.add_argument("--runs-root", type=Path, default=RUNS_ROOT)
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_status)

    verb = subparsers.add_parser("clean", help="stop and unmount what a killed campaign left")
    verb.add_argument("--runs-root", type=Path, default=RUNS_ROOT)
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_clean)


def _preflight(args: argparse.Namespace) -> int:
    loaded = load_site(args.site)
    checks = preflight(loaded, scenario_of(loaded.site, args.scenario), RUNS_ROOT)
    if args.json:
        rows = [
            {
                "name": one.name,
                "ok": one.ok,
                "saw": one.saw,
                "next_step": one.next_step,
                "warning": one.warning,
            }
            for one in checks
        ]
        print_json(rows)
    else:
        cells = [[one.name, _word(one), one.saw, one.next_step or one.warning] for one in checks]
        page(table(cells, ["what", "ready", "saw", "type next"], widths=[60] * 4))
    return 0 if all(one.ok for one in checks) else EXIT_USAGE


def _word(check: Requirement) -> str:
    if not check.ok:
        return "NOT READY"
    return "warning" if check.warning else "ok"


def _status(args: argparse.Namespace) -> int:
    # Where runs go by default need not be there yet; a folder that was named must be.
    if args.runs_root != RUNS_ROOT and not args.runs_root.is_dir():
        raise SiteError(
            "there is no such folder",
            where=str(args.runs_root),
            next_step=f"give the --runs-root the session had, or none for {RUNS_ROOT}",
        )
    rows = [_place(path) for path in sorted(args.runs_root.glob("*/*")) if path.is_dir()]
    left = supervisor.leftovers(args.runs_root / ".supervisor")
    begun, damaged = status.campaigns(args.runs_root)
    if args.json:
        found = {
            "campaigns": [status.facts(folder, matrix) for folder, matrix in begun],
            "runs": rows,
            "leftovers": [str(one) for one in left],
            "damaged": [str(one) for one in damaged],
        }
        print_json(found)
        return EXIT_USAGE if damaged else 0
    for folder, matrix in begun:
        page(status.text(folder, matrix), end="\n\n")
    shown = table([list(one.values()) for one in rows], list(rows[0])) if rows else None
    page(shown or f"no runs under {args.runs_root}")
    for one in left:
        line(f"left behind: {one} -> r8 clean")
    for error in damaged:
        complain(str(error))
    return EXIT_USAGE if damaged else 0


def _place(path: Path) -> dict[str, str]:
    """One run directory and what can be done with it."""
    if path.suffix in {".partial", ".finalising"}:
        state, then = "not finished", f"r8 recover {path}"
    elif (path / "MANIFEST.sha256").is_file():
        state = STATES[_complete(path)]
        then = f"r8 certificate {path}"
    elif path.suffix == LIFETIME_SUFFIX:
        state, then = "engines of a campaign, or what is left of them", "--resume removes it"
    else:
        state, then = "not a run directory", "-"
    return {"scenario": path.parent.name, "run": path.name, "state": state, "next": then}


def _complete(path: Path) -> bool | None:
    """Whether a sealed run ended by itself; None when its `run.json` does not tell."""
    try:
        return bool(json.loads((path / "run.json").read_text())["complete"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _clean(args: argparse.Namespace) -> int:
    state = args.runs_root / ".supervisor"
    before = [str(one) for one in supervisor.leftovers(state)]
    left = [str(one) for one in supervisor.clean(state)]
    undone = [one for one in before if one not in left]
    if args.json:
        print_json({"undone": undone, "left": left})
        return EXIT_USAGE if left else 0
    for one in undone:
        line(f"undone: {one}")
    if not before:
        line(f"nothing was left behind under {args.runs_root}")
    for one in left:
        complain(f"not undone: {one} [{state}] -> end what still uses it")
    return EXIT_USAGE if left else 0
