"""Keeping finished runs as reference runs: whole directories, copied as they are.

A reference is what a later session of the same machine is compared with. Only complete runs are
kept, never over one that is there, and each names its machine in its own `run.json`.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from r8.errors import SiteError
from r8.evidence import read_run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# References are shipped with the checkout: all of them together must stay small.
SHIPPED_BYTES_MAX = 20_000_000


def record(paths: Iterable[Path], root: Path) -> list[Path]:
    """Copy runs to `root/<scenario>/<run_id>`; returns where they lie.

    Raises:
        EvidenceError: a run differs from its manifest.
        SiteError: a run that is not complete, or a reference of that name that is there already.

    """
    kept = []
    for path in paths:
        run = read_run(path).run
        if not run.complete:
            raise SiteError(
                f"run {run.run_id} did not end by itself: it is no reference",
                where=str(path),
                next_step="resume the campaign first",
            )
        target = root / run.scenario / run.run_id
        if target.exists():
            raise SiteError(
                "a reference run of that name is there already, and is never overwritten",
                where=str(target),
                next_step="remove it by hand if it shall be replaced",
            )
        half = target.with_name(f".{target.name}.half")
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(path, half)
        half.rename(target)
        read_run(target)
        kept.append(target)
    return kept


def size_bytes(root: Path) -> int:
    """What all reference runs together take."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
