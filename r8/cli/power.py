"""`r8 power SCENARIO`: what so many blocks can tell, before hours are spent on them."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from r8.claims.reader import is_published, load_claims
from r8.cli.run_arguments import REFERENCE_ROOT, evidences
from r8.console import line, page, print_json, table
from r8.errors import UsageError
from r8.forensics.certificate import objections
from r8.units import s_from_ns
from r8.verdict.intervals import MIN_BLOCKS_FOR_INTERVAL
from r8.verdict.power import (
    AT,
    BLOCKS_MAX,
    DRAWS,
    EQUIVALENCE,
    SEED,
    Chances,
    Pilot,
    assumed,
    blocks_for,
    chances,
    pilot_of,
)
from r8.verdict.session import open_session

if TYPE_CHECKING:
    from r8.model import Claim
    from r8.verdict.session import Session

# What the shipped sites plan.
BLOCKS = 3
SPREAD_MAX = 0.5
_BLOCK_NS = "SELECT block_ns FROM block_times"


def add_verbs(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register `power`."""
    words = "what so many blocks of a scenario can tell, before they are run"
    verb = subparsers.add_parser("power", help=words)
    verb.add_argument("scenario", metavar="SCENARIO", help="for example r2-cold-recovery")
    basis = verb.add_mutually_exclusive_group()
    words = "runs whose spread is expected again (default: the reference runs of the scenario)"
    basis.add_argument("--pilot", nargs="+", type=Path, metavar="RUN", help=words)
    words = "an assumed spread of one claim's blocks, for example 2%%"
    basis.add_argument("--spread", type=_share, metavar="SHARE", help=words)
    verb.add_argument("--blocks", type=int, default=BLOCKS, help=f"planned (default: {BLOCKS})")
    words = "blocks of the reference (default: those of the pilot, or as planned)"
    verb.add_argument("--reference-blocks", type=int, metavar="N", help=words)
    verb.add_argument("--json", action="store_true")
    verb.set_defaults(func=_power)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Basis:
    """What a plan's chances stand on."""

    pilot: Pilot
    words: str  # measured or modelled runs, or an assumption
    blocks: int | None  # of the pilot; None where nobody ran one
    block_ns: float | None


def _power(args: argparse.Namespace) -> int:
    basis = _assumption(args) if args.spread is not None else _measured(args)
    fixed = args.reference_blocks or basis.blocks
    reference_blocks = fixed or args.blocks
    if min(args.blocks, reference_blocks) < MIN_BLOCKS_FOR_INTERVAL or args.blocks > BLOCKS_MAX:
        raise UsageError(
            f"{args.blocks} blocks against {reference_blocks}: a plan has 2 to {BLOCKS_MAX}",
            where="--blocks, --reference-blocks",
            next_step="plan at least two, so that there is an interval",
        )
    found = chances(basis.pilot, args.blocks, reference_blocks)
    needed = {one: blocks_for(basis.pilot, one, fixed) for one in AT}
    if args.json:
        print_json(_machine(basis, found, needed))
    else:
        page(_table(basis.pilot, found))
        for text in _sentences(basis, found, needed):
            line(text)
    return 0


def _claims(scenario: str) -> list[Claim]:
    own = [one for one in load_claims() if not is_published(one)]
    found = [one for one in own if one.scenario == scenario]
    if not found:
        raise UsageError(
            "no claim of R8's own is about this scenario",
            where=scenario,
            next_step=f"name one of {', '.join(sorted({one.scenario for one in own}))}",
        )
    return found


def _assumption(args: argparse.Namespace) -> _Basis:
    claims = sorted(_claims(args.scenario), key=lambda one: one.kind != EQUIVALENCE)
    words = "an assumed spread, nothing was measured"
    return _Basis(pilot=assumed(claims[0], args.spread), words=words, blocks=None, block_ns=None)


def _measured(args: argparse.Namespace) -> _Basis:
    claims, session = _claims(args.scenario), _session(args)
    for finding in objections(session.runs, session.findings, session.runs):
        raise UsageError(
            f"rule {finding.rule_id} refuses a run of the pilot",
            where=finding.run_id,
            next_step="see `r8 certificate RUN`, and name a pilot whose runs all count",
        )
    pilot = pilot_of(session, claims)
    if pilot is None:
        raise UsageError(
            "the pilot has fewer than two blocks in which every claim has a number",
            where=args.scenario,
            next_step="name more runs with --pilot, or assume a spread with --spread",
        )
    kinds = ", ".join(sorted({str(run.basis) for run in session.runs}))
    blocks = len(pilot.within)
    return _Basis(
        pilot=pilot,
        words=f"{kinds}, {blocks} blocks of {len(pilot.means)} campaigns",
        blocks=blocks,
        block_ns=median(row[0] for row in session.rows(_BLOCK_NS, {})),
    )


def _session(args: argparse.Namespace) -> Session:
    folder = REFERENCE_ROOT / args.scenario
    if not args.pilot and not folder.is_dir():
        raise UsageError(
            "no reference runs of this scenario lie here",
            where=str(folder),
            next_step="name runs with --pilot, or assume a spread with --spread 2%",
        )
    return open_session(evidences(args.pilot or [folder]))


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value <= SPREAD_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to {SPREAD_MAX:.0%}")
    return value


def _rows(pilot: Pilot, found: Chances) -> list[dict[str, object]]:
    between = pilot.campaign_spreads
    return [
        {
            "claim": claim.claim_id,
            "spread": float(pilot.spreads[at]),
            "campaign_spread": None if between is None else float(between[at]),
            "chance_reproduced": found.reproduced[at],
            **{f"deviation_told_{round(100 * one)}": found.told[at][n] for n, one in enumerate(AT)},
        }
        for at, claim in enumerate(pilot.claims)
    ]


def _machine(basis: _Basis, found: Chances, needed: dict[float, int | None]) -> dict[str, object]:
    return {
        "basis": basis.words,
        "estimator": "normal draws of the pilot's covariance, judged by t intervals",
        "draws": DRAWS,
        "seed": SEED,
        "blocks": found.blocks,
        "reference_blocks": found.reference_blocks,
        "block_ns": basis.block_ns,
        "chance_exit_0": found.all_reproduced,
        "blocks_needed": {str(one): blocks for one, blocks in needed.items()},
        "claims": _rows(basis.pilot, found),
    }


def _table(pilot: Pilot, found: Chances) -> str:
    heads = ["claim", "spread", "between campaigns", "REPRODUCED"]
    heads += [f"DEVIATES at ({one:.0%})" for one in AT]
    rows = [
        [row.pop("claim"), *(None if one is None else f"{one:.2%}" for one in row.values())]
        for row in _rows(pilot, found)
    ]
    return table(rows, heads)


def _sentences(basis: _Basis, found: Chances, needed: dict[float, int | None]) -> list[str]:
    block_s = None if basis.block_ns is None else s_from_ns(basis.block_ns)
    minutes = "" if block_s is None else f", about {found.blocks * block_s / 60:.0f} min"
    told = [
        f"basis: {basis.words}; simulated, seed {SEED}, n = {DRAWS} campaigns",
        (
            f"an honest run of {found.blocks} blocks{minutes}, against {found.reference_blocks} of "
            f"the reference: every claim REPRODUCED in {found.all_reproduced:.0%} of campaigns"
        ),
    ]
    for chance, blocks in needed.items():
        if blocks is None:
            told.append(f"for {chance:.0%}: more than {BLOCKS_MAX} blocks; no plan decides it")
            continue
        hours = "" if block_s is None else f", {blocks * block_s / 3600:.1f} h"
        told.append(f"for {chance:.0%}: {blocks} blocks{hours}")
    claims = basis.pilot.claims
    least = min(range(len(claims)), key=lambda at: found.reproduced[at])
    if found.reproduced[least] < min(AT):
        told.append(f"what decides it: {claims[least].claim_id}")
    return told
