"""Files that R8 makes again and that are committed: compared with what is there, or written."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from r8.console import line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # Path below the checkout to content; None: the file should not be there.
    Made = dict[Path, bytes | None]

ROOT = Path(__file__).resolve().parents[2]


def differing(root: Path, made: Made) -> list[Path]:
    """Made files that are missing below `root`, hold something else, or should not be there."""
    return sorted(path for path, content in made.items() if not _holds(root / path, content))


def _holds(path: Path, content: bytes | None) -> bool:
    if content is None or not path.is_file():
        return content is None and not path.is_file()
    if path.suffix == ".parquet":
        # Another release of the writer may lay the same table out in other bytes.
        ours, theirs = pq.read_table(io.BytesIO(content)), pq.read_table(path)
        return bool(ours.equals(theirs, check_metadata=True))
    return path.read_bytes() == content


def check_or_write(
    argv: Sequence[str] | None, description: str, make: Callable[[Path], Made]
) -> int:
    """The command line of a module that makes files; returns 0, or 1 when files differ."""
    parser = argparse.ArgumentParser(description=description)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="write them instead of comparing")
    what.add_argument("--check", action="store_true", help="compare, which is the default")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    args = parser.parse_args(argv)
    made = make(args.root)
    changed = differing(args.root, made)
    for path in changed:
        done, content = "differs:", made[path]
        if args.write and content is None:
            (args.root / path).unlink()
            done = "removed"
        elif args.write and content is not None:
            (args.root / path).parent.mkdir(parents=True, exist_ok=True)
            (args.root / path).write_bytes(content)
            done = "wrote"
        line(f"{done} {path}")
    return 0 if args.write or not changed else 1
