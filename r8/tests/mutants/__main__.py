"""`nox -s mutants`: a seeded sample of faults in forensics, verdicts, intervals and SQL.

Each is put into a copy of the checkout, alone, and the tests beside the file are run until one
fails. The list of survivors is what to look at: each is a missing test, or a change that changes
nothing, which `argued.toml` may say with its reason. Ends with 1 when fewer than 90 % are killed.
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
from r8.tests.mutants.changes import Mutant, mutants
from r8.tests.mutants.trial import ROOT, Fate, Trial

WHERE = ("r8/message.py", "r8/forensics/*.py", "r8/verdict/*.py", "data/queries/*.sql")
SAMPLE = 300
SEED = 20261130
KILLED_SHARE_MIN = 0.90
ARGUED = Path(__file__).with_name("argued.toml")
# Before the first trial has ended: the tests of a package, some seconds.
_ESTIMATE_S = 15.0


def main() -> int:
    """Draw, try, tell; returns the exit code."""
    options = _options()
    paths = sorted({str(p.relative_to(ROOT)) for one in options.where for p in ROOT.glob(one)})
    every = [one for path in paths for one in mutants(ROOT, path)]
    dice = random.Random(options.seed)  # noqa: S311 - to be repeated, not kept secret
    drawn = every if options.sample >= len(every) else dice.sample(every, options.sample)
    print(f"{len(drawn)} of {len(every)} mutants of {len(paths)} files, seed {options.seed}")
    trials = _tried(drawn, options.jobs)
    return _told(trials, options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
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


def _told(trials: list[Trial], file: Path | None) -> int:
    survivors = [one.mutant for one in trials if one.fate is Fate.SURVIVED]
    reasons = argued()
    named = [f"{one.path}: `{one.was}` -> `{one.now}`" for one in survivors]
    killed = len(trials) - len(survivors)
    share = killed / len(trials)
    print(f"{killed} of {len(trials)} killed: {share:.1%}; survivors:")
    for mutant, name in zip(survivors, named, strict=True):
        print(f"  {mutant.name}{f'  ({reasons[name]})' if name in reasons else ''}")
    if file is not None:
        rows = [{**asdict(one), "fate": one.fate, "mutant": one.mutant.name} for one in trials]
        file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if share >= KILLED_SHARE_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
