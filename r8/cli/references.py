"""The report of every scenario that has reference runs, made again: `python -m r8.cli.references`.

Reads data/reference/<scenario>/ and makes reports/generated/<scenario>.md and .html. Without an
option it says which committed files differ from what it makes, and exits 1 if any does; `--write`
writes them. `nox -s reports` is its door, and CI compares.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from r8.cli.report import twins
from r8.evidence.reader import find_runs, read_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
REFERENCE, GENERATED = Path("data/reference"), Path("reports/generated")
SUFFIXES = (".md", ".html")
# Made from the published figures by `nox -s audit`, in the same folder.
_OF_AUDIT = "audit."


def made_reports(root: Path) -> dict[Path, str]:
    """Path below the checkout to content, the same bytes each time; empty without references.

    Reference runs are judged without references: nothing is compared with itself.
    Raises EvidenceError for a reference run that differs from its manifest.
    """
    made: dict[Path, str] = {}
    for folder in sorted(one for one in (root / REFERENCE).glob("*") if one.is_dir()):
        runs = read_runs(find_runs(folder))
        if runs:
            texts = twins(runs, ())
            names = [GENERATED / f"{folder.name}{suffix}" for suffix in SUFFIXES]
            made |= dict(zip(names, texts, strict=True))
    return made


def differing(root: Path, made: dict[Path, str]) -> list[Path]:
    """Reports that are missing, hold something else, or stand there without reference runs."""
    there = {
        path.relative_to(root)
        for path in (root / GENERATED).glob("*")
        if path.suffix in SUFFIXES and not path.name.startswith(_OF_AUDIT)
    }
    changed = [path for path, text in made.items() if not _holds(root / path, text)]
    return sorted({*changed, *(there - made.keys())})


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def main(argv: Sequence[str] | None = None) -> int:
    """Check or write; returns 0, or 1 when files differ."""
    parser = argparse.ArgumentParser(description="reports of the reference runs")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="write them instead of comparing")
    what.add_argument("--check", action="store_true", help="compare, which is the default")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    args = parser.parse_args(argv)
    made = made_reports(args.root)
    if not made:
        print(f"no reference runs below {REFERENCE} yet: there is no report to make")
    changed = differing(args.root, made)
    for path in changed:
        if args.write and path in made:
            (args.root / path).parent.mkdir(parents=True, exist_ok=True)
            (args.root / path).write_text(made[path], encoding="utf-8")
        elif args.write:
            (args.root / path).unlink()
        print(f"{('wrote' if path in made else 'removed') if args.write else 'differs:'} {path}")
    return 0 if args.write or not changed else 1


if __name__ == "__main__":
    sys.exit(main())
