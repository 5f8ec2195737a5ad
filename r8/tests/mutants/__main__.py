"""`nox -s mutants`: a seeded sample of faults in forensics, verdicts, intervals and SQL.

Each is put into a copy of the checkout, alone, and the tests beside the file are run until one
fails. The list of survivors is what to look at: each is a missing test, or a change that changes
nothing, which `argued.toml` may say with its reason. Before the sample come the faults of
`known.toml`, which survived once. Ends with 1 when fewer than 90 % of the sample are killed, or
when a known one survives that is not argued.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import tomllib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from r8.lab.machine.progress import Progress
from r8.tests.mutants import trial
from r8.tests.mutants.changes import Mutant, mutants, replaced
from r8.tests.mutants.trial import ROOT, Fate, Trial

WHERE = ("r8/message.py", "r8/forensics/*.py", "r8/verdict/*.py", "data/queries/*.sql")
SAMPLE = 300
SEED = 20261130
KILLED_SHARE_MIN = 0.90
ARGUED = Path(__file__).with_name("argued.toml")
KNOWN = Path(__file__).with_name("known.toml")
# Before the first trial has ended: the tests of a package, some seconds.
_ESTIMATE_S = 15.0


def main() -> int:
    """Draw, try, tell; returns the exit code."""
    options = _options()
    # Who narrows the sample to some files asks about these alone.
    remembered = known() if options.known or options.where == WHERE else []
    drawn = [] if options.known else _drawn(options)
    trials = _tried([*remembered, *drawn], options.jobs)
    if options.json is not None:
        _write(trials, options.json)
    old, new = trials[: len(remembered)], trials[len(remembered) :]
    unexplained = _told("known mutants", old) if old else []
    if new:
        _told("sample", new)
    return 1 if unexplained or killed_share(new) < KILLED_SHARE_MIN else 0


def _drawn(options: argparse.Namespace) -> list[Mutant]:
    paths = sorted({str(p.relative_to(ROOT)) for one in options.where for p in ROOT.glob(one)})
    every = [one for path in paths for one in mutants(ROOT, path)]
    dice = random.Random(options.seed)  # noqa: S311 - to be repeated, not kept secret
    drawn = every if options.sample >= len(every) else dice.sample(every, options.sample)
    print(f"{len(drawn)} of {len(every)} mutants of {len(paths)} files, seed {options.seed}")
    return drawn


def known() -> list[Mutant]:
    """The faults of `known.toml`."""
    rows = tomllib.loads(KNOWN.read_text(encoding="utf-8"))["known"]
    return [replaced(ROOT, **row) for row in rows]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--known", action="store_true", help="those of known.toml alone")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="how many are tried")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=1, help="copies that are worked on at once")
    parser.add_argument("--where", nargs="+", default=WHERE, metavar="GLOB")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every trial, for machines")
    return parser.parse_args()


def _tried(drawn: list[Mutant], jobs: int) -> list[Trial]:
    trials = []
    with tempfile.TemporaryDirectory(prefix="r8-mutants-") as folder:
        pool = ProcessPoolExecutor(
            jobs, mp_context=get_context("spawn"), initializer=trial.prepare, initargs=(folder,)
        )
        with pool:
            tests = sorted({trial.beside(one.path)[-1] for one in drawn})
            _refuse_unsound(list(pool.map(trial.is_sound, tests)))
            progress = Progress(total=len(drawn), estimate_s=_ESTIMATE_S / jobs)
            for one in pool.map(trial.attempt, drawn):
                trials.append(one)
                progress.start(one.mutant.path)
                progress.say(f"{one.fate}, {one.mutant.name}")
                progress.finish()
            progress.end()
    return trials


def _refuse_unsound(answers: list[tuple[str, bool]]) -> None:
    broken = [tests for tests, is_sound in answers if not is_sound]
    if broken:
        sys.exit(f"{', '.join(broken)} fail without any fault: mend them first")


def argued() -> dict[str, str]:
    """Changes that change nothing a caller could see, by name, each with its reason."""
    rows = tomllib.loads(ARGUED.read_text(encoding="utf-8")).get("argued", [])
    return {f"{row['path']}: `{row['was']}` -> `{row['now']}`": row["reason"] for row in rows}


def killed_share(trials: list[Trial]) -> float:
    """Killed of tried; 1 where none was tried."""
    survived = sum(one.fate is Fate.SURVIVED for one in trials)
    return 1 - survived / len(trials) if trials else 1.0


def _told(what: str, trials: list[Trial]) -> list[Mutant]:
    """Print who survived, with the reason where one is argued; returns those without a reason."""
    survivors = [one.mutant for one in trials if one.fate is Fate.SURVIVED]
    reasons = argued()
    killed = len(trials) - len(survivors)
    print(f"{what}: {killed} of {len(trials)} killed: {killed_share(trials):.1%}; survivors:")
    for one in survivors:
        reason = reasons.get(one.change)
        print(f"  {one.name}{f'  ({reason})' if reason else ''}")
    return [one for one in survivors if one.change not in reasons]


def _write(trials: list[Trial], file: Path) -> None:
    rows = [{**asdict(one), "fate": one.fate, "mutant": one.mutant.name} for one in trials]
    file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
