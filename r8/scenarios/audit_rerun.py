"""`nox -s audit-rerun -- BUNDLE --site F --seed S`: run a few sealed cells again, and compare.

The auditor chooses the seed; it draws the cells. Each is measured on the site given, with the
sealed run's own prompts, read back from disk, and held against the sealed run by
`r8.verdict.rerun`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from r8.cli.run_arguments import evidences
from r8.console import complain, line, page, table
from r8.crash import guarded
from r8.errors import EXIT_DEVIATES, EXIT_REPRODUCED, R8Error
from r8.evidence.reader import read_run
from r8.lab.campaign.campaign import open_campaign, plan_campaign
from r8.lab.machine.supervisor import Supervisor
from r8.lab.preflight.preflight import require_ready
from r8.lab.site.load import load_site
from r8.report.words import render_reasons
from r8.verdict.rerun import DEFAULT_CELLS, compare, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.evidence.reader import Evidence
    from r8.verdict.rerun import Comparison

CHECKOUT = Path(__file__).resolve().parents[2]
REHEARSAL = CHECKOUT / "data" / "sites" / "rehearsal.toml"
AUDITS_ROOT = CHECKOUT / "data" / "runs" / "audits"


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, run, compare; 0 when every question about every cell held, 1 otherwise."""
    args = _parse(argv)
    try:
        chosen = drawn(evidences([args.bundle]), args.seed, args.cells)
        line(f"seed {args.seed} draws {', '.join(one.run.run_id for one in chosen)}")
        if args.draw_only:
            return EXIT_REPRODUCED
        found = [answer for one in chosen for answer in _again(one, args)]
    except R8Error as error:
        complain(str(error), by="audit-rerun")
        return error.exit_code
    rows = [
        ["PASS" if one.held else "FAIL", one.run_id, one.name, render_reasons(one.reasons)]
        for one in found
    ]
    page(table(rows, ["", "run", "question", "answer"], widths=[None, None, None, 70]))
    return EXIT_REPRODUCED if all(one.held for one in found) else EXIT_DEVIATES


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="audit-rerun", description=__doc__)
    parser.add_argument("bundle", type=Path, help="a sealed bundle, or a folder of runs")
    parser.add_argument("--site", type=Path, default=REHEARSAL, help="default: the rehearsal")
    parser.add_argument("--seed", type=int, required=True, help="yours; it draws the cells")
    parser.add_argument("--cells", type=int, default=DEFAULT_CELLS)
    parser.add_argument("--runs-root", type=Path, default=AUDITS_ROOT)
    parser.add_argument("--draw-only", action="store_true", help="name the cells, run nothing")
    return parser.parse_args(argv)


def _again(original: Evidence, args: argparse.Namespace) -> list[Comparison]:
    """Measure the cell of a sealed run once more, with its prompts."""
    run = original.run
    loaded = load_site(args.site)
    require_ready(loaded, run.scenario, args.runs_root)
    # A block's seed is the campaign's plus its number; session numbers follow from the plan.
    plan = loaded.site.plan_of(run.scenario)
    matrix, cells = plan_campaign(
        loaded,
        run.scenario,
        () if plan is None else plan.arms,
        blocks=run.block + 1,
        seed=run.seed - run.block,
    )
    wanted = (run.block, run.arm, run.concurrency)
    (place,) = (one for one in cells if (one.block, one.arm, one.concurrency) == wanted)
    with (
        Supervisor(args.runs_root / ".supervisor") as supervisor,
        open_campaign(loaded, matrix, (place,), supervisor, runs_root=args.runs_root) as campaign,
    ):
        path = campaign.run(replace(place, order=run.order, balanced=False))
    return compare(original, read_run(path))


if __name__ == "__main__":
    sys.exit(guarded(main, "audit-rerun"))
