"""The report of every scenario that has reference runs, made again: `python -m r8.cli.references`.

Reads data/reference/<scenario>/ and makes reports/generated/<scenario>.md and .html. Without an
option it says which committed files differ from what it makes, and exits 1 if any does; `--write`
writes them. `nox -s reports` runs it, and CI compares.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from r8.cli.made_files import check_or_write
from r8.cli.report import twins
from r8.console import line
from r8.crash import guarded
from r8.evidence.reader import find_runs, read_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from r8.cli.made_files import Made

REFERENCE, GENERATED = Path("data/reference"), Path("reports/generated")
SUFFIXES = (".md", ".html")
# Made from the published figures by `nox -s audit`, in the same folder.
_OF_AUDIT = "audit."


def made_reports(root: Path) -> Made:
    """Path below the checkout to content, the same bytes each time; None: no runs are behind it.

    Reference runs are judged without references: nothing is compared with itself.
    Raises EvidenceError for a reference run that differs from its manifest.
    """
    made: Made = {
        path.relative_to(root): None
        for path in (root / GENERATED).glob("*")
        if path.suffix in SUFFIXES and not path.name.startswith(_OF_AUDIT)
    }
    for folder in sorted(one for one in (root / REFERENCE).glob("*") if one.is_dir()):
        runs = read_runs(find_runs(folder))
        if runs:
            texts = [text.encode() for text in twins(runs, ())]
            names = [GENERATED / f"{folder.name}{suffix}" for suffix in SUFFIXES]
            made |= dict(zip(names, texts, strict=True))
    if not any(made.values()):
        line(f"no reference runs below {REFERENCE} yet: there is no report to make")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Check or write; returns 0, or 1 when files differ."""
    return check_or_write(argv, "reports of the reference runs", made_reports)


if __name__ == "__main__":
    sys.exit(guarded(main, "r8.cli.references"))
