"""Every file that is made from the published figures, made again: `python -m r8.audit.files`.

Without an option it says which committed files differ from what it makes, and exits 1 if any does;
`--write` writes them. Nobody edits the made files by hand, and `nox -s audit` proves it.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from r8.audit.pages import other_page, page
from r8.audit.render import as_markdown
from r8.audit.rows import parquet_table, rows, toml_files
from r8.audit.rules import audit
from r8.claims.ledger_read import load_ledger
from r8.claims.reports import load_reports
from r8.claims.words import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
PARQUET = Path("data/published/figures.parquet")


def made_files() -> dict[Path, bytes]:
    """Path below the checkout to content, the same bytes each time."""
    ledger, reports = load_ledger(), load_reports()
    table = rows(ledger, reports)
    texts = {Path("data/published") / name: text for name, text in toml_files(table).items()}
    found = audit(ledger)
    for language in LANGUAGES:
        texts[Path(f"reports/generated/audit.{language}.md")] = as_markdown(found, language)
        folder = Path("reports/published") / language
        texts[folder / "other.md"] = other_page(ledger, language)
        for report_id in reports.reports:
            texts[folder / f"{report_id}.md"] = page(ledger, reports, report_id, language)
    made = {path: text.encode() for path, text in texts.items()}
    made[PARQUET] = parquet_bytes(table)
    return made


def parquet_bytes(table: list[dict[str, object]]) -> bytes:
    """The rows as one Parquet file: one row group, no page statistics that depend on chance."""
    sink = io.BytesIO()
    pq.write_table(parquet_table(table), sink, compression="zstd", version="2.6")
    return sink.getvalue()


def differing(root: Path) -> list[Path]:
    """Made files that are missing below `root` or hold something else."""
    return [path for path, content in made_files().items() if not _holds(root / path, content)]


def _holds(path: Path, content: bytes) -> bool:
    if not path.is_file():
        return False
    if path.suffix == ".parquet":
        # Another release of the writer may lay the same table out in other bytes.
        ours, theirs = pq.read_table(io.BytesIO(content)), pq.read_table(path)
        return bool(ours.equals(theirs, check_metadata=True))
    return path.read_bytes() == content


def main(argv: Sequence[str] | None = None) -> int:
    """Check or write; returns 0, or 1 when files differ."""
    parser = argparse.ArgumentParser(description="files made from the published figures")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="write them instead of comparing")
    what.add_argument("--check", action="store_true", help="compare, which is the default")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    args = parser.parse_args(argv)
    changed = differing(args.root)
    made = made_files() if args.write else {}
    for path in changed:
        if args.write:
            (args.root / path).parent.mkdir(parents=True, exist_ok=True)
            (args.root / path).write_bytes(made[path])
        print(f"{'wrote' if args.write else 'differs:'} {path}")
    return 0 if args.write or not changed else 1


if __name__ == "__main__":
    sys.exit(main())
