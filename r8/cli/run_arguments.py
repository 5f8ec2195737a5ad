"""What verbs share that take runs: directories, folders with runs below, sealed bundles."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from r8.errors import UsageError
from r8.evidence.door import home
from r8.evidence.journal import RUN_FILE
from r8.evidence.manifest import MANIFEST
from r8.evidence.reader import UNFINISHED_SUFFIXES, find_runs, read_runs
from r8.report.words import LANGUAGES
from r8.seal.archive import SUFFIXES, unpack
from r8.seal.bundle import BUNDLE, REFERENCE, RUNS, run_paths

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from r8.evidence.reader import Evidence

RUNS_ROOT = Path("data/runs")
REFERENCE_ROOT = Path(__file__).resolve().parents[2] / "data" / "reference"


def add_runs(verb: argparse.ArgumentParser) -> None:
    """The positional argument RUN..."""
    words = "run directories, folders with runs below, or sealed bundles"
    verb.add_argument("runs", nargs="+", type=Path, metavar="RUN", help=words)


def add_language(verb: argparse.ArgumentParser) -> None:
    """The option --lang."""
    verb.add_argument("--lang", choices=LANGUAGES, default="en", help="language (default: en)")


def add_reference(verb: argparse.ArgumentParser) -> None:
    """The option --reference DIR, which may be repeated."""
    verb.add_argument(
        "--reference",
        type=Path,
        action="append",
        metavar="DIR",
        help="reference runs (default: data/reference of the checkout)",
    )


def evidences(paths: Sequence[Path]) -> list[Evidence]:
    """Runs named one by one, all finished ones below a folder, or those of a bundle.

    Runs of a bundle are read by their own digests; whether the bundle is what its sealer signed is
    `r8 verify`.

    Raises:
        UsageError: a path that is no run and no bundle, and holds none.
        EvidenceError: a run that cannot be trusted.

    """
    found: list[Path] = []
    for path in paths:
        if path.is_file() and path.name.endswith(SUFFIXES):
            found += run_paths(_unpacked(path), RUNS)
            continue
        below = [path] if _is_run(path) else find_runs(path)
        if not below:
            raise UsageError(
                "this is not a run, and no finished run lies below it",
                where=str(path),
                next_step="name a directory data/runs/<scenario>/<run_id>, or a sealed bundle",
            )
        found += below
    return read_runs(found)


def one_evidence(path: Path) -> Evidence:
    """The one run that is named, as `evidences`; several below a folder are too many."""
    found = evidences([path])
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} runs lie below it",
            where=str(path),
            next_step=f"name one: {found[0].path}",
        )
    return found[0]


def _is_run(path: Path) -> bool:
    """Whether a directory is a run or was to become one; reading it says if it can be trusted."""
    begun = path.name.endswith(UNFINISHED_SUFFIXES) or (path / RUN_FILE).is_file()
    return path.is_dir() and (begun or (path / MANIFEST).is_file())


def references(named: Sequence[Path] | None, judged: Sequence[Evidence]) -> list[Evidence]:
    """The reference runs of `--reference`, or those of the checkout."""
    if named:
        return evidences(named)
    # A bundle brings its own reference runs: it must say the same on every machine.
    above = {one.path.parents[2] for one in judged if len(one.path.parents) > 2}  # noqa: PLR2004
    bundles = {tree for tree in above if (tree / BUNDLE).is_file()}
    if bundles:
        return read_runs([path for tree in sorted(bundles) for path in run_paths(tree, REFERENCE)])
    if not REFERENCE_ROOT.is_dir():
        return []
    # Never against the same session: a campaign that is a reference is not its own judge.
    campaigns = {one.run.campaign_id for one in judged}
    # A claim is of one scenario: the others' runs are not read, hashed and certified for nothing.
    scenarios = {one.run.scenario for one in judged}
    paths = [path for path in find_runs(REFERENCE_ROOT) if path.parent.name in scenarios]
    runs = read_runs(paths)
    return [one for one in runs if one.run.campaign_id not in campaigns]


def _unpacked(bundle: Path) -> Path:
    """The bundle unpacked for as long as this command runs."""
    folder = Path(tempfile.mkdtemp(prefix="bundle-", dir=home()))
    unpack(bundle, folder)
    return folder
